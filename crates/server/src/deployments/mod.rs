pub(crate) mod batch;
pub(crate) mod state;

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use landform_api::{Deployment, DeploymentList, DeploymentSpec, Outputs, Rollback, RunRequest};
use landform_domain::{Actor, Code, DeploymentName, Input, Inputs, Right, TenantName};
use landform_store::{DeploymentWrite, IdempotencyKey};
use serde::{Deserialize, Serialize};

use crate::problem::Refusal;
use crate::request::{
    Asked, JsonBody, Names, check_idempotency_key, expected_generation, idempotency_key, preferred_wait,
};
use crate::{Server, view, wait};

const MOST_ADDRESSES: usize = 2000;

pub(crate) async fn put(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
    headers: HeaderMap,
    JsonBody(spec): JsonBody<DeploymentSpec>,
) -> Result<Response, Refusal> {
    let (tenant, name) = (names.tenant()?, names.deployment()?);
    let wait = preferred_wait(&headers)?;
    let key = key(idempotency_key(&headers)?, &actor, "PUT", &tenant, &name, &spec)?;
    let write = write(tenant, name, spec, expected_generation(&headers)?)?;
    let accepted = server.store.put_deployment(write, key, &actor).await?;
    wait::answer(&server, accepted.run, wait).await
}

pub(crate) async fn delete(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let (tenant, name) = (names.tenant()?, names.deployment()?);
    let wait = preferred_wait(&headers)?;
    let key = key(idempotency_key(&headers)?, &actor, "DELETE", &tenant, &name, &())?;
    let generation = expected_generation(&headers)?;
    let accepted = server.store.delete_deployment(&tenant, &name, generation, key, &actor).await?;
    wait::answer(&server, accepted.run, wait).await
}

pub(crate) async fn get(State(server): State<Server>, names: Names) -> Result<Response, Refusal> {
    let deployment = view::deployment(server.store.deployment(&names.tenant()?, &names.deployment()?).await?);
    let tag = format!("\"{}\"", deployment.generation);
    Ok(([(header::ETAG, tag)], Json::<Deployment>(deployment)).into_response())
}

pub(crate) async fn list(State(server): State<Server>, names: Names) -> Result<Json<DeploymentList>, Refusal> {
    let deployments = server.store.deployments(&names.tenant()?).await?;
    Ok(Json(DeploymentList { deployments: deployments.into_iter().map(view::deployment).collect() }))
}

/// A further run for what the deployment shall be now: again, as a trial, with replacements or adoptions.
pub(crate) async fn run(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
    headers: HeaderMap,
    JsonBody(wanted): JsonBody<RunRequest>,
) -> Result<Response, Refusal> {
    let (tenant, name) = (names.tenant()?, names.deployment()?);
    let wait = preferred_wait(&headers)?;
    check_addresses(wanted.replace.iter().chain(wanted.adopt.keys()).chain(wanted.adopt.values()))?;
    if wanted.plan_only && !wanted.adopt.is_empty() {
        return Err(Refusal::new(Code::RequestInvalid, "a trial takes nothing over: adopt with a run that applies"));
    }
    let request = landform_store::RunRequest {
        plan_only: wanted.plan_only,
        replace: wanted.replace,
        adopt: wanted.adopt,
        absent: wanted.absent,
    };
    let run = server.store.run_again(&tenant, &name, request, &actor).await?;
    wait::answer(&server, run, wait).await
}

/// Back to the template and the inputs of an earlier run.
pub(crate) async fn rollback(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
    headers: HeaderMap,
    JsonBody(wanted): JsonBody<Rollback>,
) -> Result<Response, Refusal> {
    let wait = preferred_wait(&headers)?;
    let accepted = server.store.roll_back(&names.tenant()?, &names.deployment()?, wanted.run, &actor).await?;
    wait::answer(&server, accepted.run, wait).await
}

pub(crate) async fn forget(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
) -> Result<StatusCode, Refusal> {
    server.store.forget(&names.tenant()?, &names.deployment()?, &actor).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct OutputsQuery {
    /// Show sensitive values, too: needs the right to see secrets.
    #[serde(default)]
    show_sensitive: bool,
}

pub(crate) async fn outputs(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
    Asked(query): Asked<OutputsQuery>,
) -> Result<Json<Outputs>, Refusal> {
    if query.show_sensitive {
        actor.require(Right::Secrets)?;
    }
    let outputs = server.store.outputs(&names.tenant()?, &names.deployment()?).await?;
    Ok(Json(view::outputs(outputs, query.show_sensitive)?))
}

/// Addresses and ids of objects, as far as they can be told without a state.
fn check_addresses<'a>(texts: impl Iterator<Item = &'a String>) -> Result<(), Refusal> {
    let invalid = |text: &String| text.is_empty() || text.len() > 1000 || text.chars().any(char::is_control);
    for (count, text) in texts.enumerate() {
        if count >= MOST_ADDRESSES || invalid(text) {
            let message = format!(
                "an address or an id has 1 to 1000 printable characters, and there are at most {MOST_ADDRESSES}"
            );
            return Err(Refusal::new(Code::RequestInvalid, message));
        }
    }
    Ok(())
}

/// What a body asks for, as the store takes it.
fn write(
    tenant: TenantName,
    name: DeploymentName,
    spec: DeploymentSpec,
    if_generation: Option<i64>,
) -> Result<DeploymentWrite, Refusal> {
    if spec.time_limit == Some(0) {
        return Err(Refusal::new(Code::RequestInvalid, "a time limit is at least one second"));
    }
    Ok(DeploymentWrite {
        tenant,
        name,
        inputs: inputs(spec.inputs, &spec.sensitive)?,
        connections: spec.connections,
        template: spec.template,
        template_version: spec.template_version,
        engine: spec.engine,
        requires_approval: spec.requires_approval,
        time_limit: spec.time_limit.map(i64::from),
        if_generation,
    })
}

fn inputs(values: BTreeMap<String, serde_json::Value>, sensitive: &[String]) -> Result<Inputs, Refusal> {
    if let Some(name) = sensitive.iter().find(|name| !values.contains_key(*name)) {
        let shown: String = name.chars().take(80).collect();
        return Err(Refusal::new(Code::InputInvalid, format!("`{shown}` is called sensitive but has no value")));
    }
    let input = |(name, value): (String, serde_json::Value)| {
        let sensitive = sensitive.contains(&name);
        (name, Input { value, sensitive })
    };
    Ok(Inputs::new(values.into_iter().map(input).collect())?)
}

/// The whole request is part of what the key stands for, as it was understood: another order of fields is the same.
fn key(
    key: Option<String>,
    actor: &Actor,
    method: &str,
    tenant: &TenantName,
    name: &DeploymentName,
    body: &impl Serialize,
) -> Result<Option<IdempotencyKey>, Refusal> {
    let Some(key) = key else { return Ok(None) };
    check_idempotency_key(&key)?;
    let body = serde_json::to_vec(body).expect("a body that was read can be written");
    let route = format!("{method} /v1/tenants/{tenant}/deployments/{name}");
    Ok(Some(IdempotencyKey { principal: actor.id.clone(), route, key, body }))
}
