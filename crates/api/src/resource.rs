use landform_domain::{DeploymentName, TenantName};
use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// An object of a state, without its values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Resource {
    pub tenant: TenantName,
    pub deployment: DeploymentName,
    /// As `tofu state list` writes it.
    pub address: String,
    /// `managed` or `data`.
    pub mode: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub name: String,
    pub provider: String,
    /// The attribute `id`, unless there is none or it is sensitive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// When anything about it last changed.
    pub updated_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ResourceList {
    pub resources: Vec<Resource>,
    /// For `after` of the next page. A page that looked for a rare text may be empty and still have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
