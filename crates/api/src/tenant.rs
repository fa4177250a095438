use landform_domain::TenantName;
use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The body of a `PUT`: a tenant has nothing but its name yet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TenantSpec {}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tenant {
    pub name: TenantName,
    pub created_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TenantList {
    pub tenants: Vec<Tenant>,
}
