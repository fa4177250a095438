use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use landform_base::secret::SecretString;
use landform_domain::Code;
use landform_store::{Principal, Role};

use crate::Server;
use crate::problem::Refusal;

/// Lets a request through if its token is known, and tells the handler whose it is.
pub(crate) async fn require_token(
    State(server): State<Server>,
    mut request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    let token = bearer(request.headers())?;
    let principal = server.store.authenticate(&token).await?;
    let principal = principal.ok_or_else(|| Refusal::new(Code::TokenInvalid, "the token is not known"))?;
    request.extensions_mut().insert(principal);
    Ok(next.run(request).await)
}

fn bearer(headers: &HeaderMap) -> Result<SecretString, Refusal> {
    let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(SecretString::from(token.trim())),
        _ => Err(Refusal::new(Code::TokenMissing, "the request has no bearer token")),
    }
}

/// For what only an admin may see.
pub(crate) fn require_admin(principal: &Principal) -> Result<(), Refusal> {
    match principal.role {
        Role::Admin => Ok(()),
    }
}
