use std::collections::BTreeMap;

use landform_domain::recovery::{Answer, Doubt};
use landform_domain::run::{Kind, PlanSummary};
use landform_domain::{DeploymentName, EngineName, RunId, TenantName};
use serde::{Deserialize, Serialize};

use crate::{ProblemBody, Timestamp};

/// One change that brings a deployment to a generation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Run {
    pub id: RunId,
    pub tenant: TenantName,
    pub deployment: DeploymentName,
    pub kind: Kind,
    pub generation: i64,
    /// One word, such as `queued` or `succeeded`; the fields below say more where there is more.
    pub status: String,
    /// The status will not change any more.
    pub finished: bool,
    /// Why it waits although it is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Blocked>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineName>,
    pub requires_approval: bool,
    /// A trial: it ends with its plan.
    #[serde(default)]
    pub plan_only: bool,
    /// Who asked for it: the name of a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    pub cancel_requested: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanSummary>,
    /// When a plan that awaits approval is given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Objects that may exist although no state has them; `recover` answers for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<Doubt>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<ProblemBody>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<Rejection>,
    /// How often a worker has taken it up.
    pub attempt: i64,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

impl Run {
    pub fn succeeded(&self) -> bool {
        matches!(self.status.as_str(), "succeeded" | "unchanged" | "planned")
    }

    /// It goes on only after somebody has done something.
    pub fn waits_for_a_person(&self) -> bool {
        matches!(self.status.as_str(), "awaiting_approval" | "needs_recovery")
    }
}

/// Nobody takes the run up yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Blocked {
    pub reason: String,
    /// Not there where somebody's word ends it, and no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The run of the same deployment that it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunList {
    /// The newest first.
    pub runs: Vec<Run>,
}

/// What a further run of a deployment shall do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// Make the plan and change nothing.
    #[serde(default)]
    pub plan_only: bool,
    /// Addresses of objects to replace although nothing about them has changed.
    #[serde(default)]
    pub replace: Vec<String>,
    /// Objects that exist already, to be taken over: their addresses and ids.
    #[serde(default)]
    pub adopt: BTreeMap<String, String>,
    /// Addresses where something was to be adopted and is no more.
    #[serde(default)]
    pub absent: Vec<String>,
}

/// The run whose template and inputs are wanted again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rollback {
    pub run: RunId,
}

/// Deployments whose last run failed with the same code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FailureGroup {
    pub code: String,
    pub count: i64,
    /// One of them, to look at.
    pub newest: RunId,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FailureList {
    /// The most frequent first.
    pub failures: Vec<FailureGroup>,
}

/// Which failed runs to make again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryAll {
    pub code: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantName>,
    /// At most so many, the oldest first; 0 means 1000, which is also the most.
    #[serde(default)]
    pub limit: u32,
}

/// Who did not want a plan, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Rejection {
    pub by: String,
    pub reason: String,
}

/// The body of `reject`. Who rejects is known from the token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reject {
    #[serde(default)]
    pub reason: String,
}

/// The body of `recover`: an answer for each object in doubt, by its address.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Recovery {
    pub answers: BTreeMap<String, Answer>,
}
