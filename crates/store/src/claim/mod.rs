//! A worker's side: claim and renew. How an attempt ends is in `finish`.

mod load;
mod queue;
mod take;
pub(crate) mod waiting;

pub use queue::Claimed;

use std::fmt;
use std::time::Duration;

use landform_domain::run::{Command, Generation, Kind, Urgency};
use landform_domain::{
    DeploymentId, DeploymentName, EngineChoice, EngineName, Inputs, RunId, TemplateName, TenantName,
};

use crate::connection::ConnectionValues;
use crate::db::{Tx, params};
use crate::error::StoreError;
use crate::finish::millis;
use crate::journal::JournalEntry;
use crate::open::Store;
use crate::transition::{Locked, Means, advance, load_run, lock_by_id};
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

/// Drift checks stand behind every change in the order of claims: those that somebody asked for, then those of schedules.
/// Keys of changes count runs and never come this far.
pub(crate) const ASKED_CHECKS: i64 = 1 << 60;
pub(crate) const SCHEDULED_CHECKS: i64 = 1 << 61;

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
    /// The most memory that runs of this template version took before, in bytes.
    pub memory: Option<u64>,
    /// What an earlier attempt of this run was carried out by.
    pub engine_before: Option<EngineName>,
    pub state: Option<Vec<u8>>,
    pub adopt: Vec<Adoption>,
    /// Addresses of objects to replace although nothing about them has changed.
    pub replace: Vec<String>,
    /// Intents of updates that were interrupted, as the engine wrote them: nobody knows whether they were made.
    pub doubted: Vec<Vec<u8>>,
    /// It ends with its plan.
    pub plan_only: bool,
    pub work: Work,
}

impl Claim {
    /// Whether it may take from a budget what others want.
    pub fn urgency(&self) -> Urgency {
        self.kind.urgency()
    }
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
            self.inner.meter.lease_lost();
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
        self.free_accounts(worker).await?;
        self.inner.bell.ring();
        Ok(voided)
    }

    fn lease_millis(&self) -> i64 {
        millis(self.inner.lease)
    }
}

async fn load_pair(tx: &mut Tx, deployment: DeploymentId, run: RunId) -> Result<Option<(Locked, Run)>, StoreError> {
    let Some(locked) = lock_by_id(tx, deployment).await? else { return Ok(None) };
    Ok(load_run(tx, run).await?.map(|run| (locked, run)))
}
