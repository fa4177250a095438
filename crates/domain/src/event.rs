use serde::{Deserialize, Serialize};

use crate::EngineName;
use crate::drift::DriftSummary;
use crate::recovery::Answer;
use crate::run::Status;

/// One entry of a run's log. Secrets never appear here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventBody {
    /// The run has this status now.
    Status(Status),
    CancelRequested {
        by: String,
    },
    /// A doubt was answered.
    Answered {
        address: String,
        answer: Answer,
        by: String,
    },
    /// Which engine carries the run out; `reasons` say why it is not the native one, with file and line.
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
