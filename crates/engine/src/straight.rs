use async_trait::async_trait;

use crate::{Applied, Change, Diagnostic, EngineError, Journal, PlanRequest, Progress, Stop};

/// Plan and apply in one go, for a run that nobody has to approve and whose plan nobody wants to keep: cheaper where an
/// engine starts a process for each of the two.
#[async_trait]
pub trait Straight: Send + Sync {
    /// Plans, asks the gate, and applies what the gate lets through. The gate is asked once at most, the journal only
    /// behind it; what [`crate::Engine::apply`] promises about the journal holds here too.
    async fn go(
        &self,
        request: PlanRequest<'_>,
        gate: &dyn Gate,
        journal: &dyn Journal,
        progress: &dyn Progress,
        stop: &Stop,
    ) -> Result<Gone, EngineError>;
}

/// Whoever drives the engine, between plan and apply.
#[async_trait]
pub trait Gate: Send + Sync {
    /// Told what would be done, before anything is. Only `true` lets it happen.
    async fn open(&self, outline: Outline) -> bool;
}

/// What is known of a plan that nobody keeps.
#[derive(Clone, Debug)]
pub struct Outline {
    /// In the order of address; objects that stay as they are do not appear.
    pub changes: Vec<Change>,
    pub outputs_change: bool,
    /// False: applying would leave state and outputs as they are.
    pub effective: bool,
    pub warnings: Vec<Diagnostic>,
    /// In the format of `tofu show -json PLAN`, if it can be had without more ado; holds secrets.
    pub json: Option<serde_json::Value>,
}

pub enum Gone {
    Through(Applied),
    /// The gate stayed closed; nothing was changed.
    Held,
    /// This cannot be done in one go. Nothing was changed, and the gate was not asked: plan, then apply.
    NotStraight,
}
