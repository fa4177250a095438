use landform_domain::TenantName;
use serde::{Deserialize, Serialize};

use crate::Timestamp;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tenant {
    pub name: TenantName,
    pub created_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TenantList {
    pub tenants: Vec<Tenant>,
}
