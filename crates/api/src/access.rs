use landform_domain::{Role, TenantName};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::Timestamp;

/// The body that makes a token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenSpec {
    /// What people call it: a person, a pipeline.
    pub name: String,
    pub role: Role,
    /// Nothing of any other tenant exists for this token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantName>,
    /// Seconds after which it works no more; without them it lasts until it is withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<u64>,
}

/// A token as it is listed: everything but itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    pub id: String,
    pub name: String,
    pub role: Role,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantName>,
    /// The id of the token that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// A token that was just made. The secret is shown this once; the server keeps a hash of it.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct TokenMade {
    pub token: Token,
    pub secret: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TokenList {
    pub tokens: Vec<Token>,
}

/// Who did what, from where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    pub seq: i64,
    pub at: Timestamp,
    /// The token's id.
    pub actor: String,
    pub actor_name: String,
    /// The address that the request came from.
    pub origin: String,
    /// Noun and verb, such as `run.approve`.
    pub action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantName>,
    pub target: String,
    pub detail: Value,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditList {
    /// The newest first.
    pub entries: Vec<AuditEntry>,
}
