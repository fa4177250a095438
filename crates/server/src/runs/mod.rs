pub(crate) mod events;
pub(crate) mod plan;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use landform_api::{Accepted, Recovery, Reject, Run, RunList, Timestamp};
use landform_domain::run::Status;
use landform_domain::{Actor, Code};
use landform_store::RunFilter;
use serde::Deserialize;

use crate::problem::Refusal;
use crate::request::{Asked, JsonBody, Names, given, known_template, narrowed};
use crate::{Server, view};

const LONGEST_REASON: usize = 1000;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunsQuery {
    tenant: Option<String>,
    deployment: Option<String>,
    status: Option<String>,
    template: Option<String>,
    /// The code of a failure, such as `apply_failed`.
    code: Option<String>,
    /// Only runs made at or after this time, such as `2026-11-16T00:12:01.123Z`.
    since: Option<String>,
    /// The id of the last run of the page before.
    before: Option<String>,
    #[serde(default)]
    limit: u32,
}

fn status(text: Option<String>) -> Result<Option<String>, Refusal> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    if Status::WORDS.contains(&text.as_str()) {
        return Ok(Some(text));
    }
    Err(Refusal::new(Code::RequestInvalid, format!("there is no such status; there are {}", Status::WORDS.join(", "))))
}

fn since(text: Option<String>) -> Result<Option<i64>, Refusal> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    let since: Timestamp = text.parse().map_err(|e| Refusal::new(Code::RequestInvalid, format!("`since` is {e}")))?;
    Ok(Some(since.unix_millis))
}

pub(crate) async fn list(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    Asked(query): Asked<RunsQuery>,
) -> Result<Json<RunList>, Refusal> {
    let filter = RunFilter {
        tenant: narrowed(&server, &actor, given(query.tenant)?).await?,
        deployment: given(query.deployment)?,
        status: status(query.status)?,
        template: known_template(&server, given(query.template)?).await?,
        code: given::<Code>(query.code)?.map(|code| code.to_string()),
        since: since(query.since)?,
        before: given(query.before)?,
        limit: query.limit,
    };
    let runs = server.store.runs(&filter).await?;
    if runs.is_empty() {
        check_deployment(&server, filter).await?;
    }
    Ok(Json(RunList { runs: runs.into_iter().map(view::run).collect() }))
}

/// A deployment that is gone may have left runs. One that was never there has none, and is a typing mistake.
async fn check_deployment(server: &Server, asked: RunFilter) -> Result<(), Refusal> {
    let (Some(tenant), Some(deployment)) = (asked.tenant, asked.deployment) else { return Ok(()) };
    let any = RunFilter {
        tenant: Some(tenant.clone()),
        deployment: Some(deployment.clone()),
        limit: 1,
        ..Default::default()
    };
    if server.store.runs(&any).await?.is_empty() {
        server.store.deployment(&tenant, &deployment).await?;
    }
    Ok(())
}

pub(crate) async fn get(State(server): State<Server>, names: Names) -> Result<Json<Run>, Refusal> {
    Ok(Json(view::run(server.store.run(names.run()?).await?)))
}

pub(crate) async fn approve(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
) -> Result<Json<Run>, Refusal> {
    Ok(Json(view::run(server.store.approve(names.run()?, &actor).await?)))
}

pub(crate) async fn reject(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
    JsonBody(Reject { reason }): JsonBody<Reject>,
) -> Result<Json<Run>, Refusal> {
    if reason.chars().count() > LONGEST_REASON {
        return Err(Refusal::new(Code::RequestInvalid, format!("a reason has at most {LONGEST_REASON} characters")));
    }
    Ok(Json(view::run(server.store.reject(names.run()?, &reason, &actor).await?)))
}

pub(crate) async fn cancel(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
) -> Result<Json<Run>, Refusal> {
    Ok(Json(view::run(server.store.cancel(names.run()?, &actor).await?)))
}

/// The same again: what was done already is in the state.
pub(crate) async fn retry(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
) -> Result<(StatusCode, Json<Accepted>), Refusal> {
    let run = view::run(server.store.retry(names.run()?, &actor).await?);
    Ok((StatusCode::ACCEPTED, Json(Accepted { run, outputs: None })))
}

pub(crate) async fn recover(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
    JsonBody(recovery): JsonBody<Recovery>,
) -> Result<Json<Run>, Refusal> {
    Ok(Json(view::run(server.store.recover(names.run()?, recovery.answers, &actor).await?)))
}
