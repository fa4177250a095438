//! A run's events: a page of them, or a stream that goes on until the run rests.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::sse::{Event as Message, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, Stream};
use landform_api::{Event, EventList};
use landform_domain::{Code, RunId};
use landform_store::{Doorbell, News};
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;

use crate::problem::Refusal;
use crate::request::{Asked, Names};
use crate::{Server, view};

const PAGE: u32 = 500;
const LOOK_EVERY: Duration = Duration::from_secs(1);
const KEEP_ALIVE: Duration = Duration::from_secs(15);

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventsQuery {
    /// The number of the last event that was seen.
    #[serde(default)]
    after: i64,
}

pub(crate) async fn get(
    State(server): State<Server>,
    names: Names,
    headers: HeaderMap,
    Asked(query): Asked<EventsQuery>,
) -> Result<Response, Refusal> {
    let run = names.run()?;
    // Whether the run exists is part of the answer even if it has no events after that one.
    server.store.run(run).await?;
    if !wants_stream(&headers) {
        let events = server.store.events(run, query.after, PAGE).await?;
        return Ok(Json(EventList { events: events.into_iter().map(view::event).collect() }).into_response());
    }
    let after = last_seen(&headers)?.unwrap_or(query.after);
    let place = server.waiting.clone().try_acquire_owned();
    let place = place.map_err(|_| Refusal::new(Code::Overloaded, "too many are watching"))?;
    Ok(Sse::new(follow(server, run, after, place)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accept.split(',').any(|kind| kind.trim().starts_with("text/event-stream"))
}

fn last_seen(headers: &HeaderMap) -> Result<Option<i64>, Refusal> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| Refusal::new(Code::RequestInvalid, "`Last-Event-ID` is the number of an event"))
}

struct Following {
    server: Server,
    run: RunId,
    after: i64,
    bell: Doorbell,
    pending: VecDeque<Event>,
    ended: bool,
    _place: OwnedSemaphorePermit,
}

/// Each event once, in order. When the run has ended or waits for a person a last message says so; without that
/// message the connection broke, and the client comes back with the number of the last event it has seen.
fn follow(
    server: Server,
    run: RunId,
    after: i64,
    place: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<Message, Infallible>> {
    let bell = server.store.doorbell_of(run, News::Any);
    let following = Following { server, run, after, bell, pending: VecDeque::new(), ended: false, _place: place };
    stream::unfold(following, |mut following| async move {
        let message = following.next().await?;
        Some((Ok(message), following))
    })
}

impl Following {
    async fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                self.after = event.seq;
                let data = serde_json::to_string(&event).expect("an event is plain data");
                return Some(Message::default().id(event.seq.to_string()).event("event").data(data));
            }
            if self.ended || self.server.stopping.is_cancelled() {
                return None;
            }
            // The status is read first: what it says is then among the events that are read after it.
            let Ok(run) = self.server.store.run(self.run).await else { return None };
            let Ok(events) = self.server.store.events(self.run, self.after, PAGE).await else { return None };
            self.pending.extend(events.into_iter().map(view::event));
            if !self.pending.is_empty() {
                continue;
            }
            if run.status.rests() {
                self.ended = true;
                let data = serde_json::to_string(&view::run(run)).expect("a run is plain data");
                return Some(Message::default().event("end").data(data));
            }
            tokio::select! {
                () = self.bell.rung(LOOK_EVERY) => {}
                () = self.server.stopping.cancelled() => {}
            }
        }
    }
}
