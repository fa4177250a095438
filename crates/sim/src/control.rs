//! The simulator's own interface, below `/_sim`, for those who run it: what exists, what was asked, what is to go
//! wrong, and starting over.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::faults::Fault;

/// What a vendor's world must offer.
pub trait World: Send + Sync + 'static {
    fn desk(&self) -> &Desk;
    /// All that exists, in a form that tests compare with states.
    fn ledger(&self) -> Value;
    /// Empties the world.
    fn empty(&self);
}

pub fn router<W: World>(world: Arc<W>) -> Router {
    Router::new()
        .route("/_sim/ledger", get(ledger::<W>))
        .route("/_sim/calls", get(calls::<W>))
        .route("/_sim/faults", get(faults::<W>).post(order::<W>).delete(clear_faults::<W>))
        .route("/_sim/reset", post(reset::<W>))
        .with_state(world)
}

async fn ledger<W: World>(State(world): State<Arc<W>>) -> Json<Value> {
    Json(world.ledger())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallsQuery {
    #[serde(default)]
    after: u64,
    #[serde(default = "page")]
    limit: usize,
}

fn page() -> usize {
    1_000
}

async fn calls<W: World>(State(world): State<Arc<W>>, Query(query): Query<CallsQuery>) -> Json<Value> {
    let calls = world.desk().calls();
    let page = calls.after(query.after, query.limit.min(10_000));
    Json(json!({"count": calls.count(), "totals": calls.totals(), "calls": page}))
}

async fn faults<W: World>(State(world): State<Arc<W>>) -> Json<Value> {
    Json(json!({"faults": world.desk().faults().open()}))
}

async fn order<W: World>(State(world): State<Arc<W>>, Json(fault): Json<Fault>) -> StatusCode {
    world.desk().faults().order(fault);
    StatusCode::NO_CONTENT
}

async fn clear_faults<W: World>(State(world): State<Arc<W>>) -> StatusCode {
    world.desk().faults().clear();
    StatusCode::NO_CONTENT
}

async fn reset<W: World>(State(world): State<Arc<W>>) -> StatusCode {
    world.empty();
    world.desk().reset();
    StatusCode::NO_CONTENT
}
