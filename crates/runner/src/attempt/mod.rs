//! One attempt at a run, from claim to end.

mod applying;
mod layout;
mod planning;
mod recovery;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use landform_domain::run::{Kind, Outcome};
use landform_domain::{Code, EngineName, Problem};
use landform_engine::policy::{Policy, Violation};
use landform_engine::{Doubted, Engine, EngineError, Progress, ProgressEvent};
use landform_store::{Claim, EngineChosen, Finish, Store, StoreError, Work, WorkerId};

use crate::choose::{Engines, name};
use crate::folders::Folders;
use crate::keeper::Clock;
use crate::ports::{FencedJournal, Reports};
use crate::prepared::Prepared;
use crate::recover;
use crate::seats::{Admission, Booth, Seats};
use crate::spool::Spool;

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
