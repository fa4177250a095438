use serde::{Deserialize, Serialize};

use crate::{Action, Diagnostic};

/// The lossy side of a run: for people who watch. Never waits; what does not fit is dropped and counted by the receiver.
pub trait Progress: Send + Sync {
    fn report(&self, event: ProgressEvent);

    /// The processes of the run have, or had, so many bytes of memory at one time. Told again when it is known better.
    fn memory(&self, _bytes: u64) {}
}

/// Secrets never appear here: an event names objects and actions, not values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgressEvent {
    Note {
        text: String,
    },
    Object {
        address: String,
        action: Action,
        stage: Stage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        millis: Option<u64>,
    },
    Diagnostic {
        diagnostic: Diagnostic,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Planned,
    Started,
    Done,
    Failed,
}

/// Nobody is watching.
pub struct Silent;

impl Progress for Silent {
    fn report(&self, _event: ProgressEvent) {}
}
