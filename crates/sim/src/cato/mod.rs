//! Cato's management API: one GraphQL endpoint for everything.
//!
//! Whatever valid selection a client sends is executed, with aliases, fragments and variables, because the vendor's
//! client fails on any field that it did not ask for. On success there is no `errors` field at all.

mod bgp;
mod graphql;
mod lookup;
mod roots;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::post;
use serde_json::{Value, json};

use crate::control;
use crate::desk::{self, Answer, Asked, Counter, Desk, Options};
use crate::limits::{Limits, Window};
use graphql::{Request, Schema};
use world::World;

/// The limits in the vendor's documentation, per account and operation.
pub fn published_limits() -> Limits {
    Limits::others(&[Window::per_minutes(120, 1)])
        .operation("accountSnapshot", &[Window::per_seconds(1, 1), Window::per_minutes(30, 1)])
        .operation("entityLookup", &[Window::per_minutes(30, 1), Window::per_minutes(1_500, 300)])
}

pub fn router(options: Options) -> Router {
    let cato = Arc::new(Cato {
        desk: Desk::new(options),
        schema: Schema::load(),
        world: Mutex::default(),
        signals: AtomicU64::new(0),
    });
    Router::new().route("/api/v1/graphql2", post(graphql)).with_state(Arc::clone(&cato)).merge(control::router(cato))
}

struct Cato {
    desk: Desk,
    schema: Schema,
    world: Mutex<World>,
    /// How many rate-limit answers there were: they come in two forms, by turns.
    signals: AtomicU64,
}

impl control::World for Cato {
    fn desk(&self) -> &Desk {
        &self.desk
    }

    fn ledger(&self) -> Value {
        self.world.lock().unwrap_or_else(PoisonError::into_inner).ledger()
    }

    fn empty(&self) {
        self.world.lock().unwrap_or_else(PoisonError::into_inner).empty();
    }
}

async fn graphql(State(cato): State<Arc<Cato>>, headers: HeaderMap, body: Bytes) -> Response {
    if headers.get("x-api-key").is_none_or(|key| key.is_empty()) {
        return desk::respond(Answer::new(StatusCode::FORBIDDEN, errors("permission denied: x-api-key is missing")));
    }
    let request = match cato.schema.read(&body) {
        Ok(request) => request,
        Err(message) => return desk::respond(Answer::new(StatusCode::BAD_REQUEST, errors(&message))),
    };
    let header = headers.get("x-account-id").and_then(|account| account.to_str().ok()).unwrap_or_default();
    let account = request.account().unwrap_or(header).to_owned();
    let operations = request.operations();
    let asked = Asked { account: &account, operations: &operations };
    cato.desk.attend(asked, &Turn { cato: &cato, request: &request, account: &account }).await
}

fn errors(message: &str) -> Value {
    json!({"errors": [{"message": message}]})
}

/// One request at the counter.
struct Turn<'a> {
    cato: &'a Cato,
    request: &'a Request<'a>,
    account: &'a str,
}

impl Counter for Turn<'_> {
    fn carry_out(&self, fail_later: bool) -> Answer {
        if fail_later {
            return Answer::ok(errors("internal error"));
        }
        let mut world = self.cato.world.lock().unwrap_or_else(PoisonError::into_inner);
        Answer::ok(roots::execute(self.request, self.account, &mut world))
    }

    /// Usually an error in a body with status 200, sometimes a 429.
    fn rate_limited(&self, operation: &str, wait: Duration) -> Answer {
        let body = errors(&format!("rate limit for operation: {operation}"));
        match self.cato.signals.fetch_add(1, Ordering::Relaxed) % 3 {
            2 => Answer::too_many_requests(body, wait),
            _ => Answer::ok(body),
        }
    }
}
