//! A worker's side: how an attempt ends.

use std::time::Duration;

use landform_domain::recovery::Verdict;
use landform_domain::run::{Command, Kind, Outcome, PlanSummary, Status};
use landform_domain::{EngineName, EventBody};

use crate::claim::Lease;
use crate::db::{Tx, params};
use crate::drift;
use crate::error::StoreError;
use crate::journal::{close_journal, doubt, forget_doubted, room_for_events};
use crate::keys::{self, Sealer};
use crate::memory;
use crate::open::Store;
use crate::transition::{Locked, Means, advance, fence_run};
use crate::view::{Outputs, Run};

/// Which engine carries a run out, and why.
#[derive(Clone, Debug)]
pub struct EngineChosen {
    pub engine: EngineName,
    pub version: String,
    pub reasons: Vec<String>,
}

impl EngineChosen {
    fn event(self) -> EventBody {
        EventBody::Engine { engine: self.engine, version: self.version, reasons: self.reasons }
    }
}

pub struct Planned {
    /// In the order in which they were tried; the last one has made the plan.
    pub engines: Vec<EngineChosen>,
    /// For the run's log, before its plan; what does not fit any more is left out.
    pub reports: Vec<EventBody>,
    pub summary: PlanSummary,
    pub effective: bool,
    /// Kept, sealed, if the plan must be approved.
    pub plan: Vec<u8>,
    /// The plan in the format of `tofu show -json`, for those who want to read it. Kept, sealed, if it is not too large.
    pub json: Option<Vec<u8>>,
    /// The outputs of the state as it is: kept if there is nothing to apply. After a crash the state may have been
    /// recovered without them.
    pub outputs: Option<Outputs>,
    /// The most memory that the run's processes took, in bytes, if that is news.
    pub memory: Option<u64>,
}

#[derive(Clone)]
pub struct Finish {
    /// Those that were tried since the claim, if the end came before a plan was made.
    pub engines: Vec<EngineChosen>,
    /// For the run's log, before its end; what does not fit any more is left out.
    pub reports: Vec<EventBody>,
    pub outcome: Outcome,
    /// The whole state, if it may have changed.
    pub state: Option<Vec<u8>>,
    /// `None` leaves the outputs as they are.
    pub outputs: Option<Outputs>,
    /// Addresses that the state has now and that need not be adopted any more.
    pub adopted: Vec<String>,
    /// The most memory that the run's processes took, in bytes, if that is news.
    pub memory: Option<u64>,
}

/// What recovery found.
pub struct Resolution {
    pub verdict: Verdict,
    /// The recovered state, if it differs from the one before.
    pub state: Option<Vec<u8>>,
    /// Addresses whose object is in a state by now: there is nothing to adopt any more.
    pub adopted: Vec<String>,
}

/// A plan that nobody can read for its length is not kept for reading.
const LARGEST_PLAN_JSON: usize = 8 << 20;

impl Store {
    /// The plan is made. The answer says what comes next: applying, or nothing more for this worker.
    pub async fn planned(&self, lease: &Lease, planned: Planned) -> Result<Status, StoreError> {
        let sealer = self.sealer(lease).await?;
        let mut tx = self.db().begin().await?;
        let (locked, run) = fence_run(&mut tx, lease).await?;
        let waits = planned.effective && run.requires_approval;
        // A plan compares the state with what there is before anything else.
        let finds_no_drift = locked.drifted && planned.json.as_deref().is_some_and(is_free_of_drift);
        let (expires_at, sealed_plan) = match waits {
            true => {
                let now = tx.exactly_one("SELECT {now} AS now", params![]).await?.int("now")?;
                let sealed = sealer.seal(keys::Kind::Plan, &lease.run.to_string(), &planned.plan)?;
                (now + millis(self.inner.approval), Some(sealed))
            }
            false => (0, None),
        };
        let command = Command::PlanMade { plan: planned.summary, effective: planned.effective, expires_at };
        let mut means = Means { sealed_plan, ..chosen(planned.engines) };
        add_reports(&mut tx, lease, planned.reports, &mut means).await?;
        if let Some(json) = planned.json.filter(|json| planned.effective && json.len() <= LARGEST_PLAN_JSON) {
            let sealed = sealer.seal(keys::Kind::PlanJson, &lease.run.to_string(), &json)?;
            let sql = "UPDATE runs SET plan_json = $2 WHERE id = $1";
            tx.execute(sql, params![lease.run.to_string(), sealed]).await?;
        }
        if let Some(outputs) = planned.outputs.filter(|_| !planned.effective) {
            keep_outputs(&mut tx, &sealer, &locked, &outputs).await?;
        }
        // A check looks at what was applied last, and proves nothing about what was wished for.
        if !planned.effective && !run.plan_only && run.kind != Kind::Check {
            forget_doubted(&mut tx, &locked).await?;
        }
        let run = advance(&mut tx, locked.id, &run, command, means).await?;
        memory::remember(&mut tx, lease, run.engine, planned.memory).await?;
        if run.status == Status::Unchanged && finds_no_drift {
            drift::settle(&mut tx, &sealer, &locked, &run).await?;
        }
        tx.commit().await?;
        self.inner.meter.moved(run.id, "plan", &run.status, run.engine);
        self.ring_after(&run);
        Ok(run.status)
    }

    /// The attempt's end: state, outputs, journal, status and event together.
    pub async fn finish(&self, lease: &Lease, finish: Finish) -> Result<Status, StoreError> {
        let sealer = self.sealer(lease).await?;
        let mut tx = self.db().begin().await?;
        let (locked, run) = fence_run(&mut tx, lease).await?;
        if let Some(state) = finish.state {
            self.insert_state(&mut tx, &sealer, &locked, Some(&run), &state).await?;
        }
        if let Some(outputs) = finish.outputs {
            keep_outputs(&mut tx, &sealer, &locked, &outputs).await?;
        }
        forget_adoptions(&mut tx, &locked, finish.adopted).await?;
        close_journal(&mut tx, &locked, &[]).await?;
        if finish.outcome == Outcome::Succeeded && run.kind != Kind::Check {
            forget_doubted(&mut tx, &locked).await?;
        }
        let phase = match (&run.status, run.kind) {
            (_, Kind::Check) => "check",
            (Status::Planning, _) => "plan",
            _ => "apply",
        };
        let mut means = chosen(finish.engines);
        add_reports(&mut tx, lease, finish.reports, &mut means).await?;
        let run = advance(&mut tx, locked.id, &run, Command::Finish(finish.outcome), means).await?;
        memory::remember(&mut tx, lease, run.engine, finish.memory).await?;
        match (&run.status, run.kind) {
            (Status::Succeeded, Kind::Apply) => drift::settle(&mut tx, &sealer, &locked, &run).await?,
            (Status::Failed(problem), Kind::Check) => {
                drift::check_failed(&mut tx, &locked, &run, problem.code).await?;
            }
            _ => {}
        }
        tx.commit().await?;
        self.inner.meter.moved(run.id, phase, &run.status, run.engine);
        self.ring_after(&run);
        Ok(run.status)
    }

    /// Where a run rests, others of its deployment or of its tenant may be due.
    fn ring_after(&self, run: &Run) {
        self.inner.bell.ring_for(run.id, &run.status);
        if run.status.rests() {
            self.inner.bell.ring_for_work();
        }
    }

    /// Gives the run back: a plan is made again by whoever comes next, an apply is recovered.
    pub async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.let_go(lease, None).await
    }

    /// Gives an apply back that is to end once it is known what it did. `by` says who wants that.
    pub async fn give_up(&self, lease: &Lease, by: &str) -> Result<(), StoreError> {
        self.let_go(lease, Some(by)).await
    }

    async fn let_go(&self, lease: &Lease, cancelled_by: Option<&str>) -> Result<(), StoreError> {
        let mut tx = self.db().begin().await?;
        let (locked, mut run) = fence_run(&mut tx, lease).await?;
        if let Some(by) = cancelled_by.filter(|_| matches!(run.status, Status::Applying(_))) {
            let cancel = Command::Cancel { by: by.to_owned() };
            run = advance(&mut tx, locked.id, &run, cancel, Means::default()).await?;
        }
        advance(&mut tx, locked.id, &run, Command::LeaseLost, Means::default()).await?;
        tx.commit().await?;
        self.inner.bell.ring();
        Ok(())
    }

    /// What recovery found: the run goes on with a new plan, or stands in needs recovery.
    pub async fn resolve(&self, lease: &Lease, resolution: Resolution) -> Result<Status, StoreError> {
        let sealer = self.sealer(lease).await?;
        let mut tx = self.db().begin().await?;
        let (locked, run) = fence_run(&mut tx, lease).await?;
        if let Some(state) = resolution.state {
            self.insert_state(&mut tx, &sealer, &locked, Some(&run), &state).await?;
        }
        forget_adoptions(&mut tx, &locked, resolution.adopted).await?;
        let Verdict { doubts, updates, .. } = resolution.verdict;
        doubt(&mut tx, &locked, &updates).await?;
        let open: Vec<i64> = doubts.iter().map(|doubt| doubt.intent).collect();
        close_journal(&mut tx, &locked, &open).await?;
        let command = if doubts.is_empty() { Command::Recovered } else { Command::InDoubt { doubts } };
        let run = advance(&mut tx, locked.id, &run, command, Means::default()).await?;
        tx.commit().await?;
        self.inner.meter.moved(run.id, "recover", &run.status, run.engine);
        self.ring_after(&run);
        Ok(run.status)
    }
}

async fn forget_adoptions(tx: &mut Tx, locked: &Locked, addresses: Vec<String>) -> Result<(), StoreError> {
    for address in addresses {
        let sql = "DELETE FROM adoptions WHERE deployment = $1 AND address = $2";
        tx.execute(sql, params![locked.id.to_string(), address]).await?;
    }
    Ok(())
}

fn is_free_of_drift(plan: &[u8]) -> bool {
    let plan: Result<serde_json::Value, _> = serde_json::from_slice(plan);
    plan.is_ok_and(|plan| plan["resource_drift"].as_array().is_none_or(Vec::is_empty))
}

async fn add_reports(tx: &mut Tx, lease: &Lease, reports: Vec<EventBody>, means: &mut Means) -> Result<(), StoreError> {
    if !reports.is_empty() {
        let room = room_for_events(tx, lease.run).await?;
        means.events.extend(reports.into_iter().take(room));
    }
    Ok(())
}

pub(crate) fn chosen(engines: Vec<EngineChosen>) -> Means {
    let engine = engines.last().map(|chosen| chosen.engine);
    Means { engine, events: engines.into_iter().map(EngineChosen::event).collect(), ..Means::default() }
}

pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

async fn keep_outputs(tx: &mut Tx, sealer: &Sealer, locked: &Locked, outputs: &Outputs) -> Result<(), StoreError> {
    let sealed = sealer.seal(keys::Kind::Outputs, "", &serde_json::to_vec(outputs)?)?;
    tx.execute("UPDATE deployments SET outputs = $2 WHERE id = $1", params![locked.id.to_string(), sealed]).await?;
    Ok(())
}
