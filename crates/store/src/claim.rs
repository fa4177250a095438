//! A worker's side: claim, renew, and end an attempt.

use std::fmt;
use std::time::Duration;

use landform_domain::run::{Command, Generation, Kind, Phase, Status};
use landform_domain::{
    DeploymentId, DeploymentName, EngineChoice, EngineName, Inputs, RunId, TemplateName, TenantName,
};

use crate::accept::load_desired;
use crate::connection::{ConnectionValues, open_bound};
use crate::db::{Tx, params};
use crate::error::StoreError;
use crate::finish::millis;
use crate::journal::{JournalEntry, load_journal};
use crate::keys::{self, Sealer};
use crate::open::Store;
use crate::transition::{Locked, Means, advance, load_run, lock_by_id, locked_columns, run_columns};
use crate::view::Run;

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

/// An object that exists, and that the next plan is to import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adoption {
    pub address: String,
    pub id: String,
    /// It answers a doubt. Then an object that the state still has there was being replaced; otherwise it is in the way.
    pub after_doubt: bool,
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
    /// How long this attempt may take, if the deployment says so.
    pub time_limit: Option<Duration>,
    /// What an earlier attempt of this run was carried out by.
    pub engine_before: Option<EngineName>,
    pub state: Option<Vec<u8>>,
    pub adopt: Vec<Adoption>,
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

impl Store {
    /// The next run that is due; see [`Store::claim_up_to`].
    pub async fn claim(&self, worker: &WorkerId) -> Result<Option<Claim>, StoreError> {
        Ok(self.claim_up_to(worker, 1).await?.pop())
    }

    /// The next runs that are due, fairly between tenants, in one transaction. What a silent worker held is due too,
    /// and comes first, because its place in the order is an old one.
    pub async fn claim_up_to(&self, worker: &WorkerId, most: usize) -> Result<Vec<Claim>, StoreError> {
        for _ in 0..MOST_LOOKS {
            // A look that takes no locks, so that waiting workers cost nothing.
            let due = self.db().read_one(DUE, params![]).await?;
            let due = due.ok_or_else(|| StoreError::Corrupt("a count without a row".into()))?;
            if due.flag("lapsed")? {
                self.take_back_lapsed().await?;
            } else if !due.flag("queued")? {
                return Ok(Vec::new());
            }
            let claims = self.claim_queued(worker, most).await?;
            if !claims.is_empty() {
                self.inner.bell.ring();
                return Ok(claims);
            }
            // Something is due, but its row is locked: by another claim, which is over in a moment, or by a
            // transaction that was refused and is being rolled back.
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        Ok(Vec::new())
    }

    /// Ends the leases of workers that went silent, so that their runs are in the queue again.
    async fn take_back_lapsed(&self) -> Result<(), StoreError> {
        for row in self.db().read_all(LAPSED, params![]).await? {
            let mut tx = self.db().begin().await?;
            let locked = tx
                .one(
                    concat!(
                        "SELECT ",
                        run_columns!(),
                        " FROM deployments d JOIN runs r ON r.id = d.active_run
                         WHERE d.id = $1 AND d.lease_until < {now} {lock_or_skip}"
                    ),
                    params![row.text("id")?],
                )
                .await?;
            let Some(run) = locked.as_ref().map(Run::from_row).transpose()? else { continue };
            tracing::warn!(run = %run.id, worker = row.text("lease_worker")?, "a worker went silent; its run is taken up");
            advance(&mut tx, row.parsed("id")?, &run, Command::LeaseLost, Means::default()).await?;
            tx.commit().await?;
        }
        Ok(())
    }

    async fn claim_queued(&self, worker: &WorkerId, most: usize) -> Result<Vec<Claim>, StoreError> {
        let mut tx = self.db().begin().await?;
        let rows = tx.all(QUEUED, params![most.max(1) as i64]).await?;
        let mut claims: Vec<Claim> = Vec::with_capacity(rows.len());
        let mut reached = 0;
        for row in rows {
            let (locked, run) = (Locked::from_row(&row)?, Run::from_row(&row)?);
            // Of two runs of one deployment the first goes first.
            if claims.iter().any(|claim| claim.lease.deployment == locked.id) {
                continue;
            }
            let key = self.inner.keys.within(&mut tx, &locked.tenant).await?;
            let means = Means { worker: Some((worker, self.lease_millis())), ..Means::default() };
            let run = advance(&mut tx, locked.id, &run, Command::Claim, means).await?;
            let mut claim = load_claim(&mut tx, &key.sealer(locked.id), &locked, run).await?;
            claim.replace = serde_json::from_str(&row.text("replaces")?)?;
            claims.push(claim);
            reached = reached.max(row.int("order_key")?);
        }
        if !claims.is_empty() {
            set_clock(&mut tx, worker, reached).await?;
            tx.commit().await?;
        }
        Ok(claims)
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

    fn lease_millis(&self) -> i64 {
        millis(self.inner.lease)
    }
}

const MOST_LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

const DUE: &str = "SELECT
    (SELECT COUNT(*) FROM (SELECT 1 FROM deployments d
        WHERE d.lease_until IS NOT NULL AND d.lease_until < {now} AND d.active_run IS NOT NULL LIMIT 1) AS l) AS lapsed,
    (SELECT COUNT(*) FROM (SELECT 1 FROM runs r JOIN deployments d ON d.id = r.deployment
        WHERE r.claimable = 1 AND (d.active_run = r.id OR d.active_run IS NULL AND d.paused = 0) LIMIT 1) AS q) AS queued";

const LAPSED: &str = "SELECT d.id, d.lease_worker FROM deployments d
     WHERE d.lease_until IS NOT NULL AND d.lease_until < {now} AND d.active_run IS NOT NULL
     ORDER BY d.lease_until LIMIT 100";

/// Both rows are locked, so both are as they are now, whatever was committed since the statement began.
const QUEUED: &str = concat!(
    "SELECT ",
    locked_columns!(),
    ", ",
    run_columns!(),
    ", r.order_key, r.replaces FROM runs r JOIN deployments d ON d.id = r.deployment
     WHERE r.claimable = 1 AND (d.active_run = r.id OR d.active_run IS NULL AND d.paused = 0)
     ORDER BY r.order_key, r.id LIMIT $1 {lock_or_skip}"
);

/// The fair order's clock is the highest key that was claimed. Each worker has a row of its own, so that claims do not
/// wait for each other.
async fn set_clock(tx: &mut Tx, worker: &WorkerId, reached: i64) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO queue_clock (worker, reached) VALUES ($1, $2)
         ON CONFLICT (worker) DO UPDATE SET reached = CASE
             WHEN queue_clock.reached > excluded.reached THEN queue_clock.reached ELSE excluded.reached END",
        params![worker.as_str(), reached],
    )
    .await?;
    Ok(())
}

async fn load_pair(tx: &mut Tx, deployment: DeploymentId, run: RunId) -> Result<Option<(Locked, Run)>, StoreError> {
    let Some(locked) = lock_by_id(tx, deployment).await? else { return Ok(None) };
    Ok(load_run(tx, run).await?.map(|run| (locked, run)))
}

/// `locked` is the row as it was before the claim, which has raised its epoch.
async fn load_claim(tx: &mut Tx, sealer: &Sealer, locked: &Locked, run: Run) -> Result<Claim, StoreError> {
    let missing = |what: &str| StoreError::Corrupt(format!("run {} has no {what}", run.id));
    let deployment = locked.id;
    let desired =
        load_desired(tx, sealer, deployment, run.generation).await?.ok_or_else(|| missing("desired state"))?;
    let work = match &run.status {
        Status::Applying(Phase::Recovering) => Work::Recover { journal: load_journal(tx, sealer, locked).await? },
        Status::Applying(Phase::Running) => {
            let row = tx.exactly_one("SELECT plan FROM runs WHERE id = $1", params![run.id.to_string()]).await?;
            let sealed = row.blob_or_null("plan")?.ok_or_else(|| missing("plan"))?;
            Work::Apply { plan: sealer.open(keys::Kind::Plan, &run.id.to_string(), &sealed)? }
        }
        _ => Work::Plan,
    };
    Ok(Claim {
        lease: Lease { tenant: locked.tenant.clone(), deployment, run: run.id, epoch: locked.epoch + 1 },
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
        time_limit: desired.time_limit.map(|seconds| Duration::from_secs(seconds.unsigned_abs())),
        engine_before: run.engine,
        state: load_state(tx, sealer, locked).await?,
        adopt: load_adoptions(tx, deployment).await?,
        replace: Vec::new(),
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

async fn load_adoptions(tx: &mut Tx, deployment: DeploymentId) -> Result<Vec<Adoption>, StoreError> {
    let sql = "SELECT address, object_id, after_doubt FROM adoptions WHERE deployment = $1 ORDER BY address";
    let rows = tx.all(sql, params![deployment.to_string()]).await?;
    let adoption = |row: &crate::db::Row| {
        Ok(Adoption {
            address: row.text("address")?,
            id: row.text("object_id")?,
            after_doubt: row.flag("after_doubt")?,
        })
    };
    rows.iter().map(adoption).collect()
}
