//! The log of every call, for those who want to prove how often a vendor was asked.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

/// Beyond this many the oldest calls are forgotten; the totals are not.
const KEPT: usize = 500_000;

#[derive(Clone, Debug, Serialize)]
pub struct Call {
    /// Counts from 1 without gaps.
    pub number: u64,
    /// When it arrived: milliseconds since the simulator began, by a clock that never goes back.
    pub at_ms: u64,
    pub account: String,
    pub operations: Vec<String>,
    pub outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Answered,
    Refused,
    RateLimited,
    Unavailable,
    Hung,
    Broken,
}

#[derive(Debug, Default)]
pub struct Calls {
    kept: VecDeque<Call>,
    count: u64,
    totals: BTreeMap<(String, Outcome), u64>,
}

impl Calls {
    pub fn record(&mut self, at_ms: u64, account: &str, operations: &[String], outcome: Outcome) {
        self.count += 1;
        for operation in operations {
            *self.totals.entry((operation.clone(), outcome)).or_default() += 1;
        }
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        let call =
            Call { number: self.count, at_ms, account: account.to_owned(), operations: operations.to_vec(), outcome };
        self.kept.push_back(call);
    }

    /// Calls with a number above `after`, the oldest first.
    pub fn after(&self, after: u64, limit: usize) -> Vec<Call> {
        let first = self.kept.partition_point(|call| call.number <= after);
        self.kept.range(first..).take(limit).cloned().collect()
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// How often each operation had each outcome.
    pub fn totals(&self) -> BTreeMap<&str, BTreeMap<Outcome, u64>> {
        let mut totals: BTreeMap<&str, BTreeMap<Outcome, u64>> = BTreeMap::new();
        for ((operation, outcome), count) in &self.totals {
            totals.entry(operation).or_default().insert(*outcome, *count);
        }
        totals
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }
}
