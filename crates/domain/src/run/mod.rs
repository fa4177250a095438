//! The run: one change that brings a deployment to a generation. Its status carries its data, and [`step`] owns all
//! legal moves.
//!
//! ```text
//!            claim              plan made            approve
//!  queued ──────────▶ planning ───────────▶ awaiting ─────────▶ queued (apply the plan)
//!    ▲                 │    │                 approval              │ claim
//!    │ recover         │    └── no approval needed ──▶ applying ◀───┘
//!    │                 ▲                              │   │
//!  needs recovery ◀────┼── in doubt ── claim again ◀──┘   └──▶ succeeded, failed, cancelled
//!                      └── recovered ──┘   (lease lost)
//! ```
//! A trial (`plan_only`) ends as planned or unchanged. A drift check goes from queued to planning to its end, and gives way to
//! any other run of its deployment. Any other run ends as succeeded, unchanged, failed, cancelled, rejected, expired or superseded, and never leaves that.

mod step;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::recovery::Doubt;
use crate::{Problem, RunId};

pub use step::{Action, Command, Moved, Outcome, step};

/// The number of a deployment's desired state.
pub type Generation = i64;

#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub id: RunId,
    pub kind: Kind,
    pub generation: Generation,
    pub requires_approval: bool,
    /// It ends with its plan.
    pub plan_only: bool,
    /// Somebody wants it to stop at the next safe point.
    pub cancel_requested: bool,
    pub status: Status,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Apply,
    Destroy,
    /// A drift check: it looks whether everything is as the state says, and changes nothing, not even the state.
    Check,
}

/// Who comes first where there is not enough for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Urgency {
    /// It takes only what nobody else wants now.
    Idle,
    /// Somebody waits for it.
    Change,
}

impl Kind {
    pub fn urgency(self) -> Urgency {
        match self {
            Kind::Apply | Kind::Destroy => Urgency::Change,
            Kind::Check => Urgency::Idle,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Apply => "apply",
            Kind::Destroy => "destroy",
            Kind::Check => "check",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Queued(Next),
    Planning,
    AwaitingApproval {
        plan: PlanSummary,
        /// Milliseconds since 1970, by the database's clock.
        expires_at: i64,
    },
    Applying(Phase),
    /// Objects may exist that no state has. The deployment waits for answers.
    NeedsRecovery {
        doubts: Vec<Doubt>,
    },
    /// A trial has made its plan; nothing was changed.
    Planned {
        plan: PlanSummary,
    },
    Succeeded,
    /// There was nothing to do.
    Unchanged,
    Failed(Problem),
    Cancelled,
    Rejected {
        by: String,
        reason: String,
    },
    Expired,
    Superseded {
        by: RunId,
    },
}

/// What a worker does first with a queued run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    Plan,
    /// The plan was approved and is applied as it is.
    Apply,
    /// Plan after a recovery, before any newer generation: objects that are to be adopted are part of this one.
    PlanRecovered,
}

/// Where an apply stands. It stays "applying" through a crash, so nothing can supersede it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Running,
    /// Its worker is gone.
    Interrupted,
    /// A worker finds out what the dead one has done.
    Recovering,
}

/// What a plan would do, for people who decide about it. Holds no values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PlanSummary {
    pub creates: u64,
    pub updates: u64,
    pub replaces: u64,
    pub deletes: u64,
    /// Objects that are left where they are and managed no longer. One whose replacement is created counts there too.
    #[serde(default)]
    pub forgets: u64,
    pub imports: u64,
    /// The first of them, in the order of address.
    pub changes: Vec<PlannedChange>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PlannedChange {
    pub address: String,
    pub action: String,
}

impl Status {
    /// What [`Status::word`] can say.
    pub const WORDS: [&str; 13] = [
        "queued",
        "planning",
        "awaiting_approval",
        "applying",
        "needs_recovery",
        "planned",
        "succeeded",
        "unchanged",
        "failed",
        "cancelled",
        "rejected",
        "expired",
        "superseded",
    ];

    /// Of these, what is not an end.
    pub const UNFINISHED: &[&str] = &["queued", "planning", "awaiting_approval", "applying", "needs_recovery"];

    pub fn word(&self) -> &'static str {
        match self {
            Status::Queued(_) => "queued",
            Status::Planning => "planning",
            Status::AwaitingApproval { .. } => "awaiting_approval",
            Status::Applying(_) => "applying",
            Status::NeedsRecovery { .. } => "needs_recovery",
            Status::Planned { .. } => "planned",
            Status::Succeeded => "succeeded",
            Status::Unchanged => "unchanged",
            Status::Failed(_) => "failed",
            Status::Cancelled => "cancelled",
            Status::Rejected { .. } => "rejected",
            Status::Expired => "expired",
            Status::Superseded { .. } => "superseded",
        }
    }

    /// It will never change again.
    pub fn is_final(&self) -> bool {
        match self {
            Status::Queued(_)
            | Status::Planning
            | Status::AwaitingApproval { .. }
            | Status::Applying(_)
            | Status::NeedsRecovery { .. } => false,
            Status::Planned { .. }
            | Status::Succeeded
            | Status::Unchanged
            | Status::Failed(_)
            | Status::Cancelled
            | Status::Rejected { .. }
            | Status::Expired
            | Status::Superseded { .. } => true,
        }
    }

    /// Nothing more happens by itself: it has ended, or waits for a person.
    pub fn rests(&self) -> bool {
        self.is_final() || matches!(self, Status::AwaitingApproval { .. } | Status::NeedsRecovery { .. })
    }

    /// The run has done what it was to do.
    pub fn is_success(&self) -> bool {
        matches!(self, Status::Planned { .. } | Status::Succeeded | Status::Unchanged)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
