use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::{Extension, Json};
use landform_api as api;
use landform_domain::run::Status;
use landform_domain::{Actor, Code, TenantName};

use crate::problem::Refusal;
use crate::request::{JsonBody, Names};
use crate::{Server, view};

/// What is told of deployments rather than of runs.
const OF_DEPLOYMENTS: [&str; 2] = ["drifted", "drift_resolved"];

const LONGEST_ADDRESS: usize = 2000;

pub(crate) async fn create(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
    JsonBody(spec): JsonBody<api::WebhookSpec>,
) -> Result<(StatusCode, Json<api::WebhookMade>), Refusal> {
    check(&spec)?;
    let made = server.store.create_webhook(of(&names)?.as_ref(), &spec.url, &spec.events, &actor).await?;
    let (webhook, secret) = made;
    let made = api::WebhookMade { webhook: view::webhook(webhook), secret: secret.expose().clone() };
    Ok((StatusCode::CREATED, Json(made)))
}

pub(crate) async fn list(State(server): State<Server>, names: Names) -> Result<Json<api::WebhookList>, Refusal> {
    let webhooks = server.store.webhooks(of(&names)?.as_ref()).await?;
    Ok(Json(api::WebhookList { webhooks: webhooks.into_iter().map(view::webhook).collect() }))
}

pub(crate) async fn delete(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
) -> Result<StatusCode, Refusal> {
    server.store.delete_webhook(of(&names)?.as_ref(), names.text("webhook"), &actor).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn deliveries(State(server): State<Server>, names: Names) -> Result<Json<api::DeliveryList>, Refusal> {
    let deliveries = server.store.deliveries(of(&names)?.as_ref(), names.text("webhook")).await?;
    Ok(Json(api::DeliveryList { deliveries: deliveries.into_iter().map(view::delivery).collect() }))
}

/// Whose webhooks: those of a tenant, or, where the path names none, of the whole fleet.
fn of(names: &Names) -> Result<Option<TenantName>, Refusal> {
    if names.has("tenant") { names.tenant().map(Some) } else { Ok(None) }
}

/// Whether the address may be reached is found out when it is: what a name means can change at any time.
fn check(spec: &api::WebhookSpec) -> Result<(), Refusal> {
    let invalid = |message: &str| Err(Refusal::new(Code::WebhookInvalid, message));
    if spec.url.len() > LONGEST_ADDRESS {
        return invalid("the address is too long");
    }
    let Ok(uri) = spec.url.parse::<Uri>() else { return invalid("this is not an address") };
    if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none_or(str::is_empty) {
        return invalid("the address begins with http:// or https:// and names a host");
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return invalid("an address is no place for a password");
    }
    let words: Vec<&str> = Status::WORDS.into_iter().chain(OF_DEPLOYMENTS).collect();
    match spec.events.iter().find(|event| !words.contains(&event.as_str())) {
        Some(_) => invalid(&format!("events are statuses of runs, or about drift: {}", words.join(", "))),
        None => Ok(()),
    }
}
