use async_trait::async_trait;
use serde::{Deserialize, Serialize};

/// The lossless side of an apply. Every call is awaited, every write is fenced by whoever implements it.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Awaited before a provider call that changes something. All intents of one call are written, or none.
    /// A refusal means that the calls are not made.
    async fn intend(&self, intents: Vec<Intent>) -> Result<Vec<IntentId>, Refused>;

    /// What became of an intent: a checkpoint of that one object. An engine that cannot tell object by object leaves
    /// its intents open; the caller closes them together with the whole state.
    async fn settle(&self, intent: IntentId, settlement: Settlement) -> Result<(), Refused>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IntentId(pub i64);

/// The entry before a provider call that changes something. It holds secrets: whoever stores it seals it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    pub address: String,
    /// The key of the deposed object that the call is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deposed: Option<String>,
    pub action: IntentAction,
    pub type_name: String,
    pub provider: String,
    /// What an update finds, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prior: Option<serde_json::Value>,
    /// The planned attributes as JSON; what is not known yet is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub private: Vec<u8>,
}

/// Whether a call in doubt may be repeated depends on this alone: a create never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntentAction {
    Create,
    Update,
    Delete,
    Import,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settlement {
    /// The object as it is now: a `resources` entry of state format 4 with this one instance.
    Object(serde_json::Value),
    Gone,
    /// The call failed and had no effect.
    Untouched,
}

/// The journal did not take an entry. Nothing more may be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("another worker has taken over this deployment")]
    Fenced,
    #[error("this worker's lease was not renewed in time")]
    LeaseLost,
    #[error("the journal cannot be written: {0}")]
    Unavailable(String),
}
