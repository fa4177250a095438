//! The desk before a vendor's world: what happens to every call, whoever the vendor is. It is logged, held to the
//! limits, delayed, carried out, and broken if somebody ordered that.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};

use crate::calls::{Calls, Outcome};
use crate::faults::{FaultKind, Faults};
use crate::limits::{Limits, Meter};

#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How long the vendor takes over every call.
    pub latency: Duration,
    pub limits: Limits,
    /// How long a task runs, where the vendor works with tasks.
    pub task: Duration,
}

/// What a vendor says to a call.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub body: Value,
    pub retry_after: Option<u64>,
}

impl Answer {
    pub fn new(status: StatusCode, body: Value) -> Self {
        Self { status, body, retry_after: None }
    }

    pub fn ok(body: Value) -> Self {
        Self::new(StatusCode::OK, body)
    }

    pub fn too_many_requests(body: Value, wait: Duration) -> Self {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Self { status: StatusCode::TOO_MANY_REQUESTS, body, retry_after: Some(seconds) }
    }
}

/// A call as the desk sees it: who asks, and for what.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub account: &'a str,
    pub operations: &'a [String],
}

/// What a vendor must say of itself for the desk to do its part.
pub trait Counter {
    /// Carries the call out. `fail_later` was ordered by a fault.
    fn carry_out(&self, fail_later: bool) -> Answer;
    /// The rate-limit answer in the body, for vendors that signal it so.
    fn rate_limited(&self, operation: &str, wait: Duration) -> Answer;
}

#[derive(Debug)]
pub struct Desk {
    began: Instant,
    latency: Duration,
    meter: Mutex<Meter>,
    faults: Mutex<Faults>,
    calls: Mutex<Calls>,
}

impl Desk {
    pub fn new(options: Options) -> Self {
        Self {
            began: Instant::now(),
            latency: options.latency,
            meter: Mutex::new(Meter::new(options.limits)),
            faults: Mutex::default(),
            calls: Mutex::default(),
        }
    }

    pub fn faults(&self) -> MutexGuard<'_, Faults> {
        lock(&self.faults)
    }

    pub fn calls(&self) -> MutexGuard<'_, Calls> {
        lock(&self.calls)
    }

    pub fn reset(&self) {
        lock(&self.meter).reset();
        self.faults().clear();
        self.calls().clear();
    }

    pub async fn attend(&self, asked: Asked<'_>, counter: &impl Counter) -> Response {
        let now = Instant::now();
        let fault = self.faults().take(asked.account, asked.operations);
        let record = |outcome| {
            let at_ms = u64::try_from(now.duration_since(self.began).as_millis()).unwrap_or(u64::MAX);
            self.calls().record(at_ms, asked.account, asked.operations, outcome);
        };
        let first = asked.operations.first().map(String::as_str).unwrap_or_default();
        match fault {
            Some(FaultKind::Unavailable) => {
                record(Outcome::Unavailable);
                return respond(unavailable());
            }
            Some(FaultKind::Hang) => {
                record(Outcome::Hung);
                return std::future::pending().await;
            }
            Some(FaultKind::RateLimit) => {
                record(Outcome::RateLimited);
                return respond(counter.rate_limited(first, Duration::from_secs(1)));
            }
            Some(FaultKind::TooManyRequests) => {
                record(Outcome::RateLimited);
                return respond(Answer::too_many_requests(
                    json!({"message": "too many requests"}),
                    Duration::from_secs(1),
                ));
            }
            Some(FaultKind::UnavailableAfter | FaultKind::HangAfter | FaultKind::BrokenBody | FaultKind::FailLater)
            | None => {}
        }
        let admitted = lock(&self.meter).admit(asked.account, asked.operations, now);
        if let Err((operation, wait)) = admitted {
            record(Outcome::RateLimited);
            return respond(counter.rate_limited(&operation, wait));
        }
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
        let answer = counter.carry_out(fault == Some(FaultKind::FailLater));
        match fault {
            Some(FaultKind::UnavailableAfter) => {
                record(Outcome::Unavailable);
                respond(unavailable())
            }
            Some(FaultKind::HangAfter) => {
                record(Outcome::Hung);
                std::future::pending().await
            }
            Some(FaultKind::BrokenBody) => {
                record(Outcome::Broken);
                let whole = answer.body.to_string();
                let half = whole.get(..whole.len() / 2).unwrap_or("{").to_owned();
                with_body(&answer, half)
            }
            _ => {
                let refused = answer.status.is_client_error() || answer.body.get("errors").is_some();
                record(if refused { Outcome::Refused } else { Outcome::Answered });
                respond(answer)
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while the lock was held is a failed call; what it left is still a consistent collection.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unavailable() -> Answer {
    Answer::new(StatusCode::SERVICE_UNAVAILABLE, json!({"message": "service unavailable"}))
}

pub fn respond(answer: Answer) -> Response {
    let body = if answer.body.is_null() { String::new() } else { answer.body.to_string() };
    with_body(&answer, body)
}

fn with_body(answer: &Answer, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(seconds) = answer.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
