use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use landform_api::{Tenant, TenantList, TenantSpec};
use landform_domain::Actor;
use landform_store::TenantSettings;

use crate::problem::Refusal;
use crate::request::{JsonBody, Names};
use crate::{Server, view};

pub(crate) async fn put(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
    JsonBody(spec): JsonBody<TenantSpec>,
) -> Result<(StatusCode, Json<Tenant>), Refusal> {
    let settings = TenantSettings {
        separate_approver: spec.separate_approver,
        slots: spec.slots,
        most_deployments: spec.max_deployments,
        most_waiting: spec.max_waiting_runs,
    };
    let (tenant, is_new) = server.store.put_tenant(&names.tenant()?, settings, &actor).await?;
    Ok((if is_new { StatusCode::CREATED } else { StatusCode::OK }, Json(view::tenant(tenant))))
}

pub(crate) async fn get(State(server): State<Server>, names: Names) -> Result<Json<Tenant>, Refusal> {
    Ok(Json(view::tenant(server.store.tenant(&names.tenant()?).await?)))
}

pub(crate) async fn delete(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
) -> Result<StatusCode, Refusal> {
    server.store.delete_tenant(&names.tenant()?, &actor).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn list(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
) -> Result<Json<TenantList>, Refusal> {
    let tenants = server.store.tenants().await?.into_iter().filter(|tenant| actor.sees(&tenant.name));
    Ok(Json(TenantList { tenants: tenants.map(view::tenant).collect() }))
}
