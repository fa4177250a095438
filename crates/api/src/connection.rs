use std::collections::BTreeMap;

use landform_domain::{ConnectionName, DeploymentName};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::Timestamp;

/// A tenant's credentials: the body of a `PUT`. Sent again, it replaces all values and raises the version. They are
/// never shown, so this cannot be printed.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectionSpec {
    /// For variables that the template declares with `ephemeral = true` and `sensitive = true`.
    #[serde(default)]
    pub variables: BTreeMap<String, Value>,
    /// For providers that can be configured in no other way. The server must allow each by its name.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

/// What is shown of a connection: never a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Connection {
    pub name: ConnectionName,
    /// Rises with every rotation.
    pub version: i64,
    pub variables: Vec<String>,
    pub environment: Vec<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConnectionList {
    pub connections: Vec<Connection>,
}

/// How a connection is tried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectionTest {
    /// By a trial of this deployment; without it, of the first one that uses the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<DeploymentName>,
}
