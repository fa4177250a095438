use std::collections::BTreeMap;

use landform_domain::{ConnectionName, DeploymentName, EngineChoice, TemplateName, TenantName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Drift, ProblemBody, Run, Timestamp};

/// What a deployment is to be: the body of a `PUT`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeploymentSpec {
    pub template: TemplateName,
    /// The newest one if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_version: Option<i64>,
    /// Values for the template's variables. They are data: nothing in them is read as a template.
    #[serde(default)]
    pub inputs: BTreeMap<String, Value>,
    /// Names of inputs that are shown masked from now on. Later on, one that is left out of `inputs` keeps its value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sensitive: Vec<String>,
    /// Names of connections, whose values reach the template's ephemeral variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<ConnectionName>,
    #[serde(default)]
    pub engine: EngineChoice,
    /// Left out, it stays as it is; a new deployment needs none. To switch it off takes the right to approve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires_approval: Option<bool>,
    /// Seconds that a plan or an apply may take; it is stopped then. Left out, it is what the server was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Deployment {
    pub tenant: TenantName,
    pub name: DeploymentName,
    pub template: TemplateName,
    pub template_version: i64,
    /// Sensitive ones are masked.
    pub inputs: BTreeMap<String, Value>,
    #[serde(default)]
    pub connections: Vec<ConnectionName>,
    pub engine: EngineChoice,
    pub requires_approval: bool,
    /// Seconds that a plan or an apply may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<u32>,
    /// Its runs wait: because of itself, its tenant, or everything.
    #[serde(default)]
    pub paused: bool,
    /// The number of the desired state; also the ETag.
    pub generation: i64,
    /// The newest generation that was applied completely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_generation: Option<i64>,
    /// Its end was asked for.
    pub destroying: bool,
    /// The last run that was no drift check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<Run>,
    #[serde(default)]
    pub drift: Drift,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// One line of a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchLine {
    pub method: BatchMethod,
    pub tenant: TenantName,
    pub deployment: DeploymentName,
    /// With `put` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<DeploymentSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_generation: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BatchMethod {
    Put,
    Delete,
}

/// What became of one line: the run, or the problem.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BatchResult {
    /// Counts from 1, as an editor counts.
    pub line: u64,
    /// What a request of its own would have been answered with.
    pub status: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<ProblemBody>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DeploymentList {
    pub deployments: Vec<Deployment>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Output {
    pub value: Value,
    #[serde(rename = "type")]
    pub ty: Value,
    /// The value is masked unless it was asked for.
    #[serde(default)]
    pub sensitive: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
pub struct Outputs(pub BTreeMap<String, Output>);

/// The answer to a write: committed, and this run carries it out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Accepted {
    pub run: Run,
    /// There only if the caller waited and the run succeeded in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Outputs>,
}
