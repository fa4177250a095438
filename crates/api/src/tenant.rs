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
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Tenant {
    pub name: TenantName,
    #[serde(default)]
    pub separate_approver: bool,
    pub created_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TenantList {
    pub tenants: Vec<Tenant>,
}
