//! A worker's side: claim, renew, and end an attempt.

use std::fmt;
use std::time::Duration;

use landform_domain::recovery::Verdict;
use landform_domain::run::{Command, Generation, Kind, Outcome, Phase, PlanSummary, Status};
use landform_domain::{
    DeploymentId, DeploymentName, EngineChoice, EngineName, EventBody, Inputs, RunId, TemplateName, TenantName,
};

use crate::accept::load_desired;
use crate::connection::{ConnectionValues, open_bound};
use crate::db::{Tx, params};
use crate::error::StoreError;
use crate::journal::{JournalEntry, close_journal, load_journal};
use crate::keys::{self, Sealer};
use crate::open::Store;
use crate::transition::{Locked, Means, advance, append_events, fence, load_run, lock_by_id};
use crate::view::{Outputs, Run};

/// The stable name of a worker: the same after a restart, so that it can void what its dead predecessor held.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WorkerId(String);

impl WorkerId {
    pub fn new(id: impl Into<String>) -> WorkerId {
        WorkerId(id.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The right to write about one deployment, until somebody else gets a newer one.
#[derive(Clone, Debug)]
pub struct Lease {
    pub tenant: TenantName,
    pub deployment: DeploymentId,
    pub run: RunId,
    pub epoch: i64,
}

/// One attempt at a run, with all that it needs.
pub struct Claim {
    pub lease: Lease,
    pub deployment: DeploymentName,
    pub attempt: i64,
    pub kind: Kind,
    pub generation: Generation,
    pub template: TemplateName,
    pub template_version: i64,
    pub inputs: Inputs,
    /// The newest values of the connections that the generation names.
    pub connections: ConnectionValues,
    pub engine: EngineChoice,
    /// Somebody will want to see the plan before it is applied.
    pub requires_approval: bool,
    /// What an earlier attempt of this run was carried out by.
    pub engine_before: Option<EngineName>,
    pub state: Option<Vec<u8>>,
    /// Objects to import, address and id.
    pub adopt: Vec<(String, String)>,
    /// Addresses of objects to replace although nothing about them has changed.
    pub replace: Vec<String>,
    /// It ends with its plan.
    pub plan_only: bool,
    pub work: Work,
}

pub enum Work {
    Plan,
    /// The plan was approved.
    Apply {
        plan: Vec<u8>,
    },
    /// An earlier attempt died in the middle of an apply.
    Recover {
        journal: Vec<JournalEntry>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewed {
    pub cancel_requested: bool,
}

pub struct Planned {
    pub summary: PlanSummary,
    pub effective: bool,
    /// Kept, sealed, if the plan must be approved.
    pub plan: Vec<u8>,
    /// The plan in the format of `tofu show -json`, for those who want to read it. Kept, sealed, if it is not too large.
    pub json: Option<Vec<u8>>,
    /// The outputs of the state as it is: kept if there is nothing to apply. After a crash the state may have been
    /// recovered without them.
    pub outputs: Option<Outputs>,
}

#[derive(Clone)]
pub struct Finish {
    pub outcome: Outcome,
    /// The whole state, if it may have changed.
    pub state: Option<Vec<u8>>,
    /// `None` leaves the outputs as they are.
    pub outputs: Option<Outputs>,
    /// Addresses that the state has now and that need not be adopted any more.
    pub adopted: Vec<String>,
}

/// What recovery found.
pub struct Resolution {
    pub verdict: Verdict,
    /// The recovered state, if it differs from the one before.
    pub state: Option<Vec<u8>>,
}

/// A plan that nobody can read for its length is not kept for reading.
const LARGEST_PLAN_JSON: usize = 8 << 20;

impl Store {
    /// The next run that is due, fairly between tenants: first those whose worker went silent, then the queue.
    pub async fn claim(&self, worker: &WorkerId) -> Result<Option<Claim>, StoreError> {
        let mut looks = 0;
        // A look that takes no locks, so that waiting workers cost nothing.
        while self.db().read_one(DUE, params![]).await?.is_some() {
            let mut tx = self.db().begin().await?;
            let Some((locked, run)) = self.pick(&mut tx).await? else {
                drop(tx);
                // Something is due, but its row is locked: by another claim, which is over in a moment, or by a
                // transaction that was refused and is being rolled back.
                looks += 1;
                if looks == MOST_LOOKS {
                    return Ok(None);
                }
                tokio::time::sleep(BETWEEN_LOOKS).await;
                continue;
            };
            let Some(key) = self.inner.keys.opened(&locked.tenant) else {
                drop(tx);
                self.tenant_key(&locked.tenant).await?;
                continue;
            };
            let means = Means { worker: Some((worker, self.lease_millis())), ..Means::default() };
            let run = match advance(&mut tx, locked.id, &run, Command::Claim, means).await {
                Ok(run) => run,
                // It changed between the look and the lock.
                Err(StoreError::Refused(_)) => continue,
                Err(error) => return Err(error),
            };
            let claim = load_claim(&mut tx, &key.sealer(locked.id), locked.id, run).await?;
            tx.commit().await?;
            self.inner.bell.ring();
            return Ok(Some(claim));
        }
        Ok(None)
    }

    async fn pick(&self, tx: &mut Tx) -> Result<Option<(Locked, Run)>, StoreError> {
        let lapsed = tx
            .one(
                "SELECT d.id AS deployment, d.active_run AS run FROM deployments d
                 WHERE d.lease_until IS NOT NULL AND d.lease_until < {now} AND d.active_run IS NOT NULL
                 ORDER BY d.lease_until LIMIT 1 {lock_or_skip}",
                params![],
            )
            .await?;
        if let Some(row) = lapsed {
            let Some((locked, run)) = load_pair(tx, row.parsed("deployment")?, row.parsed("run")?).await? else {
                return Ok(None);
            };
            let run = advance(tx, locked.id, &run, Command::LeaseLost, Means::default()).await?;
            return Ok(Some((locked, run)));
        }
        let queued = tx
            .one(
                "SELECT d.id AS deployment, r.id AS run FROM runs r JOIN deployments d ON d.id = r.deployment
                 WHERE r.claimable = 1 AND (d.active_run = r.id OR d.active_run IS NULL AND d.paused = 0)
                 ORDER BY r.order_key, r.id LIMIT 1 {lock_or_skip}",
                params![],
            )
            .await?;
        match queued {
            Some(row) => load_pair(tx, row.parsed("deployment")?, row.parsed("run")?).await,
            None => Ok(None),
        }
    }

    /// Keeps the claim alive. `Fenced` means that it is over: stop at once.
    pub async fn renew(&self, lease: &Lease) -> Result<Renewed, StoreError> {
        let mut tx = self.db().begin().await?;
        let renewed = tx
            .execute(
                "UPDATE deployments SET lease_until = {now} + $3
                 WHERE id = $1 AND epoch = $2 AND lease_until IS NOT NULL",
                params![lease.deployment.to_string(), lease.epoch, self.lease_millis()],
            )
            .await?;
        if renewed != 1 {
            return Err(StoreError::Fenced);
        }
        let sql = "SELECT cancel_requested FROM runs WHERE id = $1";
        let cancel_requested = tx.exactly_one(sql, params![lease.run.to_string()]).await?.flag("cancel_requested")?;
        tx.commit().await?;
        Ok(Renewed { cancel_requested })
    }

    /// Ends what an earlier life of this worker held. The caller holds the worker's identity, so that life is over.
    pub async fn void_leases(&self, worker: &WorkerId) -> Result<usize, StoreError> {
        let sql = "SELECT id, active_run FROM deployments WHERE lease_worker = $1 AND active_run IS NOT NULL";
        let mut voided = 0;
        for row in self.db().read_all(sql, params![worker.as_str()]).await? {
            let mut tx = self.db().begin().await?;
            let Some((locked, run)) = load_pair(&mut tx, row.parsed("id")?, row.parsed("active_run")?).await? else {
                continue;
            };
            match advance(&mut tx, locked.id, &run, Command::LeaseLost, Means::default()).await {
                Ok(_) => tx.commit().await?,
                Err(StoreError::Refused(_)) => continue,
                Err(error) => return Err(error),
            }
            voided += 1;
        }
        self.inner.bell.ring();
        Ok(voided)
    }

    /// Writes down which engine carries the run out, and why.
    pub async fn engine_chosen(
        &self,
        lease: &Lease,
        engine: EngineName,
        version: &str,
        reasons: Vec<String>,
    ) -> Result<(), StoreError> {
        let mut tx = self.db().begin().await?;
        fence(&mut tx, lease).await?;
        tx.execute("UPDATE runs SET engine = $2 WHERE id = $1", params![lease.run.to_string(), engine.as_str()])
            .await?;
        let event = EventBody::Engine { engine, version: version.to_owned(), reasons };
        append_events(&mut tx, lease.run, &[event]).await?;
        tx.commit().await
    }

    /// The plan is made. The answer says what comes next: applying, or nothing more for this worker.
    pub async fn planned(&self, lease: &Lease, planned: Planned) -> Result<Status, StoreError> {
        let sealer = self.sealer(lease).await?;
        let mut tx = self.db().begin().await?;
        let locked = fence(&mut tx, lease).await?;
        let run = own_run(&mut tx, lease).await?;
        let now = tx.exactly_one("SELECT {now} AS now", params![]).await?.int("now")?;
        let command = Command::PlanMade {
            plan: planned.summary,
            effective: planned.effective,
            expires_at: now + millis(self.inner.approval),
        };
        let sealed = sealer.seal(keys::Kind::Plan, &lease.run.to_string(), &planned.plan)?;
        let means = Means { sealed_plan: Some(sealed), ..Means::default() };
        if let Some(json) = planned.json.filter(|json| planned.effective && json.len() <= LARGEST_PLAN_JSON) {
            let sealed = sealer.seal(keys::Kind::PlanJson, &lease.run.to_string(), &json)?;
            let sql = "UPDATE runs SET plan_json = $2 WHERE id = $1";
            tx.execute(sql, params![lease.run.to_string(), sealed]).await?;
        }
        if let Some(outputs) = planned.outputs.filter(|_| !planned.effective) {
            keep_outputs(&mut tx, &sealer, &locked, &outputs).await?;
        }
        let run = advance(&mut tx, locked.id, &run, command, means).await?;
        tx.commit().await?;
        self.inner.bell.ring();
        Ok(run.status)
    }

    /// The attempt's end: state, outputs, journal, status and event together.
    pub async fn finish(&self, lease: &Lease, finish: Finish) -> Result<Status, StoreError> {
        let sealer = self.sealer(lease).await?;
        let mut tx = self.db().begin().await?;
        let locked = fence(&mut tx, lease).await?;
        let run = own_run(&mut tx, lease).await?;
        if let Some(state) = finish.state {
            insert_state(&mut tx, &sealer, &locked, &run, &state).await?;
        }
        if let Some(outputs) = finish.outputs {
            keep_outputs(&mut tx, &sealer, &locked, &outputs).await?;
        }
        for address in finish.adopted {
            tx.execute(
                "DELETE FROM adoptions WHERE deployment = $1 AND address = $2",
                params![locked.id.to_string(), address],
            )
            .await?;
        }
        close_journal(&mut tx, &locked, &[]).await?;
        let run = advance(&mut tx, locked.id, &run, Command::Finish(finish.outcome), Means::default()).await?;
        tx.commit().await?;
        self.inner.bell.ring();
        Ok(run.status)
    }

    /// Gives the run back: a plan is made again by whoever comes next, an apply is recovered.
    pub async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        let mut tx = self.db().begin().await?;
        let locked = fence(&mut tx, lease).await?;
        let run = own_run(&mut tx, lease).await?;
        advance(&mut tx, locked.id, &run, Command::LeaseLost, Means::default()).await?;
        tx.commit().await?;
        self.inner.bell.ring();
        Ok(())
    }

    /// What recovery found: the run goes on with a new plan, or stands in needs recovery.
    pub async fn resolve(&self, lease: &Lease, resolution: Resolution) -> Result<Status, StoreError> {
        let sealer = self.sealer(lease).await?;
        let mut tx = self.db().begin().await?;
        let locked = fence(&mut tx, lease).await?;
        let run = own_run(&mut tx, lease).await?;
        if let Some(state) = resolution.state {
            insert_state(&mut tx, &sealer, &locked, &run, &state).await?;
        }
        let doubts = resolution.verdict.doubts;
        let open: Vec<i64> = doubts.iter().map(|doubt| doubt.intent).collect();
        close_journal(&mut tx, &locked, &open).await?;
        let command = if doubts.is_empty() { Command::Recovered } else { Command::InDoubt { doubts } };
        let run = advance(&mut tx, locked.id, &run, command, Means::default()).await?;
        tx.commit().await?;
        self.inner.bell.ring();
        Ok(run.status)
    }

    fn lease_millis(&self) -> i64 {
        millis(self.inner.lease)
    }
}

const MOST_LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

const DUE: &str = "SELECT d.id FROM deployments d
     WHERE d.lease_until IS NOT NULL AND d.lease_until < {now} AND d.active_run IS NOT NULL
     UNION ALL
     SELECT d.id FROM runs r JOIN deployments d ON d.id = r.deployment
     WHERE r.claimable = 1 AND (d.active_run = r.id OR d.active_run IS NULL AND d.paused = 0)
     LIMIT 1";

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

async fn load_pair(tx: &mut Tx, deployment: DeploymentId, run: RunId) -> Result<Option<(Locked, Run)>, StoreError> {
    let Some(locked) = lock_by_id(tx, deployment).await? else { return Ok(None) };
    Ok(load_run(tx, run).await?.map(|run| (locked, run)))
}

async fn own_run(tx: &mut Tx, lease: &Lease) -> Result<Run, StoreError> {
    load_run(tx, lease.run).await?.ok_or_else(|| StoreError::Corrupt(format!("run {} is missing", lease.run)))
}

async fn load_claim(tx: &mut Tx, sealer: &Sealer, deployment: DeploymentId, run: Run) -> Result<Claim, StoreError> {
    let missing = |what: &str| StoreError::Corrupt(format!("run {} has no {what}", run.id));
    let locked = lock_by_id(tx, deployment).await?.ok_or_else(|| missing("deployment"))?;
    let desired =
        load_desired(tx, sealer, deployment, run.generation).await?.ok_or_else(|| missing("desired state"))?;
    let work = match &run.status {
        Status::Applying(Phase::Recovering) => Work::Recover { journal: load_journal(tx, sealer, &locked).await? },
        Status::Applying(Phase::Running) => {
            let row = tx.exactly_one("SELECT plan FROM runs WHERE id = $1", params![run.id.to_string()]).await?;
            let sealed = row.blob_or_null("plan")?.ok_or_else(|| missing("plan"))?;
            Work::Apply { plan: sealer.open(keys::Kind::Plan, &run.id.to_string(), &sealed)? }
        }
        _ => Work::Plan,
    };
    Ok(Claim {
        lease: Lease { tenant: locked.tenant.clone(), deployment, run: run.id, epoch: locked.epoch },
        deployment: locked.name.clone(),
        attempt: run.attempts,
        kind: run.kind,
        generation: run.generation,
        template: desired.template,
        template_version: desired.template_version,
        inputs: desired.inputs,
        connections: open_bound(tx, sealer, &locked.tenant, &desired.connections).await?,
        engine: desired.engine,
        requires_approval: run.requires_approval,
        engine_before: run.engine,
        state: load_state(tx, sealer, &locked).await?,
        adopt: load_adoptions(tx, deployment).await?,
        replace: load_replaces(tx, run.id).await?,
        plan_only: run.plan_only,
        work,
    })
}

async fn load_state(tx: &mut Tx, sealer: &Sealer, locked: &Locked) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(version) = locked.state_version else { return Ok(None) };
    let row = tx
        .exactly_one(
            "SELECT state FROM states WHERE deployment = $1 AND version = $2",
            params![locked.id.to_string(), version],
        )
        .await?;
    Ok(Some(sealer.open(keys::Kind::State, &version.to_string(), &row.blob("state")?)?))
}

async fn insert_state(
    tx: &mut Tx,
    sealer: &Sealer,
    locked: &Locked,
    run: &Run,
    state: &[u8],
) -> Result<(), StoreError> {
    let version = locked.last_state_version + 1;
    tx.execute(
        "INSERT INTO states (deployment, version, generation, run, state, created_at)
         VALUES ($1, $2, $3, $4, $5, {now})",
        params![
            locked.id.to_string(),
            version,
            run.generation,
            run.id.to_string(),
            sealer.seal(keys::Kind::State, &version.to_string(), state)?,
        ],
    )
    .await?;
    tx.execute(
        "UPDATE deployments SET state_version = $2, last_state_version = $2, state_generation = $3, updated_at = {now}
         WHERE id = $1",
        params![locked.id.to_string(), version, run.generation],
    )
    .await?;
    Ok(())
}

async fn keep_outputs(tx: &mut Tx, sealer: &Sealer, locked: &Locked, outputs: &Outputs) -> Result<(), StoreError> {
    let sealed = sealer.seal(keys::Kind::Outputs, "", &serde_json::to_vec(outputs)?)?;
    tx.execute("UPDATE deployments SET outputs = $2 WHERE id = $1", params![locked.id.to_string(), sealed]).await?;
    Ok(())
}

async fn load_replaces(tx: &mut Tx, run: RunId) -> Result<Vec<String>, StoreError> {
    let row = tx.exactly_one("SELECT replaces FROM runs WHERE id = $1", params![run.to_string()]).await?;
    Ok(serde_json::from_str(&row.text("replaces")?)?)
}

async fn load_adoptions(tx: &mut Tx, deployment: DeploymentId) -> Result<Vec<(String, String)>, StoreError> {
    let sql = "SELECT address, object_id FROM adoptions WHERE deployment = $1 ORDER BY address";
    let rows = tx.all(sql, params![deployment.to_string()]).await?;
    rows.iter().map(|row| Ok((row.text("address")?, row.text("object_id")?))).collect()
}
