use std::collections::BTreeMap;
use std::path::PathBuf;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{Applied, ApplyRequest, EngineError, Journal, Plan, PlanRequest, Progress, Stop, Straight, Unsupported};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    Native,
    Cli,
}

/// One configuration with one set of inputs and one state: what a plan is made from.
#[derive(Debug)]
pub struct Workspace {
    /// The folder of `.tf` files. Never written to.
    pub folder: PathBuf,
    /// A folder of this run alone, 0700. It outlives a crash of the worker, so that a state file in it can be recovered.
    pub scratch: PathBuf,
    pub variables: BTreeMap<String, Variable>,
    /// State format 4, as any `tofu` writes it; `None` before the first apply.
    pub state: Option<Vec<u8>>,
    /// What providers may see of an environment. Nothing else is handed down.
    pub environment: BTreeMap<String, String>,
}

/// A value for a variable of the root module. It is data: nothing in it is ever read as a template.
#[derive(Clone)]
pub struct Variable {
    pub value: serde_json::Value,
    pub sensitive: bool,
    /// For the message about a value that does not fit.
    pub origin: landform_lang::Origin,
}

impl Variable {
    pub fn new(value: serde_json::Value, sensitive: bool) -> Variable {
        Variable { value, sensitive, origin: landform_lang::Origin::Outside }
    }
}

impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.sensitive { f.write_str("(sensitive)") } else { write!(f, "{}", self.value) }
    }
}

#[async_trait]
pub trait Engine: Send + Sync {
    fn kind(&self) -> EngineKind;

    /// Name and version as a plan records it, for instance `opentofu 1.12.6`.
    fn version(&self) -> String;

    /// What in this workspace the engine would not do exactly as OpenTofu does; empty means that it can be run here.
    /// Nothing is started and nothing is changed.
    async fn unsupported(&self, workspace: &Workspace) -> Result<Vec<Unsupported>, EngineError>;

    async fn plan(&self, request: PlanRequest<'_>, progress: &dyn Progress, stop: &Stop) -> Result<Plan, EngineError>;

    /// Applies exactly the plan. A failure half-way is an [`Applied`] with diagnostics and the state as it is now;
    /// an `Err` means that nothing was changed, or (`EngineError::Refused`, `EngineError::Lost`) that only the journal
    /// knows what was.
    async fn apply(
        &self,
        request: ApplyRequest<'_>,
        journal: &dyn Journal,
        progress: &dyn Progress,
        stop: &Stop,
    ) -> Result<Applied, EngineError>;

    /// The same in one go, if this engine has a cheaper way for that.
    fn straight(&self) -> Option<&dyn Straight> {
        None
    }

    /// The newest state that an apply left behind in `scratch` when its process died, if this engine leaves one there.
    async fn salvage(&self, scratch: &std::path::Path) -> Result<Option<Vec<u8>>, EngineError>;
}
