//! How often each operation was asked for, and how that ended: for the whole process, and for the holder of a seat.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Operations are names that a client sends: beyond so many they are counted as one.
const MOST_OPERATIONS: usize = 500;
const THE_REST: &str = "(more)";

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The vendor has answered, whatever it said.
    Answered,
    /// The vendor has refused it for its rate. It was, or could have been, sent again.
    RateLimited,
    /// It was not sent: its turn did not come in time, or too many waited.
    Refused,
    /// Sent, and no answer came.
    Silence,
    /// Sent, and the answer leaves it open whether it was carried out.
    Unclear,
    /// It was not sent: the same call was before, and nobody knows whether it was carried out.
    Again,
    /// The vendor could not be reached.
    Unreachable,
}

impl Outcome {
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Answered => "answered",
            Outcome::RateLimited => "rate_limited",
            Outcome::Refused => "refused",
            Outcome::Silence => "silence",
            Outcome::Unclear => "unclear",
            Outcome::Again => "again",
            Outcome::Unreachable => "unreachable",
        }
    }

    fn was_sent(self) -> bool {
        !matches!(self, Outcome::Refused | Outcome::Again)
    }

    /// Nobody knows whether it was carried out.
    pub(crate) fn leaves_open(self) -> bool {
        matches!(self, Outcome::Silence | Outcome::Unclear)
    }
}

/// A figure since the start of the process.
#[derive(Clone, Debug, PartialEq)]
pub struct Total {
    pub vendor: String,
    pub operation: String,
    pub outcomes: Vec<(Outcome, u64)>,
    /// How long calls of it have waited for their turn, all together.
    pub held: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct Totals(Mutex<BTreeMap<(String, String), Counted>>);

#[derive(Clone, Debug, Default)]
struct Counted {
    outcomes: BTreeMap<Outcome, u64>,
    held: Duration,
}

impl Totals {
    pub(crate) fn add(&self, vendor: &str, operation: &str, outcome: Outcome, held: Duration) {
        let mut all = lock(&self.0);
        let mut key = (vendor.to_owned(), operation.to_owned());
        if all.len() >= MOST_OPERATIONS && !all.contains_key(&key) {
            key.1 = THE_REST.to_owned();
        }
        let counted = all.entry(key).or_default();
        *counted.outcomes.entry(outcome).or_default() += 1;
        counted.held += held;
    }

    pub(crate) fn all(&self) -> Vec<Total> {
        let total = |((vendor, operation), counted): (&(String, String), &Counted)| Total {
            vendor: vendor.clone(),
            operation: operation.clone(),
            outcomes: counted.outcomes.iter().map(|(outcome, count)| (*outcome, *count)).collect(),
            held: counted.held,
        };
        lock(&self.0).iter().map(total).collect()
    }
}

/// What the holder of a seat has asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Calls that were sent, by operation.
    pub sent: BTreeMap<String, u64>,
    pub rate_limited: u64,
    pub refused: u64,
    /// Sent without an answer.
    pub silences: u64,
    /// Sent, with an answer that leaves it open whether they were carried out.
    pub unclear: u64,
    /// Not sent, since the same call was before and nobody knows what became of it.
    pub again: u64,
    /// How long calls have waited, all together.
    pub held: Duration,
}

impl Tally {
    /// How often nobody knew whether a call was carried out.
    pub fn doubts(&self) -> u64 {
        self.silences + self.unclear + self.again
    }

    pub(crate) fn add(&mut self, operation: &str, outcome: Outcome, held: Duration) {
        self.held += held;
        match outcome {
            Outcome::Refused => self.refused += 1,
            Outcome::RateLimited => self.rate_limited += 1,
            Outcome::Silence => self.silences += 1,
            Outcome::Unclear => self.unclear += 1,
            Outcome::Again => self.again += 1,
            Outcome::Answered | Outcome::Unreachable => {}
        }
        if outcome.was_sent() {
            let full = self.sent.len() >= MOST_OPERATIONS && !self.sent.contains_key(operation);
            let operation = if full { THE_REST } else { operation };
            *self.sent.entry(operation.to_owned()).or_default() += 1;
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while it was held leaves whole values: each change is one step.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
