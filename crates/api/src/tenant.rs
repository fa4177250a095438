use landform_domain::TenantName;
use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The body of a `PUT`. What is left out stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantSpec {
    /// Whoever asked for a change must not approve it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separate_approver: Option<bool>,
    /// Runs under way at the same time; 0 is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// Deployments; 0 is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_deployments: Option<u32>,
    /// Runs that wait for a worker; 0 is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_waiting_runs: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Tenant {
    pub name: TenantName,
    #[serde(default)]
    pub separate_approver: bool,
    /// Left out where there is no limit, as the two below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_deployments: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_waiting_runs: Option<i64>,
    /// By its own switch; all runs may be paused besides.
    #[serde(default)]
    pub paused: bool,
    pub created_at: Timestamp,
}

/// What holds runs back: they go on when every switch that concerns them is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Paused {
    pub everything: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TenantList {
    pub tenants: Vec<Tenant>,
}
