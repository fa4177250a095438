use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Diagnostic, EngineKind, Intent, IntentAction, Severity, Workspace};

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
    /// Updates of which nobody knows whether they were made. An engine that can makes each of them again, unless reading
    /// the object proves how it is.
    pub doubted: Vec<Doubted>,
}

/// An update that was interrupted.
#[derive(Clone, PartialEq, Eq)]
pub struct Doubted {
    pub address: String,
    /// The attributes as the update found them and as it was to leave them. They hold secrets.
    pub either: Vec<serde_json::Value>,
}

impl Doubted {
    /// `None` if the intent is about anything else than an update.
    pub fn of(intent: &Intent) -> Option<Doubted> {
        let either = intent.prior.iter().chain(&intent.planned).cloned().collect();
        (intent.action == IntentAction::Update).then(|| Doubted { address: intent.address.clone(), either })
    }
}

/// What an engine has to say that cannot make an update again: the plan does nothing about these objects.
pub(crate) fn left_in_doubt(doubted: &[Doubted], changes: &[Change]) -> Vec<Diagnostic> {
    let untouched = doubted.iter().filter(|doubt| !changes.iter().any(|change| change.address == doubt.address));
    let warning = |doubt: &Doubted| {
        let detail = format!(
            "An update of {} was interrupted, and the plan leaves the object as the state has it. What its vendor never \
             tells (a key, a password) may be otherwise. Look at the object; if it is not as it should be, change it twice \
             or have it replaced.",
            doubt.address
        );
        let diagnostic = Diagnostic::error("Update in doubt", detail);
        Diagnostic { severity: Severity::Warning, address: Some(doubt.address.clone()), ..diagnostic }
    };
    untouched.map(warning).collect()
}

impl std::fmt::Debug for Doubted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Doubted({})", self.address)
    }
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
    /// Out of the state; what it stands for stays where it is.
    Forget,
    /// Forget, then create: a replacement that leaves the old object where it is.
    ForgetThenCreate,
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
