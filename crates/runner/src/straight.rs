//! Plan and apply in one go, where the engine has a way for that and nobody wants the plan.

use std::sync::Mutex;

use async_trait::async_trait;
use landform_domain::run::Status;
use landform_engine::{EngineError, Gate, Gone, Outline, Workspace};
use landform_store::{Planned, StoreError};

use crate::attempt::{Attempt, Done, End};
use crate::choose::Chosen;
use crate::report;

impl Attempt<'_> {
    /// `None`: plan, then apply.
    pub(crate) async fn go_straight(&self, chosen: &Chosen, workspace: &Workspace) -> Result<Option<Done>, StoreError> {
        let Some(straight) = chosen.engine.straight() else { return Ok(None) };
        if self.claim.requires_approval || self.claim.plan_only || self.shop.keep_plans {
            return Ok(None);
        }
        self.chose(&chosen.engine, chosen.reasons.clone());
        let gate = PlanGate { attempt: self, workspace, answer: Mutex::new(None) };
        let request = self.plan_request(workspace);
        let journal = self.journal();
        let going = straight.go(request, &gate, &journal, &self.reports, &self.clock.stop);
        let gone = self.in_time(self.alive(&*chosen.engine, going)).await;
        let answer = gate.answer.into_inner().expect("no panic while held");
        Ok(match (gone, answer) {
            // Planning says it again; and where the choice of the engine is free, another one may be able to do it.
            (Ok(Gone::NotStraight), _) | (Err(EngineError::Unsupported(_)), None) => {
                self.take_tried();
                None
            }
            (Ok(Gone::Through(applied)), _) => Some(self.applied(workspace, applied, &journal)),
            (Err(error), None) => Some(self.not_planned(error)),
            (Err(error), Some(Ok(_))) => Some(self.not_applied(error)),
            (Ok(Gone::Held), None | Some(Ok(_))) => Some(Done::End(End::Clean)),
            (_, Some(Err(error))) => return Err(error),
        })
    }
}

/// Writes down what is planned, in the same step as ever; only a run that is then applying goes on.
struct PlanGate<'a, 'shop> {
    attempt: &'a Attempt<'shop>,
    workspace: &'a Workspace,
    answer: Mutex<Option<Result<Status, StoreError>>>,
}

#[async_trait]
impl Gate for PlanGate<'_, '_> {
    async fn open(&self, outline: Outline) -> bool {
        self.attempt.reports.tell(&outline.warnings);
        let planned = Planned {
            engines: self.attempt.take_tried(),
            reports: self.attempt.reports.so_far().await,
            summary: report::summary(&outline.changes),
            effective: outline.effective,
            plan: Vec::new(),
            json: outline.json.and_then(|json| serde_json::to_vec(&json).ok()),
            outputs: report::outputs(self.workspace.state.as_deref()),
            memory: self.attempt.memory(),
        };
        let answer = self.attempt.shop.store.planned(&self.attempt.claim.lease, planned).await;
        let open = matches!(answer, Ok(Status::Applying(_)));
        *self.answer.lock().expect("no panic while held") = Some(answer);
        open
    }
}
