use landform_domain::{DeploymentName, RunId, TenantName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Timestamp;

/// Who wants to be told about a tenant's runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookSpec {
    pub url: String,
    /// Statuses of runs, such as `failed`, or `drifted` and `drift_resolved`; all of them if it is empty.
    #[serde(default)]
    pub events: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Webhook {
    pub id: String,
    pub url: String,
    pub events: Vec<String>,
    pub created_at: Timestamp,
}

/// A webhook that was just made. The secret that signs its messages is shown this once.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct WebhookMade {
    pub webhook: Webhook,
    pub secret: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WebhookList {
    pub webhooks: Vec<Webhook>,
}

/// One message to a webhook, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Delivery {
    pub id: i64,
    /// Such as `run.succeeded` or `deployment.drifted`.
    pub event: String,
    pub tenant: TenantName,
    pub deployment: DeploymentName,
    pub run: RunId,
    pub generation: i64,
    /// `pending`, `delivered` or `given_up`.
    pub status: String,
    pub attempts: i64,
    /// The HTTP status of the last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeliveryList {
    /// The newest first.
    pub deliveries: Vec<Delivery>,
}
