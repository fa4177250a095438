//! The second half of an attempt: a plan is carried out, and the store is told what came of it.

use std::sync::Arc;

use landform_domain::Code;
use landform_domain::run::Outcome;
use landform_engine::{Applied, ApplyRequest, Engine, EngineError, Workspace};
use landform_store::{Adoption, Finish, StoreError};

use super::{Attempt, Done, End, broken, end, fail};
use crate::ports::FencedJournal;
use crate::report;

impl Attempt<'_> {
    pub(super) async fn apply_approved(&self, workspace: Workspace, plan: &[u8]) -> Result<Done, StoreError> {
        let Some(planned_by) = self.claim.engine_before else {
            return Ok(fail(broken("nobody knows which engine made the plan".to_owned())));
        };
        let engine = match self.shop.engines.get(planned_by, &workspace) {
            Ok(engine) => engine,
            Err(problem) => return Ok(fail(problem)),
        };
        if let Err(error) = self.mark(&*engine) {
            return Ok(fail(broken(format!("the worker's folders: {error}"))));
        }
        self.apply(engine, workspace, plan).await
    }

    pub(super) async fn apply(
        &self,
        engine: Arc<dyn Engine>,
        workspace: Workspace,
        plan: &[u8],
    ) -> Result<Done, StoreError> {
        let journal = self.journal();
        let request = ApplyRequest { workspace: &workspace, plan };
        let applying = engine.apply(request, &journal, &self.reports, &self.clock.stop);
        match self.in_time(self.alive(&*engine, applying)).await {
            Ok(applied) => Ok(self.applied(&workspace, applied, &journal)),
            Err(error) => Ok(self.not_applied(error)),
        }
    }

    pub(crate) fn not_applied(&self, error: EngineError) -> Done {
        match error {
            EngineError::Stopped => end(self.overtime().map_or(Outcome::Stopped, Outcome::Failed)),
            // Only the journal knows what was done: the next attempt begins with recovery.
            EngineError::Refused(_) | EngineError::Lost(_) => {
                tracing::warn!(run = %self.claim.lease.run, %error, "an apply was interrupted");
                Done::End(if self.overtime().is_some() { End::GiveUp } else { End::GiveBack })
            }
            error => {
                self.tell(&error);
                fail(report::engine_failure(Code::ApplyFailed, &error, |text| self.reports.redact(text)))
            }
        }
    }

    pub(crate) fn applied(&self, workspace: &Workspace, applied: Applied, journal: &FencedJournal) -> Done {
        self.reports.tell(&applied.diagnostics);
        if !applied.complete() && journal.leaves_doubt(&applied.state) {
            // Recovery finds out what is there, and asks about the rest.
            return Done::End(End::GiveBack);
        }
        let complete = applied.complete();
        let outcome = if complete {
            Outcome::Succeeded
        } else if applied.stopped {
            self.overtime().map_or(Outcome::Stopped, Outcome::Failed)
        } else {
            let redact = |text: &str| self.reports.redact(text);
            Outcome::Failed(report::failure(Code::ApplyFailed, &applied.diagnostics, redact))
        };
        let adopted = |adoption: &Adoption| {
            landform_engine::state::has_object(&applied.state, &adoption.address, None).unwrap_or(false)
        };
        let outputs = applied
            .outputs
            .iter()
            .filter_map(|(name, output)| serde_json::to_value(output).ok().map(|value| (name.clone(), value)));
        Done::Finish(Box::new(Finish {
            engines: Vec::new(),
            reports: Vec::new(),
            memory: None,
            outcome,
            adopted: self
                .claim
                .adopt
                .iter()
                .filter(|entry| adopted(entry))
                .map(|adoption| adoption.address.clone())
                .collect(),
            outputs: complete.then(|| outputs.collect()),
            state: Some(applied.state).filter(|state| workspace.state.as_ref() != Some(state)),
        }))
    }
}
