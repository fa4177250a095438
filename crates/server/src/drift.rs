//! Drift: what is known of it, of one deployment and over the fleet; asking for a look, healing, schedules.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::{Extension, Json};
use landform_api::{Drift, DriftGroup, DriftList, DriftSchedule, DriftedDeployment};
use landform_domain::{Actor, Code, DriftStatus};
use landform_store::DriftFilter;
use serde::Deserialize;

use crate::problem::Refusal;
use crate::request::{Asked, JsonBody, Names, given, known_template, narrowed, preferred_wait};
use crate::{Server, view, wait};

const LONGEST_TYPE: usize = 200;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct DriftQuery {
    /// `drifted` (which it is without), `none` or `unknown`.
    status: Option<String>,
    tenant: Option<String>,
    template: Option<String>,
    /// Only deployments with a drifted object of this type, such as `aws_vpc`.
    r#type: Option<String>,
    /// The `next` of the page before.
    after: Option<String>,
    #[serde(default)]
    limit: u32,
}

pub(crate) async fn list(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    Asked(query): Asked<DriftQuery>,
) -> Result<Json<DriftList>, Refusal> {
    let limit = if query.limit == 0 { 100 } else { query.limit.min(100) };
    let filter = DriftFilter {
        status: status(query.status)?,
        tenant: narrowed(&server, &actor, given(query.tenant)?).await?,
        template: known_template(&server, given(query.template)?).await?,
        kind: kind(query.r#type)?,
        after: place(query.after)?,
        limit,
    };
    let found = server.store.drifted_deployments(&filter).await?;
    let next = found.last().filter(|_| found.len() == limit as usize);
    let next = next.map(|last| format!("{}/{}", last.tenant, last.deployment));
    let groups = match filter.after {
        None => server.store.drift_groups(filter.tenant.as_ref()).await?,
        Some(_) => Vec::new(),
    };
    let deployment = |found: landform_store::DriftedDeployment| DriftedDeployment {
        tenant: found.tenant,
        deployment: found.deployment,
        template: found.template,
        template_version: found.template_version,
        drift: view::drift(found.fact),
    };
    let group = |group: landform_store::DriftGroup| DriftGroup {
        template: group.template,
        kind: group.kind,
        gone: group.gone,
        attributes: group.attributes,
        objects: group.objects,
        deployments: group.deployments,
        example: format!("{}/{}", group.tenant, group.deployment),
    };
    let deployments = found.into_iter().map(deployment).collect();
    Ok(Json(DriftList { deployments, groups: groups.into_iter().map(group).collect(), next }))
}

pub(crate) async fn get(State(server): State<Server>, names: Names) -> Result<Json<Drift>, Refusal> {
    Ok(Json(view::drift(server.store.drift(&names.tenant()?, &names.deployment()?).await?)))
}

pub(crate) async fn check(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let wait = preferred_wait(&headers)?;
    let run = server.store.check_drift(&names.tenant()?, &names.deployment()?, &actor).await?;
    wait::answer(&server, run, wait).await
}

pub(crate) async fn heal(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let wait = preferred_wait(&headers)?;
    let run = server.store.heal(&names.tenant()?, &names.deployment()?, &actor).await?;
    wait::answer(&server, run, wait).await
}

pub(crate) async fn schedule(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
    JsonBody(wanted): JsonBody<DriftSchedule>,
) -> Result<Json<Drift>, Refusal> {
    let (tenant, name) = (names.tenant()?, names.deployment()?);
    server.store.schedule_drift_checks(&tenant, &name, wanted.every, &actor).await?;
    Ok(Json(view::drift(server.store.drift(&tenant, &name).await?)))
}

fn status(word: Option<String>) -> Result<DriftStatus, Refusal> {
    let Some(word) = word.filter(|word| !word.is_empty()) else { return Ok(DriftStatus::Drifted) };
    let message = || format!("`status` is one of {}", DriftStatus::WORDS.join(", "));
    DriftStatus::of_word(&word).ok_or_else(|| Refusal::new(Code::RequestInvalid, message()))
}

fn kind(given: Option<String>) -> Result<Option<String>, Refusal> {
    let given = given.filter(|text| !text.is_empty());
    match given {
        Some(text) if text.chars().count() > LONGEST_TYPE => {
            Err(Refusal::new(Code::RequestInvalid, format!("`type` has at most {LONGEST_TYPE} characters")))
        }
        given => Ok(given),
    }
}

fn place(cursor: Option<String>) -> Result<Option<(String, String)>, Refusal> {
    let Some(cursor) = cursor.filter(|cursor| !cursor.is_empty()) else { return Ok(None) };
    match cursor.split_once('/') {
        Some((tenant, name)) => Ok(Some((tenant.to_owned(), name.to_owned()))),
        None => Err(Refusal::new(Code::RequestInvalid, "`after` is the `next` of another page")),
    }
}
