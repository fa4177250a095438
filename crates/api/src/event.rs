use landform_domain::recovery::Answer;
use landform_domain::{DriftSummary, EngineName, event};
use serde::{Deserialize, Serialize};

use crate::{ProblemBody, Timestamp};

/// One entry of a run's log. `seq` rises within the run and is the id of the event in a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Event {
    pub seq: i64,
    pub at: Timestamp,
    pub body: EventBody,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventBody {
    Status {
        status: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        problem: Option<ProblemBody>,
    },
    CancelRequested {
        by: String,
    },
    Answered {
        address: String,
        answer: Answer,
        by: String,
    },
    /// Which engine carries the run out, and why not the native one.
    Engine {
        engine: EngineName,
        version: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        reasons: Vec<String>,
    },
    /// What a drift check has found.
    Drift(DriftSummary),
    /// What the engine reports, in its own words.
    Progress(serde_json::Value),
    /// So many reports did not fit and were dropped.
    Dropped {
        count: u64,
    },
    Note {
        text: String,
    },
}

impl From<event::EventBody> for EventBody {
    fn from(body: event::EventBody) -> EventBody {
        use landform_domain::run::Status;
        match body {
            event::EventBody::Status(status) => EventBody::Status {
                status: status.word().to_owned(),
                problem: match &status {
                    Status::Failed(problem) => Some(ProblemBody::of(problem)),
                    _ => None,
                },
            },
            event::EventBody::CancelRequested { by } => EventBody::CancelRequested { by },
            event::EventBody::Answered { address, answer, by } => EventBody::Answered { address, answer, by },
            event::EventBody::Engine { engine, version, reasons } => EventBody::Engine { engine, version, reasons },
            event::EventBody::Drift(summary) => EventBody::Drift(summary),
            event::EventBody::Progress(report) => EventBody::Progress(report),
            event::EventBody::Dropped { count } => EventBody::Dropped { count },
            event::EventBody::Note { text } => EventBody::Note { text },
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EventList {
    /// In their order, those after the one that was named.
    pub events: Vec<Event>,
}
