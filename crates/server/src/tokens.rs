use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use landform_api as api;
use landform_domain::{Actor, Code};
use landform_store::NewToken;

use crate::problem::Refusal;
use crate::request::{JsonBody, Names};
use crate::{Server, view};

const LONGEST_NAME: usize = 200;
/// A hundred years, in seconds.
const LONGEST_LIFETIME: i64 = 100 * 366 * 24 * 3600;

pub(crate) async fn create(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    JsonBody(spec): JsonBody<api::TokenSpec>,
) -> Result<(StatusCode, Json<api::TokenMade>), Refusal> {
    if spec.name.is_empty() || spec.name.chars().count() > LONGEST_NAME || spec.name.chars().any(char::is_control) {
        let message = format!("a token's name has 1 to {LONGEST_NAME} printable characters");
        return Err(Refusal::new(Code::RequestInvalid, message));
    }
    let lifetime = match spec.lifetime {
        Some(0) => return Err(Refusal::new(Code::RequestInvalid, "a lifetime has at least one second")),
        Some(lifetime) => Some(
            i64::try_from(lifetime)
                .ok()
                .filter(|seconds| *seconds <= LONGEST_LIFETIME)
                .map(|seconds| seconds * 1000)
                .ok_or_else(|| Refusal::new(Code::RequestInvalid, "the lifetime is too long; leave it out"))?,
        ),
        None => None,
    };
    let new = NewToken { name: spec.name, role: spec.role, tenant: spec.tenant, lifetime };
    let (token, secret) = server.store.create_token(new, &actor).await?;
    let made = api::TokenMade { token: view::token(token), secret: secret.expose().clone() };
    Ok((StatusCode::CREATED, Json(made)))
}

pub(crate) async fn list(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
) -> Result<Json<api::TokenList>, Refusal> {
    let tokens = server.store.tokens(actor.tenant.as_ref()).await?;
    Ok(Json(api::TokenList { tokens: tokens.into_iter().map(view::token).collect() }))
}

pub(crate) async fn revoke(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
) -> Result<StatusCode, Refusal> {
    server.store.revoke_token(names.text("token"), &actor).await?;
    Ok(StatusCode::NO_CONTENT)
}
