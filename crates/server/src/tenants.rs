use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use landform_api::{Tenant, TenantList, TenantSpec};

use crate::problem::Refusal;
use crate::request::{JsonBody, Names};
use crate::{Server, view};

pub(crate) async fn put(
    State(server): State<Server>,
    names: Names,
    JsonBody(TenantSpec {}): JsonBody<TenantSpec>,
) -> Result<(StatusCode, Json<Tenant>), Refusal> {
    let (tenant, is_new) = server.store.put_tenant(&names.tenant()?).await?;
    Ok((if is_new { StatusCode::CREATED } else { StatusCode::OK }, Json(view::tenant(tenant))))
}

pub(crate) async fn get(State(server): State<Server>, names: Names) -> Result<Json<Tenant>, Refusal> {
    Ok(Json(view::tenant(server.store.tenant(&names.tenant()?).await?)))
}

pub(crate) async fn list(State(server): State<Server>) -> Result<Json<TenantList>, Refusal> {
    let tenants = server.store.tenants().await?.into_iter().map(view::tenant).collect();
    Ok(Json(TenantList { tenants }))
}
