//! The first half of an attempt: which engine plans, and what becomes of its plan.

use std::sync::Arc;

use landform_domain::run::{Kind, PlanSummary, Status};
use landform_domain::{Code, EngineChoice, EngineName, Problem};
use landform_engine::{Adopt, Engine, EngineError, Mode, Plan, PlanRequest, Progress, ProgressEvent, Workspace};
use landform_store::{Adoption, Planned, StoreError};

use super::{Attempt, Done, End, MOST_ATTEMPTS, broken, fail};
use crate::choose::{Chosen, explain, name};
use crate::{recover, report};

impl Attempt<'_> {
    pub(super) async fn plan_and_apply(&self, workspace: Workspace) -> Result<Done, StoreError> {
        if self.claim.attempt > MOST_ATTEMPTS {
            return Ok(fail(broken(format!("given up after {} attempts", self.claim.attempt - 1))));
        }
        if self.claim.kind == Kind::Destroy
            && let Err(problem) = self.nothing_to_adopt(workspace.state.as_deref())
        {
            return Ok(fail(problem));
        }
        if self.claim.kind == Kind::Destroy && workspace.state.is_none() {
            return self.nothing_to_do().await;
        }
        self.warn_of_nothing_to_replace(workspace.state.as_deref());
        let chosen = match self.shop.engines.choose(self.claim.engine, &workspace).await {
            Ok(chosen) => chosen,
            Err(problem) => return Ok(fail(problem)),
        };
        if let Err(error) = self.mark(&*chosen.engine) {
            return Ok(fail(broken(format!("the worker's folders: {error}"))));
        }
        if let Some(done) = self.go_straight(&chosen, &workspace).await? {
            return Ok(done);
        }
        let (engine, plan) = match self.plan(chosen, &workspace).await {
            Ok(planned) => planned,
            Err(error) => return Ok(self.not_planned(error)),
        };
        self.reports.tell(&plan.warnings);
        let planned = Planned {
            engines: self.take_tried(),
            reports: self.reports.so_far().await,
            summary: report::summary(&plan.changes),
            effective: plan.effective,
            plan: plan.bytes.clone(),
            json: serde_json::to_vec(&plan.json).ok(),
            outputs: report::outputs(workspace.state.as_deref()),
            memory: self.memory(),
        };
        match self.shop.store.planned(&self.claim.lease, planned).await? {
            Status::Applying(_) => self.apply(engine, workspace, &plan.bytes).await,
            _ => Ok(Done::End(End::Clean)),
        }
    }

    /// An engine passes over an address that it does not find, which may be a typing mistake. A later attempt may have replaced
    /// half of it already, and a `moved` block may know it by another name: so it is no more than a warning, once.
    fn warn_of_nothing_to_replace(&self, state: Option<&[u8]>) {
        if self.claim.attempt > 1 {
            return;
        }
        for address in &self.claim.replace {
            let there =
                state.is_some_and(|state| landform_engine::state::has_object(state, address, None).unwrap_or(true));
            if !there {
                let text = format!("warning: the state has no object at {address}, which is to be replaced");
                self.reports.report(ProgressEvent::Note { text });
            }
        }
    }

    /// A destroy imports nothing, so what exists and is in no state would be forgotten.
    fn nothing_to_adopt(&self, state: Option<&[u8]>) -> Result<(), Problem> {
        for adoption in &self.claim.adopt {
            if !recover::is_adopted(adoption, state)? {
                let Adoption { address, id, .. } = adoption;
                let message = format!("{address} is to be adopted as {id} and is in no state yet");
                return Err(Problem::new(Code::AdoptionPending, message));
            }
        }
        Ok(())
    }

    async fn nothing_to_do(&self) -> Result<Done, StoreError> {
        let planned = Planned {
            engines: Vec::new(),
            reports: Vec::new(),
            summary: PlanSummary::default(),
            effective: false,
            plan: Vec::new(),
            json: None,
            outputs: None,
            memory: None,
        };
        self.shop.store.planned(&self.claim.lease, planned).await?;
        Ok(Done::End(End::Clean))
    }

    /// Plans with the chosen engine; where the choice is free and the native engine finds only now what it cannot do,
    /// with the CLI. After this the engine never changes.
    pub(crate) async fn plan(
        &self,
        chosen: Chosen,
        workspace: &Workspace,
    ) -> Result<(Arc<dyn Engine>, Plan), EngineError> {
        let Chosen { engine, reasons } = chosen;
        let free = self.claim.engine == EngineChoice::Auto && name(engine.kind()) == EngineName::Native;
        self.chose(&engine, reasons);
        let planning = engine.plan(self.plan_request(workspace), &self.reports, &self.clock.stop);
        let items = match self.in_time(self.alive(&*engine, planning)).await {
            Err(EngineError::Unsupported(items)) if free => items,
            result => return result.map(|plan| (engine, plan)),
        };
        let Ok(cli) = self.shop.engines.get(EngineName::Cli, workspace) else {
            return Err(EngineError::Unsupported(items));
        };
        self.chose(&cli, explain(&items));
        let folders = |source| EngineError::Io { context: "the worker's folders".to_owned(), source };
        self.mark(&*cli).map_err(folders)?;
        let planning = cli.plan(self.plan_request(workspace), &self.reports, &self.clock.stop);
        self.in_time(planning).await.map(|plan| (cli, plan))
    }

    pub(crate) fn plan_request<'w>(&self, workspace: &'w Workspace) -> PlanRequest<'w> {
        let adopt = |it: &Adoption| Adopt { address: it.address.clone(), id: it.id.clone() };
        PlanRequest {
            workspace,
            mode: match self.claim.kind {
                Kind::Apply => Mode::Normal,
                Kind::Destroy => Mode::Destroy,
                Kind::Check => Mode::RefreshOnly,
            },
            adopt: self.claim.adopt.iter().map(adopt).collect(),
            replace: self.claim.replace.clone(),
            doubted: self.doubted.clone(),
        }
    }

    pub(crate) fn not_planned(&self, error: EngineError) -> Done {
        if let EngineError::Stopped | EngineError::Lost(_) = error {
            return self.overtime().map_or(Done::End(End::GiveBack), fail);
        }
        self.tell(&error);
        let adopting = self.claim.adopt.iter().any(|adoption| report::is_about(&error, &adoption.address));
        let code = if adopting { Code::AdoptionFailed } else { Code::PlanFailed };
        fail(report::engine_failure(code, &error, |text| self.reports.redact(text)))
    }
}
