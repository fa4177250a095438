//! Keeping what `domain::run::step` decides. Whoever calls holds the lock of the deployment's row.

use landform_domain::recovery::Answer;
use landform_domain::run::{Action, Command, Phase, Status, step};
use landform_domain::{DeploymentId, DeploymentName, EngineName, EventBody, RunId, TenantName};

use crate::claim::Lease;
use crate::claim::waiting::{hand_slot_on, unpark};
use crate::db::{Row, Tx, params};
use crate::drift;
use crate::error::StoreError;
use crate::inventory;
use crate::view::Run;

/// A deployment's row, locked until the transaction ends.
pub(crate) struct Locked {
    pub(crate) id: DeploymentId,
    pub(crate) tenant: TenantName,
    pub(crate) name: DeploymentName,
    pub(crate) generation: i64,
    pub(crate) state_generation: Option<i64>,
    pub(crate) state_version: Option<i64>,
    pub(crate) last_state_version: i64,
    pub(crate) epoch: i64,
    /// The last look has found drift.
    pub(crate) drifted: bool,
}

impl Locked {
    /// From the columns that [`locked_columns`] names.
    pub(crate) fn from_row(row: &Row) -> Result<Locked, StoreError> {
        Ok(Locked {
            id: row.parsed("d_id")?,
            tenant: row.parsed("d_tenant")?,
            name: row.parsed("d_name")?,
            generation: row.int("d_generation")?,
            state_generation: row.int_or_null("d_state_generation")?,
            state_version: row.int_or_null("d_state_version")?,
            last_state_version: row.int("d_last_state_version")?,
            epoch: row.int("d_epoch")?,
            drifted: row.flag("d_drifted")?,
        })
    }
}

/// The columns of `deployments d` that make a [`Locked`].
macro_rules! locked_columns {
    () => {
        "d.id AS d_id, d.tenant AS d_tenant, d.name AS d_name, d.generation AS d_generation,
         d.state_generation AS d_state_generation, d.state_version AS d_state_version,
         d.last_state_version AS d_last_state_version, d.epoch AS d_epoch, d.drifted AS d_drifted"
    };
}
pub(crate) use locked_columns;

/// The columns of `runs r` that make a [`Run`].
macro_rules! run_columns {
    () => {
        "r.id, r.deployment, r.tenant, r.name, r.kind, r.generation, r.requires_approval, r.plan_only, r.cancel_requested,
         r.detail, r.engine, r.author, r.author_name, r.attempts, r.created_at, r.started_at, r.ended_at,
         CASE WHEN r.claimable > 1 THEN r.claimable END AS waits_for, r.not_before, r.blocked_by,
         CASE WHEN r.claimable = 2 THEN (SELECT w.paused FROM deployments w WHERE w.id = r.deployment) END AS paused,
         CASE WHEN r.claimable = 2 THEN (SELECT w.active_run FROM deployments w WHERE w.id = r.deployment) END AS held_by,
         CASE WHEN r.claimable = 2 THEN (SELECT h.status FROM deployments w JOIN runs h ON h.id = w.active_run
            WHERE w.id = r.deployment) END AS held_as"
    };
}
pub(crate) use run_columns;

pub(crate) async fn lock_by_name(
    tx: &mut Tx,
    tenant: &TenantName,
    name: &DeploymentName,
) -> Result<Option<Locked>, StoreError> {
    let row = tx
        .one(
            concat!("SELECT ", locked_columns!(), " FROM deployments d WHERE d.tenant = $1 AND d.name = $2 {lock}"),
            params![tenant.as_str(), name.as_str()],
        )
        .await?;
    row.as_ref().map(Locked::from_row).transpose()
}

pub(crate) async fn lock_by_id(tx: &mut Tx, id: DeploymentId) -> Result<Option<Locked>, StoreError> {
    let row = tx
        .one(
            concat!("SELECT ", locked_columns!(), " FROM deployments d WHERE d.id = $1 {lock}"),
            params![id.to_string()],
        )
        .await?;
    row.as_ref().map(Locked::from_row).transpose()
}

/// The gate of every write by a worker: the row is locked if its epoch is the lease's; otherwise nothing is locked, and
/// nothing is written.
pub(crate) async fn fence(tx: &mut Tx, lease: &Lease) -> Result<Locked, StoreError> {
    let row = tx
        .one(
            concat!("SELECT ", locked_columns!(), " FROM deployments d WHERE d.id = $1 AND d.epoch = $2 {lock}"),
            params![lease.deployment.to_string(), lease.epoch],
        )
        .await?;
    row.as_ref().map(Locked::from_row).transpose()?.ok_or(StoreError::Fenced)
}

/// The same gate, for a write that moves the run on.
pub(crate) async fn fence_run(tx: &mut Tx, lease: &Lease) -> Result<(Locked, Run), StoreError> {
    let row = tx
        .one(
            concat!(
                "SELECT ",
                locked_columns!(),
                ", ",
                run_columns!(),
                " FROM deployments d JOIN runs r ON r.deployment = d.id
                 WHERE d.id = $1 AND d.epoch = $2 AND r.id = $3 {lock_both}"
            ),
            params![lease.deployment.to_string(), lease.epoch, lease.run.to_string()],
        )
        .await?;
    let row = row.ok_or(StoreError::Fenced)?;
    Ok((Locked::from_row(&row)?, Run::from_row(&row)?))
}

pub(crate) async fn load_run(tx: &mut Tx, id: RunId) -> Result<Option<Run>, StoreError> {
    let sql = concat!("SELECT ", run_columns!(), " FROM runs r WHERE r.id = $1");
    let row = tx.one(sql, params![id.to_string()]).await?;
    row.as_ref().map(Run::from_row).transpose()
}

/// What the actions of a step may need, and what is written with it.
#[derive(Default)]
pub(crate) struct Means {
    pub(crate) sealed_plan: Option<Vec<u8>>,
    /// Which engine carries the run out, once that is known.
    pub(crate) engine: Option<EngineName>,
    /// Goes into the run's log before what the step says.
    pub(crate) events: Vec<EventBody>,
}

/// Takes one step with a run and keeps everything that follows from it.
pub(crate) async fn advance(
    tx: &mut Tx,
    deployment: DeploymentId,
    run: &Run,
    command: Command,
    means: Means,
) -> Result<Run, StoreError> {
    let moved = step(&run.rules(), command)?;
    let status = &moved.run.status;
    let claimable = matches!(status, Status::Queued(_) | Status::Applying(Phase::Interrupted));
    let expires_at = match status {
        Status::AwaitingApproval { expires_at, .. } => Some(*expires_at),
        _ => None,
    };
    let (mut hold, mut plan, mut others) = (Holding::default(), PlanChange::Leave, Vec::new());
    for action in moved.actions {
        match action {
            Action::Fence => hold.fence = true,
            Action::EndLease => hold.end_lease = true,
            Action::Free => hold.free = true,
            Action::MarkApplied => hold.applied = Some(run.generation),
            Action::KeepPlan => plan = PlanChange::Keep,
            Action::DropPlan => plan = PlanChange::Drop,
            Action::Answered { .. } | Action::RemoveDeployment => others.push(action),
            Action::Hold | Action::Lease => return Err(corrupt("a claim, which has a way of its own")),
        }
    }
    let sealed_plan = match plan {
        PlanChange::Keep => Some(means.sealed_plan.ok_or_else(|| corrupt("a plan to keep without its bytes"))?),
        PlanChange::Leave | PlanChange::Drop => None,
    };
    let events = [means.events, moved.events].concat();
    tx.execute(
        "UPDATE runs SET status = $2, detail = $3, claimable = $4, cancel_requested = $5, expires_at = $6,
                ended_at = CASE WHEN $7 = 1 THEN {now} ELSE ended_at END,
                plan = CASE WHEN $8 = 1 THEN plan ELSE $9 END,
                engine = COALESCE($10, engine),
                last_event = last_event + $11
             WHERE id = $1",
        params![
            run.id.to_string(),
            status.word(),
            serde_json::to_string(status)?,
            claimable,
            moved.run.cancel_requested,
            expires_at,
            status.is_final(),
            matches!(plan, PlanChange::Leave),
            sealed_plan,
            means.engine.map(EngineName::as_str),
            events.len() as i64,
        ],
    )
    .await?;
    insert_events(tx, run.id, &events).await?;
    hold.keep(tx, deployment, run.id).await?;
    for action in others {
        perform(tx, deployment, run, action).await?;
    }
    Ok(Run {
        status: moved.run.status,
        cancel_requested: moved.run.cancel_requested,
        engine: means.engine.or(run.engine),
        ..run.clone()
    })
}

enum PlanChange {
    Leave,
    Keep,
    Drop,
}

/// What a step changes about who holds the deployment: written in one statement.
#[derive(Default)]
struct Holding {
    fence: bool,
    end_lease: bool,
    free: bool,
    applied: Option<i64>,
}

impl Holding {
    async fn keep(self, tx: &mut Tx, deployment: DeploymentId, run: RunId) -> Result<(), StoreError> {
        let Holding { fence, end_lease, free, applied } = self;
        if !(fence || end_lease || free || applied.is_some()) {
            return Ok(());
        }
        let row = tx.exactly_one(
            // Only its own hold is freed: a queued run that is superseded holds nothing, while another may be applying.
            "UPDATE deployments SET
                epoch = epoch + $2,
                active_run = CASE WHEN $3 = 1 AND active_run = $4 THEN NULL ELSE active_run END,
                lease_worker = CASE WHEN $5 = 1 THEN NULL ELSE lease_worker END,
                lease_until = CASE WHEN $5 = 1 THEN NULL ELSE lease_until END,
                applied_generation = COALESCE($6, applied_generation),
                updated_at = CASE WHEN $6 IS NULL THEN updated_at ELSE {now} END
             WHERE id = $1
             RETURNING tenant, (SELECT t.slots FROM tenants t WHERE t.name = deployments.tenant) AS slots,
                CAST(CASE WHEN parked = 1 AND paused = 0 AND active_run IS NULL THEN 1 ELSE 0 END AS BIGINT) AS waited_for",
            params![
deployment.to_string(), fence, free, run.to_string(), end_lease, applied,],
        )
        .await?;
        if row.flag("waited_for")? {
            unpark(tx, deployment).await?;
        }
        if end_lease && row.int_or_null("slots")?.is_some() {
            hand_slot_on(tx, &row.parsed("tenant")?).await?;
        }
        Ok(())
    }
}

async fn perform(tx: &mut Tx, deployment: DeploymentId, run: &Run, action: Action) -> Result<(), StoreError> {
    let id = deployment.to_string();
    match action {
        Action::Answered { doubt, answer } => {
            tx.execute("DELETE FROM intents WHERE id = $1 AND deployment = $2", params![doubt.intent, id.clone()])
                .await?;
            if let Answer::Adopt(object_id) = answer {
                tx.execute(
                    "INSERT INTO adoptions (deployment, address, object_id, after_doubt) VALUES ($1, $2, $3, 1)
                     ON CONFLICT (deployment, address) DO UPDATE SET object_id = excluded.object_id, after_doubt = 1",
                    params![id, doubt.address, object_id],
                )
                .await?;
            }
            Ok(())
        }
        Action::RemoveDeployment => {
            inventory::clear(tx, &run.tenant, &run.deployment).await?;
            remove_deployment(tx, id, run.generation).await
        }
        _ => Err(corrupt("an action that belongs to the run's or the deployment's row")),
    }
}

/// The row goes, unless a newer generation was accepted meanwhile: then it begins anew, without state.
async fn remove_deployment(tx: &mut Tx, id: String, generation: i64) -> Result<(), StoreError> {
    let gone = tx
        .execute("DELETE FROM deployments WHERE id = $1 AND generation = $2", params![id.clone(), generation])
        .await?;
    if gone == 1 {
        tx.execute("DELETE FROM generations WHERE deployment = $1", params![id.clone()]).await?;
        tx.execute("DELETE FROM generation_connections WHERE deployment = $1", params![id.clone()]).await?;
        drift::forget(tx, &id).await?;
    } else {
        drift::unknown_again(tx, &id).await?;
        tx.execute(
            "UPDATE deployments SET state_version = NULL, state_generation = NULL, applied_generation = NULL,
                outputs = NULL, updated_at = {now} WHERE id = $1",
            params![id.clone()],
        )
        .await?;
    }
    tx.execute("DELETE FROM adoptions WHERE deployment = $1", params![id.clone()]).await?;
    tx.execute("DELETE FROM intents WHERE deployment = $1", params![id]).await?;
    Ok(())
}

/// Numbers are given under the deployment's lock, so they are committed in their order.
pub(crate) async fn append_events(tx: &mut Tx, run: RunId, events: &[EventBody]) -> Result<(), StoreError> {
    if events.is_empty() {
        return Ok(());
    }
    let sql = "UPDATE runs SET last_event = last_event + $2 WHERE id = $1";
    tx.execute(sql, params![run.to_string(), events.len() as i64]).await?;
    insert_events(tx, run, events).await
}

/// All in one statement. Their numbers are the run's last ones, and it counts them already.
async fn insert_events(tx: &mut Tx, run: RunId, events: &[EventBody]) -> Result<(), StoreError> {
    if events.is_empty() {
        return Ok(());
    }
    let bodies: Vec<String> = events.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
    tx.execute(
        "INSERT INTO events (run, seq, at, body) SELECT r.id, r.last_event - $2 + e.at, {now}, e.value
         FROM runs r CROSS JOIN {strings $3} WHERE r.id = $1",
        params![run.to_string(), events.len() as i64 - 1, serde_json::to_string(&bodies)?],
    )
    .await?;
    Ok(())
}

fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt(what.to_owned())
}
