use serde::{Deserialize, Serialize};

use crate::{Action, Address, Diagnostic};

/// The lossy side of a run: for people who watch. Never waits; what does not fit is dropped and counted by the receiver.
pub trait Progress: Send + Sync {
    fn report(&self, event: ProgressEvent);

    /// The same for whoever stands by and reads along: more often, and with the ids of objects. Nothing of it is kept.
    fn tell(&self, _moment: &Moment<'_>) {}

    /// The processes of the run have, or had, so many bytes of memory at one time. Told again when it is known better.
    fn memory(&self, _bytes: u64) {}
}

/// What happens to one object just now.
pub struct Moment<'a> {
    pub address: &'a Address,
    pub deposed: Option<&'a str>,
    pub work: Work,
    pub stage: Stage,
    /// The name and the value of what tells the object from others; empty if it has none, or if that is a secret.
    pub id: (&'static str, String),
    pub millis: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// How the object is now is asked.
    Refresh,
    /// An object that exists is looked for, while a plan is made.
    Find,
    /// It is taken over.
    Import,
    /// It is created, updated, deleted; or data is read.
    Change(Action),
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
