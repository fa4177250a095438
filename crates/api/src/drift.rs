use landform_domain::{DeploymentName, DriftStatus, DriftSummary, DriftedObject, RunId, TemplateName, TenantName};
use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// What is known of a deployment's drift.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Drift {
    pub status: DriftStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_at: Option<Timestamp>,
    /// The run that found this, or that brought things to order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drifted_since: Option<Timestamp>,
    pub summary: DriftSummary,
    /// What is different, object by object; what is sensitive is masked. At most 200, and none in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diff: Vec<DriftedObject>,
    /// The last check, if it failed. What is said above is then from an earlier one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedCheck>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<DriftScheduled>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FailedCheck {
    pub run: RunId,
    pub code: String,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DriftScheduled {
    /// Seconds between two checks.
    pub every: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Timestamp>,
}

/// How often a deployment is checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DriftSchedule {
    /// Seconds between two checks, from a minute to 31 days; null is never.
    pub every: Option<i64>,
}

/// A deployment with what is known of its drift.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DriftedDeployment {
    pub tenant: TenantName,
    pub deployment: DeploymentName,
    pub template: TemplateName,
    pub template_version: i64,
    pub drift: Drift,
}

/// Objects of one type of one template that are gone, or that differ in the same attributes: perhaps for one reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DriftGroup {
    pub template: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub gone: bool,
    #[serde(default)]
    pub attributes: Vec<String>,
    pub objects: i64,
    pub deployments: i64,
    /// One of them, to look at: `TENANT/DEPLOYMENT`.
    pub example: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DriftList {
    /// In the order of tenant and name.
    pub deployments: Vec<DriftedDeployment>,
    /// What the drifted objects of all of them have in common, the most frequent first. On the first page only.
    #[serde(default)]
    pub groups: Vec<DriftGroup>,
    /// `after` for the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
