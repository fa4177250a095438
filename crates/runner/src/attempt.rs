//! One attempt at a run, from claim to end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use landform_domain::run::{self, Kind, Outcome, PlanSummary, Status};
use landform_domain::{Code, EngineChoice, EngineName, Problem};
use landform_engine::policy::{Policy, Violation};
use landform_engine::state::StateError;
use landform_engine::{
    Adopt, Applied, ApplyRequest, Doubted, Engine, EngineError, Mode, Plan, PlanRequest, Progress, ProgressEvent,
    Variable, Workspace,
};
use landform_gateway::Urgency;
use landform_store::{Adoption, Claim, EngineChosen, Finish, JournalEntry, Planned, Store, StoreError, Work, WorkerId};

use crate::choose::{Chosen, Engines, explain, name};
use crate::folders::{self, Folders};
use crate::keeper::Clock;
use crate::ports::{FencedJournal, Reports};
use crate::prepared::{Prepared, Ready};
use crate::seats::{Admission, Booth, Seats};
use crate::spool::Spool;
use crate::{recover, report};

/// A run that ends its worker every time must not do so for ever.
pub(crate) const MOST_ATTEMPTS: i64 = 25;

/// What every attempt of a worker shares.
pub(crate) struct Shop {
    pub(crate) store: Store,
    pub(crate) engines: Engines,
    pub(crate) folders: Folders,
    pub(crate) prepared: Prepared,
    pub(crate) spool: Spool,
    pub(crate) booth: Booth,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) connection_environment: BTreeSet<String>,
    /// How long an attempt may take, where its deployment does not say otherwise.
    pub(crate) time_limit: Duration,
    /// How long whatever was asked to stop may take.
    pub(crate) grace: Duration,
    /// Whole plans are made also where nobody has to approve them.
    pub(crate) keep_plans: bool,
    pub(crate) policy: Policy,
}

/// How an attempt left its run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The store has everything; the scratch folder is of no use any more.
    Clean,
    /// Somebody has to take the run up again: an apply with open intents, or a plan that was stopped.
    GiveBack,
    /// The same, and it ends then: its time is over.
    GiveUp,
    /// Nobody can go on with it right now. Its lease runs out, which also keeps a broken run from spinning.
    Leave,
    /// The lease is gone, and with it the right to write.
    Lost,
    /// Nothing was done: this worker owns the vendor's account.
    Elsewhere(WorkerId),
    /// Nothing was done, and nothing can be for a while.
    Later { wait: Duration, reason: String },
}

pub(crate) struct Attempt<'a> {
    pub(crate) shop: &'a Shop,
    pub(crate) claim: Claim,
    pub(crate) clock: Arc<Clock>,
    pub(crate) reports: Reports,
    /// The engines that were chosen and are not in the store yet.
    pub(crate) tried: Mutex<Vec<EngineChosen>>,
    /// Updates of which nobody knows whether they were made.
    pub(crate) doubted: Vec<Doubted>,
    /// What it may call vendors with.
    pub(crate) seats: Seats,
}

impl Attempt<'_> {
    pub(crate) async fn run(mut self) -> End {
        let done = self.work().await;
        self.shop.booth.learn(&self.seats, &self.claim);
        for text in self.seats.notes() {
            self.reports.report(ProgressEvent::Note { text });
        }
        let (engines, memory) = (self.take_tried(), self.memory());
        let Attempt { shop, claim, clock, reports, .. } = self;
        let reports = reports.flush().await;
        let end = match done {
            Ok(Done::Finish(finish)) => {
                return push(shop, &claim, &clock, Finish { engines, reports, memory, ..*finish }).await;
            }
            Ok(Done::End(end)) => end,
            Err(error) => failed_write(&claim, &error),
        };
        if !reports.is_empty()
            && let Err(error) = shop.store.report(&claim.lease, &reports).await
        {
            tracing::warn!(run = %claim.lease.run, %error, "reports were dropped");
        }
        end
    }

    async fn work(&mut self) -> Result<Done, StoreError> {
        let workspace = match self.lay_out().await? {
            Ok(workspace) => workspace,
            Err(problem) => return self.fail_or_leave(problem),
        };
        match self.shop.booth.admit(&self.seats, &self.claim).await? {
            Admission::Go => {}
            Admission::Elsewhere(owner) => return Ok(Done::End(End::Elsewhere(owner))),
            Admission::Later { wait, reason } => return Ok(Done::End(End::Later { wait, reason })),
        }
        match recover::doubted(&self.claim.doubted) {
            Ok(doubted) => self.doubted = doubted,
            Err(problem) => return self.fail_or_leave(problem),
        }
        let work = std::mem::replace(&mut self.claim.work, Work::Plan);
        match work {
            Work::Plan if self.claim.kind == Kind::Check => self.check(workspace).await,
            Work::Plan => self.plan_and_apply(workspace).await,
            Work::Apply { plan } => self.apply_approved(workspace, &plan).await,
            Work::Recover { journal } => self.recover(workspace, &journal).await,
        }
    }

    /// An apply that was interrupted cannot fail before somebody has looked at what it did.
    fn fail_or_leave(&self, problem: Problem) -> Result<Done, StoreError> {
        if matches!(self.claim.work, Work::Recover { .. }) {
            return Ok(leave(&self.claim, &problem));
        }
        Ok(fail(problem))
    }

    async fn lay_out(&mut self) -> Result<Result<Workspace, Problem>, StoreError> {
        let claim = &self.claim;
        let ready = match self.template().await? {
            Ok(ready) => ready,
            Err(problem) => return Ok(Err(problem)),
        };
        let folder = ready.folder.clone();
        let scratch = self.shop.folders.scratch(claim.lease.run);
        if let Err(error) = self.sweep(&scratch).await {
            return Ok(Err(broken(format!("children of an earlier attempt: {error}"))));
        }
        let variable = |input: &landform_domain::Input| Variable::new(input.value.clone(), input.sensitive);
        let mut variables: BTreeMap<String, Variable> =
            claim.inputs.iter().map(|(name, input)| (name.clone(), variable(input))).collect();
        let secret = |value: &serde_json::Value| Variable::new(value.clone(), true);
        variables.extend(claim.connections.variables.iter().map(|(name, value)| (name.clone(), secret(value))));
        let seats = {
            let place = (&ready.files, folder.as_path());
            let urgency = match claim.urgency() {
                run::Urgency::Change => Urgency::Person,
                run::Urgency::Idle => Urgency::Background,
            };
            self.shop.booth.take(claim.lease.tenant.as_str(), urgency, place, &mut variables)
        };
        self.seats = match seats {
            Ok(seats) => seats,
            Err(problem) => return Ok(Err(problem)),
        };
        self.reports.hide(self.seats.addresses());
        let mut environment = self.shop.environment.clone();
        for (name, value) in &claim.connections.environment {
            if !self.shop.connection_environment.contains(name) {
                let message =
                    format!("a connection sets the environment variable {name}, which this worker does not allow");
                return Ok(Err(Problem::new(Code::ConnectionInvalid, message)));
            }
            environment.insert(name.clone(), value.clone());
        }
        let state = match self.with_room_for_adoptions(claim.state.clone()) {
            Ok(state) => state,
            Err(problem) => return Ok(Err(problem)),
        };
        Ok(Ok(Workspace { folder, scratch, variables, state, environment }))
    }

    /// The template, if what it does is allowed.
    async fn template(&self) -> Result<Result<Arc<Ready>, Problem>, StoreError> {
        let (template, version) = (&self.claim.template, self.claim.template_version);
        if let Some(ready) = self.shop.prepared.get(template, version) {
            return Ok(Ok(ready));
        }
        let files = self.shop.store.template_files(template, version).await?;
        // Looked at again by each worker: what is allowed may have changed since the push.
        let violations = self.shop.policy.violations(files.iter());
        if !violations.is_empty() {
            return Ok(Err(denied(&violations)));
        }
        Ok(match self.shop.folders.template(&files) {
            Ok(folder) => Ok(self.shop.prepared.keep(template, version, Ready { files, folder })),
            Err(error) => Err(broken(format!("the worker's folders: {error}"))),
        })
    }

    /// Both engines import only to an address that is free. Where a replacement was in doubt, the state may still have the
    /// old object there: it makes room, and the plan finds it gone or destroys it.
    fn with_room_for_adoptions(&self, state: Option<Vec<u8>>) -> Result<Option<Vec<u8>>, Problem> {
        let Some(mut state) = state else { return Ok(None) };
        for adoption in &self.claim.adopt {
            let unreadable = |error: StateError| broken(error.to_string());
            let Adoption { address, id, after_doubt } = adoption;
            match landform_engine::state::make_room(&state, address, id).map_err(unreadable)? {
                None => {}
                Some(with_room) if *after_doubt => state = with_room,
                Some(_) => {
                    let message = format!("{address} is to be adopted as {id}, and the state has another object there");
                    return Err(Problem::new(Code::AdoptionOccupied, message));
                }
            }
        }
        Ok(Some(state))
    }

    /// What an earlier attempt started has ended, one way or the other, before this one looks at what it left.
    async fn sweep(&self, scratch: &Path) -> std::io::Result<()> {
        for swept in landform_base::child::sweep(scratch, self.shop.grace).await? {
            tracing::info!(run = %self.claim.lease.run, pid = swept.pid, outcome = ?swept.outcome, "swept a child");
        }
        Ok(())
    }

    async fn plan_and_apply(&self, workspace: Workspace) -> Result<Done, StoreError> {
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

    /// Written down together with the plan: until then nothing depends on it, and an attempt that dies chooses anew.
    pub(crate) fn chose(&self, engine: &Arc<dyn Engine>, reasons: Vec<String>) {
        let chosen = EngineChosen { engine: name(engine.kind()), version: engine.version(), reasons };
        self.tried.lock().expect("no panic while held").push(chosen);
    }

    pub(crate) fn take_tried(&self) -> Vec<EngineChosen> {
        std::mem::take(&mut *self.tried.lock().expect("no panic while held"))
    }

    /// What the processes of this run took at most, if the store does not know that already.
    pub(crate) fn memory(&self) -> Option<u64> {
        let measured = self.reports.peak_memory();
        landform_domain::memory::is_news(self.claim.memory, measured).then_some(measured)
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

    async fn apply_approved(&self, workspace: Workspace, plan: &[u8]) -> Result<Done, StoreError> {
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

    async fn apply(&self, engine: Arc<dyn Engine>, workspace: Workspace, plan: &[u8]) -> Result<Done, StoreError> {
        let journal = self.journal();
        let request = ApplyRequest { workspace: &workspace, plan };
        let applying = engine.apply(request, &journal, &self.reports, &self.clock.stop);
        match self.in_time(self.alive(&*engine, applying)).await {
            Ok(applied) => Ok(self.applied(&workspace, applied, &journal)),
            Err(error) => Ok(self.not_applied(error)),
        }
    }

    /// Sees to it that the run's log shows a sign of life. The CLI gives its own.
    pub(crate) async fn alive<T>(&self, engine: &dyn Engine, work: impl Future<Output = T>) -> T {
        if name(engine.kind()) != EngineName::Native {
            return work.await;
        }
        tokio::select! {
            done = work => done,
            never = self.reports.give_signs_of_life() => match never {},
        }
    }

    /// An engine that was asked to stop waits for what its providers are doing, and a vendor may never answer. Then it is
    /// dropped, which ends its children, and the journal knows what is in doubt.
    pub(crate) async fn in_time<T>(
        &self,
        applying: impl Future<Output = Result<T, EngineError>>,
    ) -> Result<T, EngineError> {
        let overdue = async {
            self.clock.stop.cancelled().await;
            tokio::time::sleep(self.shop.grace).await;
        };
        tokio::select! {
            applied = applying => applied,
            () = overdue => Err(EngineError::Lost("it was asked to stop and did not in time".to_owned())),
        }
    }

    /// Why it was stopped, if its time was over.
    fn overtime(&self) -> Option<Problem> {
        let limit = self.claim.time_limit.unwrap_or(self.shop.time_limit).as_secs();
        let message = format!("it was stopped after its time limit of {limit} s");
        self.clock.overtime.is_cancelled().then(|| Problem::new(Code::TimeLimitExceeded, message))
    }

    pub(crate) fn journal(&self) -> FencedJournal {
        FencedJournal {
            store: self.shop.store.clone(),
            lease: self.claim.lease.clone(),
            clock: self.clock.clone(),
            spool: self.shop.spool.clone(),
            seats: self.seats.clone(),
            creates: Mutex::default(),
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

    async fn recover(&mut self, mut workspace: Workspace, journal: &[JournalEntry]) -> Result<Done, StoreError> {
        let salvaged = match self.salvage(&workspace, journal).await {
            Ok(salvaged) => salvaged,
            Err(problem) => return Ok(leave(&self.claim, &problem)),
        };
        let resolution = match recover::resolve(journal, workspace.state.as_deref(), salvaged, &self.claim.adopt) {
            Ok(resolution) => resolution,
            Err(problem) => return Ok(leave(&self.claim, &problem)),
        };
        self.claim.adopt.retain(|adoption| !resolution.adopted.contains(&adoption.address));
        let recovered = resolution.state.clone();
        let updates = &resolution.verdict.updates;
        let interrupted = journal.iter().filter(|entry| updates.contains(&entry.id)).map(|entry| entry.intent.clone());
        match recover::doubted(&interrupted.collect::<Vec<_>>()) {
            Ok(more) => self.doubted.extend(more),
            Err(problem) => return Ok(leave(&self.claim, &problem)),
        }
        match self.shop.store.resolve(&self.claim.lease, resolution).await? {
            Status::Planning => {
                workspace.state = match self.with_room_for_adoptions(recovered.or(workspace.state)) {
                    Ok(state) => state,
                    Err(problem) => return Ok(fail(problem)),
                };
                self.plan_and_apply(workspace).await
            }
            _ => Ok(Done::End(End::Clean)),
        }
    }

    /// What an engine has left on this worker's disk, if it was the attempt of this journal that left it: others may have
    /// worked on the run since this worker last did.
    async fn salvage(&self, workspace: &Workspace, journal: &[JournalEntry]) -> Result<Option<Vec<u8>>, Problem> {
        let Some(engine) = self.claim.engine_before else { return Ok(None) };
        let interrupted = journal.iter().map(|entry| entry.epoch).max();
        if interrupted.is_none() || interrupted != folders::left_by(&workspace.scratch) {
            return Ok(None);
        }
        let engine = self.shop.engines.get(engine, workspace)?;
        engine.salvage(&workspace.scratch).await.map_err(|error| broken(error.to_string()))
    }

    /// From here on, what lies in the scratch folder is this attempt's. The native engine needs none.
    fn mark(&self, engine: &dyn Engine) -> std::io::Result<()> {
        if name(engine.kind()) == EngineName::Native {
            return Ok(());
        }
        self.shop.folders.mark(self.claim.lease.run, self.claim.lease.epoch)
    }

    fn tell(&self, error: &EngineError) {
        if let EngineError::Diagnostics(diagnostics) = error {
            self.reports.tell(diagnostics);
        }
    }
}

pub(crate) enum Done {
    Finish(Box<Finish>),
    End(End),
}

fn end(outcome: Outcome) -> Done {
    Done::Finish(Box::new(Finish {
        outcome,
        engines: Vec::new(),
        reports: Vec::new(),
        memory: None,
        state: None,
        outputs: None,
        adopted: Vec::new(),
    }))
}

pub(crate) fn fail(problem: Problem) -> Done {
    end(Outcome::Failed(problem))
}

pub(crate) fn denied(violations: &[Violation]) -> Problem {
    let all: Vec<String> = violations.iter().map(Violation::to_string).collect();
    Problem::new(Code::TemplateDenied, all.join("; "))
}

pub(crate) fn broken(message: String) -> Problem {
    Problem::new(Code::RunBroken, message)
}

fn leave(claim: &Claim, problem: &Problem) -> Done {
    tracing::error!(run = %claim.lease.run, %problem, "a run cannot be recovered here");
    Done::End(End::Leave)
}

const ASK_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// What was done is worth waiting for: while the store is away, it is asked again until the lease ends.
async fn push(shop: &Shop, claim: &Claim, clock: &Clock, finish: Finish) -> End {
    loop {
        match shop.store.finish(&claim.lease, finish.clone()).await {
            Ok(_) => return End::Clean,
            Err(error) if error.is_transient() && !clock.over.is_cancelled() => {
                tracing::warn!(run = %claim.lease.run, %error, "the result waits for the store");
                tokio::time::sleep(ASK_AGAIN_AFTER).await;
            }
            Err(error) => return failed_write(claim, &error),
        }
    }
}

fn failed_write(claim: &Claim, error: &StoreError) -> End {
    if matches!(error, StoreError::Fenced) {
        return End::Lost;
    }
    tracing::error!(run = %claim.lease.run, %error, "an attempt could not write what it has to say");
    End::Leave
}
