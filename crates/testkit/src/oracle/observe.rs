use std::collections::{BTreeMap, BTreeSet};
use std::process::Output;
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::transcript::canonical::Canonical;

/// All that can be seen of a step, without what may differ from run to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    pub step: String,
    /// Of the plan, or of the command where the step is one.
    pub planned: Ended,
    /// `show -json` of the plan.
    pub shown: Option<Json>,
    pub applied: Option<Ended>,
    /// The state file after the step; its outputs are among it.
    pub state: Option<Json>,
    /// What was printed, by command: `plan`, `show`, `apply`, and the standard error of each.
    pub texts: BTreeMap<String, String>,
    /// What the providers heard.
    pub calls: Canonical,
}

/// What programs read of a step: the streams of `-json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Streams {
    pub step: String,
    pub plan: Vec<Json>,
    pub apply: Option<Vec<Json>>,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub code: i32,
    /// The summaries of errors and warnings. How often each is said is a matter of presentation.
    pub errors: BTreeSet<String>,
    pub warnings: BTreeSet<String>,
}

/// What a terminal is told of colours.
static COLOUR: LazyLock<Regex> = LazyLock::new(|| Regex::new("\u{1b}\\[[0-9;]*m").expect("the pattern is one"));

/// Where a cycle begins is drawn by lot.
pub(super) fn in_order(summary: &str) -> String {
    let Some(members) = summary.strip_prefix("Cycle: ") else { return summary.to_owned() };
    let mut members: Vec<&str> = members.split(", ").collect();
    members.sort_unstable();
    format!("Cycle: {}", members.join(", "))
}

impl Ended {
    pub fn of(output: &Output) -> Ended {
        let mut ended =
            Ended { code: output.status.code().unwrap_or(-1), errors: BTreeSet::new(), warnings: BTreeSet::new() };
        for stream in [&output.stdout, &output.stderr] {
            for line in COLOUR.replace_all(&String::from_utf8_lossy(stream), "").lines() {
                let line = line.trim_start_matches(['│', ' ']);
                if let Some(summary) = line.strip_prefix("Error: ") {
                    ended.errors.insert(in_order(summary.trim()));
                } else if let Some(summary) = line.strip_prefix("Warning: ") {
                    ended.warnings.insert(summary.trim().to_owned());
                }
            }
        }
        ended
    }

    pub fn failed(&self) -> bool {
        !matches!(self.code, 0 | 2)
    }
}
