//! Versa Director's REST interface: workflows for templates, device groups and devices, whose deployments are tasks that
//! a client polls; configuration below templates and devices (VPN profiles, BGP); basic and token login.
//!
//! Objects have names, and a name that is taken is refused. What another object needs cannot be deleted.

mod paths;
mod session;
mod tasks;
mod world;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::Response;
use serde_json::{Value, json};

use crate::control;
use crate::desk::{self, Answer, Asked, Counter, Desk, Options};
use paths::Operation;
use session::Sessions;
use world::World;

pub fn router(options: Options) -> Router {
    let task = options.task;
    let versa = Arc::new(Versa {
        desk: Desk::new(options),
        sessions: Sessions::default(),
        world: Mutex::new(World::new(task)),
    });
    Router::new().fallback(serve).with_state(Arc::clone(&versa)).merge(control::router(versa))
}

struct Versa {
    desk: Desk,
    sessions: Sessions,
    world: Mutex<World>,
}

impl control::World for Versa {
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

/// An answer that is an error, in the vendor's form.
#[derive(Debug)]
pub struct Refusal {
    pub status: StatusCode,
    pub message: String,
}

impl Refusal {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub fn missing(what: &str, name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("{what} {name} does not exist"))
    }

    pub fn answer(&self) -> Answer {
        let code = self.status.as_u16();
        let body =
            json!({"code": code, "http_status_code": code, "message": self.message, "description": self.message});
        Answer::new(self.status, body)
    }
}

async fn serve(State(versa): State<Arc<Versa>>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let attempt = async {
        let body = if body.is_empty() { Value::Null } else { read(&body)? };
        if uri.path() == "/auth/token" && method == Method::POST {
            return Ok(desk::respond(Answer::ok(versa.sessions.login(&body)?)));
        }
        let user = versa.sessions.user(&headers)?;
        let operation = Operation::read(&method, uri.path(), uri.query().unwrap_or_default())?;
        let names = [operation.name().to_owned()];
        let asked = Asked { account: &user, operations: &names };
        Ok(versa.desk.attend(asked, &Turn { versa: &versa, operation: &operation, body: &body }).await)
    };
    attempt.await.unwrap_or_else(|refusal: Refusal| desk::respond(refusal.answer()))
}

fn read(body: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, format!("not JSON: {error}")))
}

/// One request at the counter.
struct Turn<'a> {
    versa: &'a Versa,
    operation: &'a Operation,
    body: &'a Value,
}

impl Counter for Turn<'_> {
    fn carry_out(&self, fail_later: bool) -> Answer {
        let mut world = self.versa.world.lock().unwrap_or_else(PoisonError::into_inner);
        world.carry_out(self.operation, self.body, fail_later).unwrap_or_else(|refusal| refusal.answer())
    }

    /// The vendor publishes no limits; where a test sets some, they are signalled in the ordinary way.
    fn rate_limited(&self, operation: &str, wait: Duration) -> Answer {
        Answer::too_many_requests(json!({"code": 429, "message": format!("too many requests: {operation}")}), wait)
    }
}
