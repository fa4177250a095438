use axum::extract::State;
use axum::{Extension, Json};
use landform_api::AuditList;
use landform_domain::Actor;
use landform_store::AuditFilter;
use serde::Deserialize;

use crate::problem::Refusal;
use crate::request::{Asked, given, narrowed};
use crate::{Server, view};

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditQuery {
    tenant: Option<String>,
    /// The id of a token.
    actor: Option<String>,
    /// An action such as `run.approve`, or all of a noun: `run.`.
    action: Option<String>,
    /// The number of the last entry of the page before.
    before: Option<i64>,
    #[serde(default)]
    limit: u32,
}

pub(crate) async fn list(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    Asked(query): Asked<AuditQuery>,
) -> Result<Json<AuditList>, Refusal> {
    let filter = AuditFilter {
        tenant: narrowed(&server, &actor, given(query.tenant)?).await?,
        actor: query.actor,
        action: query.action,
        before: query.before,
        limit: query.limit,
    };
    let entries = server.store.audit(&filter).await?;
    Ok(Json(AuditList { entries: entries.into_iter().map(view::audit_entry).collect() }))
}
