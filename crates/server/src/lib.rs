//! The REST door: it parses, authorises, lets the store decide, and answers.
//!
//! Promises: 202 is sent after the commit, never before; wrong input gets problem+json with a code and a hint, in
//! bounded time and memory; what belongs to another tenant does not exist for a token that is bound to one; a sensitive
//! value is shown only to those who may see secrets, and who ask for it. What there is stands in one table
//! (`route/table.rs`).
//! Absent on purpose: how work is carried out. The server never calls a worker; what a worker has done comes back
//! through the store, whose doorbell wakes those who wait here.

mod archive;
mod audit;
mod connections;
mod deployments;
mod drift;
mod failures;
mod metrics;
mod pause;
mod problem;
mod request;
mod resources;
mod route;
mod runs;
mod serve;
mod state;
mod templates;
mod tenants;
mod tokens;
mod view;
mod wait;
mod webhooks;

use std::sync::Arc;

use axum::extract::{OriginalUri, Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use landform_domain::Code;
use landform_store::Store;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower_http::trace::TraceLayer;

use crate::problem::Refusal;

pub use serve::Tls;

/// Archives that are unpacked at the same time; each may take some 40 MB.
const PUSHES_AT_ONCE: usize = 4;

/// Event streams and waiting callers, which hold a connection each.
const WAITING_AT_ONCE: usize = 1024;

#[derive(Clone)]
struct Server {
    store: Store,
    stopping: CancellationToken,
    pushes: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    openapi: Arc<str>,
}

/// Serves until `stopping` fires, then lets requests in flight come to their end. Whoever waits for a run is sent away
/// at once: the run is in the store, and can be asked for again.
pub async fn serve(listener: TcpListener, store: Store, tls: Option<Tls>, stopping: CancellationToken) {
    let router = router(store, stopping.clone());
    serve::serve(listener, router, tls, stopping).await;
}

/// Serves what those need who watch a process that does no more than to carry out runs: `/metrics`, for whoever may see it
/// elsewhere, `/healthz` and `/readyz`.
pub async fn serve_figures(listener: TcpListener, store: Store, tls: Option<Tls>, stopping: CancellationToken) {
    let figures = route::gate::router_at("/metrics");
    let router = furnish(figures, Server::new(store, stopping.clone(), "".into()));
    serve::serve(listener, router, tls, stopping).await;
}

fn router(store: Store, stopping: CancellationToken) -> Router {
    let document = route::openapi::document();
    let document = serde_json::to_string(&document).expect("the document is plain data");
    let router = route::gate::router().route("/openapi.json", get(openapi));
    furnish(router, Server::new(store, stopping, document.into()))
}

impl Server {
    fn new(store: Store, stopping: CancellationToken, openapi: Arc<str>) -> Server {
        Server {
            store,
            stopping,
            pushes: Arc::new(Semaphore::new(PUSHES_AT_ONCE)),
            waiting: Arc::new(Semaphore::new(WAITING_AT_ONCE)),
            openapi,
        }
    }
}

fn furnish(router: Router<Server>, server: Server) -> Router {
    router
        .route("/healthz", get(health))
        .route("/readyz", get(ready))
        .method_not_allowed_fallback(unknown_method)
        .fallback(unknown_route)
        .layer(TraceLayer::new_for_http().make_span_with(span))
        .with_state(server)
}

/// The path without its query, which may be anything.
fn span(request: &Request) -> tracing::Span {
    tracing::info_span!("request", method = %request.method(), path = request.uri().path())
}

async fn health() -> Json<serde_json::Value> {
    Json(serde_json::json!({"status": "ok"}))
}

/// Whether a write would be accepted now: 503 with the reason while the store is away or its disk is full.
async fn ready(State(server): State<Server>) -> Result<Json<serde_json::Value>, Refusal> {
    if server.stopping.is_cancelled() {
        return Err(Refusal::new(Code::StoreUnavailable, "the server is stopping"));
    }
    server.store.ready().await.map_err(|reason| Refusal::new(Code::StoreUnavailable, reason))?;
    Ok(Json(serde_json::json!({"status": "ready"})))
}

async fn openapi(State(server): State<Server>) -> Response {
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (kind, server.openapi.to_string()).into_response()
}

/// At what is open to everybody. The router adds which methods there are.
async fn unknown_method(request: Request) -> Refusal {
    route::gate::not_allowed(&request)
}

/// Under `/v1`, what is not there is nobody's business without a token.
async fn unknown_route(
    State(server): State<Server>,
    OriginalUri(uri): OriginalUri,
    request: Request,
) -> Result<(), Refusal> {
    if uri.path().starts_with("/v1/") {
        route::gate::identify(&server, request.headers(), request.extensions()).await?;
    }
    let shown: String = uri.path().chars().take(200).collect();
    Err(Refusal::new(Code::RouteUnknown, format!("there is nothing at {shown}")))
}
