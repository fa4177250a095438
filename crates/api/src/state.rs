use landform_domain::RunId;
use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// One version of a deployment's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StateVersion {
    pub version: i64,
    /// The deployment's generation then.
    pub generation: i64,
    /// The run that wrote it; not there if a person or an outside client did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Runs go on from this one.
    pub current: bool,
    pub created_at: Timestamp,
}

/// The newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StateVersionList {
    pub versions: Vec<StateVersion>,
}

/// Objects, resources or modules that the state is to forget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StateRemove {
    pub addresses: Vec<String>,
}

/// An object, a resource or a module that is to have another address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StateMove {
    pub from: String,
    pub to: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StateEdited {
    /// The version that was made.
    pub version: i64,
    /// What was removed, or where it is now.
    pub addresses: Vec<String>,
}
