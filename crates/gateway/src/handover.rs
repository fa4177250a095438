//! What one owner of an account tells the next: times are distances, so that two machines' clocks need not agree.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Calls by operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handover(pub(crate) BTreeMap<String, Calls>);

/// Calls of one operation that its longest window can still see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calls {
    pub longest: Duration,
    /// How long ago they ended, and how many.
    pub ended: Vec<(Duration, usize)>,
}

/// Milliseconds.
#[derive(Serialize, Deserialize)]
struct Written {
    longest: u64,
    ended: Vec<(u64, usize)>,
}

impl Handover {
    pub fn to_json(&self) -> String {
        let millis = |time: &Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let written = |calls: &Calls| Written {
            longest: millis(&calls.longest),
            ended: calls.ended.iter().map(|(age, count)| (millis(age), *count)).collect(),
        };
        let all: BTreeMap<&String, Written> = self.0.iter().map(|(name, calls)| (name, written(calls))).collect();
        serde_json::to_string(&all).expect("names and numbers")
    }

    /// None if it was not written by [`Handover::to_json`].
    pub fn from_json(text: &str) -> Option<Handover> {
        let all: BTreeMap<String, Written> = serde_json::from_str(text).ok()?;
        let read = |written: Written| Calls {
            longest: Duration::from_millis(written.longest),
            ended: written.ended.into_iter().map(|(age, count)| (Duration::from_millis(age), count)).collect(),
        };
        Some(Handover(all.into_iter().map(|(name, written)| (name, read(written))).collect()))
    }
}
