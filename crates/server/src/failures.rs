//! Failed runs, grouped by why they failed.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use landform_api::{FailureGroup, FailureList, RetryAll, RunList};
use landform_domain::{Actor, Code};
use serde::Deserialize;

use crate::problem::Refusal;
use crate::request::{Asked, JsonBody, given, narrowed};
use crate::{Server, view};

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct FailuresQuery {
    tenant: Option<String>,
}

pub(crate) async fn list(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    Asked(query): Asked<FailuresQuery>,
) -> Result<Json<FailureList>, Refusal> {
    let tenant = narrowed(&server, &actor, given(query.tenant)?).await?;
    let groups = server.store.failures(tenant.as_ref()).await?;
    let group = |group: landform_store::FailureGroup| FailureGroup {
        code: group.code,
        count: group.count,
        newest: group.newest,
    };
    Ok(Json(FailureList { failures: groups.into_iter().map(group).collect() }))
}

pub(crate) async fn retry(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    JsonBody(wanted): JsonBody<RetryAll>,
) -> Result<(StatusCode, Json<RunList>), Refusal> {
    let code: Code = wanted.code.parse()?;
    let tenant = narrowed(&server, &actor, wanted.tenant).await?;
    let runs = server.store.retry_all(code.as_str(), tenant.as_ref(), wanted.limit, &actor).await?;
    Ok((StatusCode::ACCEPTED, Json(RunList { runs: runs.into_iter().map(view::run).collect() })))
}
