//! Drift as a fact about a deployment: what the last check found, until an apply has brought things to order. A check that
//! fails leaves the fact as it was and says so. How checks come about is in `check`, who looks over the fleet in `fleet`.

mod check;
mod fleet;

use landform_domain::{
    Actor, Code, DeploymentName, Drift, DriftStatus, DriftSummary, DriftedObject, Problem, RunId, TenantName,
};
use serde_json::json;

use crate::audit::{Deed, write_down};
use crate::claim::Lease;
use crate::db::{Row, Tx, params};
use crate::error::StoreError;
use crate::finish::{EngineChosen, chosen};
use crate::keys::{Kind, Sealer};
use crate::open::Store;
use crate::read::unknown_deployment;
use crate::transition::{Locked, advance, fence_run, lock_by_name};
use crate::view::Run;

pub(crate) use check::checks_give_way;
pub use fleet::{DriftFilter, DriftGroup, DriftedDeployment};

/// What is known of a deployment's drift.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DriftFact {
    pub status: DriftStatus,
    /// The run that found this, or that brought things to order.
    pub run: Option<RunId>,
    pub checked_at: Option<i64>,
    pub drifted_since: Option<i64>,
    pub summary: DriftSummary,
    /// The first of them; in lists none.
    pub objects: Vec<DriftedObject>,
    /// The last check, if it failed.
    pub failed: Option<FailedCheck>,
    /// Seconds between two checks.
    pub every: Option<i64>,
    pub next_at: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedCheck {
    pub run: RunId,
    pub code: String,
    pub at: i64,
}

/// The columns of `drift f`, which may be missing, that make a [`DriftFact`] without its objects.
macro_rules! drift_columns {
    () => {
        "f.status AS f_status, f.run AS f_run, f.checked_at AS f_checked_at, f.drifted_since AS f_drifted_since,
         f.changed AS f_changed, f.gone AS f_gone, f.failed_run AS f_failed_run, f.failed_code AS f_failed_code,
         f.failed_at AS f_failed_at, f.every AS f_every, f.next_at AS f_next_at"
    };
}
pub(crate) use drift_columns;

impl DriftFact {
    pub(crate) fn from_row(row: &Row) -> Result<DriftFact, StoreError> {
        let run = |column: &str| -> Result<Option<RunId>, StoreError> {
            Ok(row.text_or_null(column)?.map(|id| id.parse()).transpose()?)
        };
        let count =
            |column: &str| -> Result<u64, StoreError> { Ok(row.int_or_null(column)?.unwrap_or(0).unsigned_abs()) };
        let status = row.text_or_null("f_status")?;
        let failed = (run("f_failed_run")?, row.text_or_null("f_failed_code")?, row.int_or_null("f_failed_at")?);
        Ok(DriftFact {
            status: status.as_deref().and_then(DriftStatus::of_word).unwrap_or_default(),
            run: run("f_run")?,
            checked_at: row.int_or_null("f_checked_at")?,
            drifted_since: row.int_or_null("f_drifted_since")?,
            summary: DriftSummary { changed: count("f_changed")?, gone: count("f_gone")? },
            objects: Vec::new(),
            failed: match failed {
                (Some(run), Some(code), Some(at)) => Some(FailedCheck { run, code, at }),
                _ => None,
            },
            every: row.int_or_null("f_every")?,
            next_at: row.int_or_null("f_next_at")?,
        })
    }
}

const FACT: &str = concat!(
    "SELECT d.id, f.objects, ",
    drift_columns!(),
    " FROM deployments d LEFT JOIN drift f ON f.deployment = d.id
     WHERE d.tenant = $1 AND d.name = $2 AND d.generation > 0"
);

impl Store {
    pub async fn drift(&self, tenant: &TenantName, name: &DeploymentName) -> Result<DriftFact, StoreError> {
        let row = self.db().read_one(FACT, params![tenant.as_str(), name.as_str()]).await?;
        let row = row.ok_or_else(|| unknown_deployment(tenant, name))?;
        let mut fact = DriftFact::from_row(&row)?;
        if let Some(sealed) = row.blob_or_null("objects")? {
            let sealer = self.tenant_key(tenant).await?.sealer(row.parsed("id")?);
            fact.objects = serde_json::from_slice(&sealer.open(Kind::Drift, "", &sealed)?)?;
        }
        Ok(fact)
    }

    /// How often somebody looks: every so many seconds, or never. Who was not looked at for so long is looked at soon.
    pub async fn schedule_drift_checks(
        &self,
        tenant: &TenantName,
        name: &DeploymentName,
        every: Option<i64>,
        by: &Actor,
    ) -> Result<(), StoreError> {
        if let Some(every) = every
            && !(SHORTEST..=LONGEST).contains(&every)
        {
            let message = format!("a schedule is every {SHORTEST} to {LONGEST} seconds");
            return Err(Problem::new(Code::RequestInvalid, message).into());
        }
        let mut tx = self.db().begin().await?;
        let locked = lock_by_name(&mut tx, tenant, name).await?.filter(|locked| locked.generation > 0);
        let locked = locked.ok_or_else(|| unknown_deployment(tenant, name))?;
        make_row(&mut tx, &locked).await?;
        tx.execute(
            "UPDATE drift SET every = $2, next_at = CASE
                 WHEN $2 IS NULL THEN NULL
                 WHEN checked_at IS NULL OR checked_at + $2 * 1000 < {now} THEN {now}
                 ELSE checked_at + $2 * 1000 END
             WHERE deployment = $1",
            params![locked.id.to_string(), every],
        )
        .await?;
        let detail = json!({"every_seconds": every});
        let deed = Deed { action: "drift.schedule", tenant: Some(tenant), target: name.to_string(), detail };
        write_down(&mut tx, by, deed).await?;
        tx.commit().await
    }

    /// A check has come to its end: the fact, the run's end and the event together. Nothing else is written.
    pub async fn checked(&self, lease: &Lease, engines: Vec<EngineChosen>, drift: Drift) -> Result<(), StoreError> {
        let sealer = self.sealer(lease).await?;
        let mut tx = self.db().begin().await?;
        let (locked, run) = fence_run(&mut tx, lease).await?;
        let command = landform_domain::run::Command::Checked { found: drift.summary };
        let run = advance(&mut tx, locked.id, &run, command, chosen(engines)).await?;
        keep(&mut tx, &sealer, &locked, &run, &drift).await?;
        tx.commit().await?;
        self.inner.meter.moved(run.id, "check", &run.status, run.engine);
        self.inner.bell.ring();
        Ok(())
    }
}

/// A minute, and a month.
const SHORTEST: i64 = 60;
const LONGEST: i64 = 31 * 24 * 3600;

async fn make_row(tx: &mut Tx, locked: &Locked) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO drift (deployment, tenant, name, status) VALUES ($1, $2, $3, 'unknown')
         ON CONFLICT (deployment) DO NOTHING",
        params![locked.id.to_string(), locked.tenant.as_str(), locked.name.as_str()],
    )
    .await?;
    Ok(())
}

async fn keep(tx: &mut Tx, sealer: &Sealer, locked: &Locked, run: &Run, drift: &Drift) -> Result<(), StoreError> {
    make_row(tx, locked).await?;
    let drifted = !drift.summary.is_none();
    let objects = match drifted {
        true => Some(sealer.seal(Kind::Drift, "", &serde_json::to_vec(&drift.objects)?)?),
        false => None,
    };
    let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    tx.execute(
        "UPDATE drift SET status = $2, run = $3, generation = $4, checked_at = {now},
            drifted_since = CASE WHEN $2 = 'drifted' THEN COALESCE(drifted_since, {now}) ELSE NULL END,
            changed = $5, gone = $6, objects = $7, failed_run = NULL, failed_code = NULL, failed_at = NULL
         WHERE deployment = $1",
        params![
            locked.id.to_string(),
            if drifted { DriftStatus::Drifted.as_str() } else { DriftStatus::None.as_str() },
            run.id.to_string(),
            run.generation,
            count(drift.summary.changed),
            count(drift.summary.gone),
            objects,
        ],
    )
    .await?;
    keep_objects(tx, locked, run, &drift.objects).await?;
    let sql = "UPDATE deployments SET drifted = $2 WHERE id = $1";
    tx.execute(sql, params![locked.id.to_string(), drifted]).await?;
    Ok(())
}

async fn keep_objects(tx: &mut Tx, locked: &Locked, run: &Run, objects: &[DriftedObject]) -> Result<(), StoreError> {
    tx.execute("DELETE FROM drift_objects WHERE deployment = $1", params![locked.id.to_string()]).await?;
    for object in objects {
        tx.execute(
            "INSERT INTO drift_objects (deployment, tenant, name, template, address, type, gone, attributes)
             SELECT $1, $2, $3, COALESCE(r.template, ''), $4, $5, $6, $7 FROM runs r WHERE r.id = $8
             ON CONFLICT (deployment, address) DO NOTHING",
            params![
                locked.id.to_string(),
                locked.tenant.as_str(),
                locked.name.as_str(),
                object.address.as_str(),
                object.kind.as_str(),
                object.gone,
                object.attributes().join(" "),
                run.id.to_string(),
            ],
        )
        .await?;
    }
    Ok(())
}

/// A run has brought everything to where it should be.
pub(crate) async fn settle(tx: &mut Tx, sealer: &Sealer, locked: &Locked, run: &Run) -> Result<(), StoreError> {
    if !locked.drifted {
        return Ok(());
    }
    keep(tx, sealer, locked, run, &Drift::default()).await
}

/// A check has failed: what was known is still what is known.
pub(crate) async fn check_failed(tx: &mut Tx, locked: &Locked, run: &Run, code: Code) -> Result<(), StoreError> {
    make_row(tx, locked).await?;
    tx.execute(
        "UPDATE drift SET failed_run = $2, failed_code = $3, failed_at = {now} WHERE deployment = $1",
        params![locked.id.to_string(), run.id.to_string(), code.as_str()],
    )
    .await?;
    Ok(())
}

/// The state is another one now, and nobody has compared it yet. The schedule stays.
pub(crate) async fn unknown_again(tx: &mut Tx, deployment: &str) -> Result<(), StoreError> {
    for sql in [
        "UPDATE drift SET status = 'unknown', run = NULL, generation = NULL, checked_at = NULL, drifted_since = NULL,
            changed = 0, gone = 0, objects = NULL, failed_run = NULL, failed_code = NULL, failed_at = NULL
         WHERE deployment = $1",
        "DELETE FROM drift_objects WHERE deployment = $1",
        "UPDATE deployments SET drifted = 0 WHERE id = $1",
    ] {
        tx.execute(sql, params![deployment]).await?;
    }
    Ok(())
}

/// The deployment is gone.
pub(crate) async fn forget(tx: &mut Tx, deployment: &str) -> Result<(), StoreError> {
    for sql in ["DELETE FROM drift WHERE deployment = $1", "DELETE FROM drift_objects WHERE deployment = $1"] {
        tx.execute(sql, params![deployment]).await?;
    }
    Ok(())
}
