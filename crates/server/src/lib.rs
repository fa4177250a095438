//! The REST door: it parses, authorises, lets the store decide, and answers.
//!
//! Promises: 202 is sent after the commit, never before; wrong input gets problem+json with a code and a hint, in
//! bounded time and memory; a sensitive value is shown only to an admin who asks for it.
//! Absent on purpose: how work is carried out. The server never calls a worker; what a worker has done comes back
//! through the store, whose doorbell wakes those who wait here.

mod archive;
mod auth;
mod deployments;
mod events;
mod problem;
mod request;
mod runs;
mod templates;
mod tenants;
mod view;
mod wait;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{OriginalUri, Request};
use axum::http::{Method, StatusCode};
use axum::routing::{get, post, put};
use axum::{Json, Router, middleware};
use landform_domain::Code;
use landform_store::Store;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower_http::trace::TraceLayer;

use crate::problem::Refusal;

/// Archives that are unpacked at the same time; each may take some 40 MB.
const PUSHES_AT_ONCE: usize = 4;

/// Event streams and waiting callers, which hold a connection each.
const WAITING_AT_ONCE: usize = 1024;

/// How long requests in flight may take after the server was asked to stop.
const DRAIN: Duration = Duration::from_secs(10);

#[derive(Clone)]
struct Server {
    store: Store,
    stopping: CancellationToken,
    pushes: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

/// Serves until `stopping` fires, then lets requests in flight come to their end. Whoever waits for a run is sent away
/// at once: the run is in the store, and can be asked for again.
pub async fn serve(listener: TcpListener, store: Store, stopping: CancellationToken) -> std::io::Result<()> {
    let router = router(store, stopping.clone());
    let drained = {
        let stopping = stopping.clone();
        async move {
            stopping.cancelled().await;
            tokio::time::sleep(DRAIN).await;
        }
    };
    let serving = axum::serve(listener, router).with_graceful_shutdown(stopping.cancelled_owned());
    tokio::select! {
        result = serving.into_future() => result,
        () = drained => Ok(()),
    }
}

fn router(store: Store, stopping: CancellationToken) -> Router {
    let server = Server {
        store,
        stopping,
        pushes: Arc::new(Semaphore::new(PUSHES_AT_ONCE)),
        waiting: Arc::new(Semaphore::new(WAITING_AT_ONCE)),
    };
    let v1 = Router::new()
        .route("/tenants", get(tenants::list))
        .route("/tenants/{tenant}", put(tenants::put).get(tenants::get))
        .route("/templates", get(templates::list))
        .route("/templates/{template}", put(templates::push).get(templates::get))
        .route("/tenants/{tenant}/deployments", get(deployments::list))
        .route(
            "/tenants/{tenant}/deployments/{deployment}",
            put(deployments::put).get(deployments::get).delete(deployments::delete),
        )
        .route("/tenants/{tenant}/deployments/{deployment}/outputs", get(deployments::outputs))
        .route("/tenants/{tenant}/deployments/{deployment}/state", get(deployments::state))
        .route("/runs", get(runs::list))
        .route("/runs/{run}", get(runs::get))
        .route("/runs/{run}/events", get(events::get))
        .route("/runs/{run}/approve", post(runs::approve))
        .route("/runs/{run}/reject", post(runs::reject))
        .route("/runs/{run}/cancel", post(runs::cancel))
        .route("/runs/{run}/recover", post(runs::recover))
        .fallback(unknown_route)
        .method_not_allowed_fallback(unknown_method)
        .layer(middleware::from_fn_with_state(server.clone(), auth::require_token));
    Router::new()
        .nest("/v1", v1)
        .route("/healthz", get(health))
        .fallback(unknown_route)
        .method_not_allowed_fallback(unknown_method)
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

async fn unknown_route(OriginalUri(uri): OriginalUri) -> Refusal {
    let shown: String = uri.path().chars().take(200).collect();
    Refusal::new(Code::RouteUnknown, format!("there is nothing at {shown}"))
}

async fn unknown_method(method: Method, OriginalUri(uri): OriginalUri) -> Refusal {
    let shown: String = uri.path().chars().take(200).collect();
    let refusal = Refusal::new(Code::RouteUnknown, format!("{method} is not possible at {shown}"));
    refusal.with_status(StatusCode::METHOD_NOT_ALLOWED)
}
