//! What every request under `/v1` passes: whose token, whose things, which right.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, OriginalUri, Path, Request};
use axum::http::{Extensions, HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{RequestExt, Router};
use base64::Engine;
use landform_base::secret::SecretString;
use landform_domain::{Actor, Code, Problem, RunId, TenantName};

use super::{Route, Tenancy, table};
use crate::Server;
use crate::problem::Refusal;

/// Everything of the table, behind the gate.
pub(crate) fn router() -> Router<Server> {
    router_of(table())
}

/// What there is of the table at one path.
pub(crate) fn router_at(path: &str) -> Router<Server> {
    router_of(table().into_iter().filter(|route| route.path == path).collect())
}

/// A path has one entry for all of its methods: the router knows only those of RFC 9110, and a state is locked with one of
/// its own.
fn router_of(routes: Vec<Route>) -> Router<Server> {
    let mut router = Router::new();
    let mut paths: Vec<&'static str> = routes.iter().map(|route| route.path).collect();
    paths.dedup();
    for path in paths {
        let of_path: Arc<[Route]> = routes.iter().filter(|route| route.path == path).cloned().collect();
        let enter = move |axum::extract::State(server): axum::extract::State<Server>, request: Request| {
            let of_path = of_path.clone();
            async move { enter(&of_path, server, request).await.unwrap_or_else(Refusal::into_response) }
        };
        router = router.route(path, axum::routing::any(enter));
    }
    router
}

async fn enter(of_path: &[Route], server: Server, mut request: Request) -> Result<Response, Refusal> {
    let actor = identify(&server, request.headers(), request.extensions()).await?;
    let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
    let Some(route) = of_path.iter().find(|route| route.method == *method) else {
        return Err(unknown_method(&request, of_path));
    };
    check_tenancy(&server, route, &actor, &mut request).await?;
    actor.require(route.right)?;
    // A typing mistake is never silent; but whoever speaks to the state backend may add what it likes.
    let query = request.uri().query().unwrap_or_default();
    if route.query.is_none() && !query.is_empty() && !route.path.starts_with("/v1/state/") {
        return Err(Refusal::new(Code::RequestInvalid, "this takes no parameters behind a question mark"));
    }
    request.extensions_mut().insert(actor);
    Ok((route.handle)(request, server).await)
}

pub(crate) async fn identify(server: &Server, headers: &HeaderMap, extensions: &Extensions) -> Result<Actor, Refusal> {
    let token = token(headers)?;
    let origin = extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip().to_string());
    let actor = server.store.authenticate(&token, &origin.unwrap_or_default()).await?;
    actor.ok_or_else(|| Refusal::new(Code::TokenInvalid, "the token is not known"))
}

/// A bearer token; or the password of Basic authentication, which is all that some clients can send.
fn token(headers: &HeaderMap) -> Result<SecretString, Refusal> {
    let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let token = match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Some(token.trim().to_owned()),
        Some((scheme, both)) if scheme.eq_ignore_ascii_case("basic") => {
            let both = base64::engine::general_purpose::STANDARD.decode(both.trim()).unwrap_or_default();
            let both = String::from_utf8(both).unwrap_or_default();
            Some(both.split_once(':').map(|(_, password)| password.to_owned()).unwrap_or_default())
        }
        _ => None,
    };
    token.map(SecretString::from).ok_or_else(|| Refusal::new(Code::TokenMissing, "the request has no bearer token"))
}

/// What belongs to another tenant does not exist for a bound actor: the answer is the one for a name that nobody has.
async fn check_tenancy(server: &Server, route: &Route, actor: &Actor, request: &mut Request) -> Result<(), Refusal> {
    let Some(own) = &actor.tenant else { return Ok(()) };
    match route.tenancy {
        Tenancy::Narrowed | Tenancy::Shared => Ok(()),
        Tenancy::Fleet => Err(Refusal::new(
            Code::Forbidden,
            format!("the token is bound to the tenant `{own}`; this is for all of them"),
        )),
        Tenancy::Tenant => {
            let name: TenantName = named(request, "tenant").await?;
            if actor.sees(&name) { Ok(()) } else { Err(unknown_tenant(&name)) }
        }
        Tenancy::Run => {
            let id: RunId = named(request, "run").await?;
            let run = server.store.run(id).await?;
            if actor.sees(&run.tenant) {
                Ok(())
            } else {
                Err(Refusal::new(Code::RunUnknown, format!("there is no run {id}")))
            }
        }
    }
}

pub(crate) fn unknown_tenant(name: &TenantName) -> Refusal {
    Refusal::new(Code::TenantUnknown, format!("there is no tenant `{name}`"))
}

async fn named<T: std::str::FromStr<Err = Problem>>(request: &mut Request, name: &str) -> Result<T, Refusal> {
    let names = request.extract_parts::<Path<std::collections::HashMap<String, String>>>().await;
    let Path(names) = names.map_err(|e| Refusal::new(Code::RequestInvalid, e.body_text()))?;
    Ok(names.get(name).map(String::as_str).unwrap_or_default().parse::<T>()?)
}

fn unknown_method(request: &Request, of_path: &[Route]) -> Refusal {
    let mut allowed: Vec<&str> = of_path.iter().map(|route| route.method.as_str()).collect();
    // What can be read has its headers, too.
    if allowed.contains(&"GET") {
        allowed.push("HEAD");
    }
    not_allowed(request).allowing(allowed.join(", "))
}

pub(crate) fn not_allowed(request: &Request) -> Refusal {
    let path = request.extensions().get::<OriginalUri>().map_or(request.uri().path(), |uri| uri.0.path());
    let shown: String = path.chars().take(200).collect();
    let refusal = Refusal::new(Code::RouteUnknown, format!("{} is not possible at {shown}", request.method()));
    refusal.with_status(StatusCode::METHOD_NOT_ALLOWED)
}
