use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Diagnostic, EngineKind, Workspace};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    #[default]
    Normal,
    Destroy,
    RefreshOnly,
}

#[derive(Debug)]
pub struct PlanRequest<'a> {
    pub workspace: &'a Workspace,
    pub mode: Mode,
    /// Objects that exist already and are to be taken over (imported) by this plan.
    pub adopt: Vec<Adopt>,
    /// Addresses of objects to replace even if nothing about them changed.
    pub replace: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adopt {
    pub address: String,
    pub id: String,
}

/// What a run would do. `bytes` are the engine's own and hold secrets: seal them before they are kept.
#[derive(Clone, Serialize, Deserialize)]
pub struct Plan {
    pub engine: EngineKind,
    pub version: String,
    pub bytes: Vec<u8>,
    /// In the order of address; objects that stay as they are do not appear.
    pub changes: Vec<Change>,
    pub outputs_change: bool,
    /// False: applying would leave state and outputs as they are.
    pub effective: bool,
    /// In the format of `tofu show -json PLAN`; holds secrets too.
    pub json: serde_json::Value,
    pub warnings: Vec<Diagnostic>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub address: String,
    /// The key of a deposed object, if the change is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deposed: Option<String>,
    pub action: Action,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importing: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    NoOp,
    Create,
    Read,
    Update,
    Delete,
    /// Delete, then create.
    Replace,
    /// Create, then delete.
    CreateBeforeDestroy,
    Forget,
}

#[derive(Debug)]
pub struct ApplyRequest<'a> {
    pub workspace: &'a Workspace,
    /// The bytes of a [`Plan`] of the same engine and version.
    pub plan: &'a [u8],
}

/// Where an apply ended.
#[derive(Clone)]
pub struct Applied {
    /// The whole state, whether or not everything went well.
    pub state: Vec<u8>,
    pub outputs: BTreeMap<String, Output>,
    pub diagnostics: Vec<Diagnostic>,
    /// The caller's stop came before all was done.
    pub stopped: bool,
}

impl Applied {
    pub fn complete(&self) -> bool {
        !self.stopped && !self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Output {
    pub value: serde_json::Value,
    #[serde(rename = "type")]
    pub ty: serde_json::Value,
    #[serde(default)]
    pub sensitive: bool,
}
