//! Keeping what `domain::run::step` decides. Whoever calls holds the lock of the deployment's row.

use landform_domain::recovery::Answer;
use landform_domain::run::{Action, Command, Phase, Status, step};
use landform_domain::{DeploymentId, DeploymentName, EventBody, RunId, TenantName};

use crate::claim::{Lease, WorkerId};
use crate::db::{Row, Tx, params};
use crate::error::StoreError;
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
}

impl Locked {
    fn from_row(row: &Row) -> Result<Locked, StoreError> {
        Ok(Locked {
            id: row.parsed("id")?,
            tenant: row.parsed("tenant")?,
            name: row.parsed("name")?,
            generation: row.int("generation")?,
            state_generation: row.int_or_null("state_generation")?,
            state_version: row.int_or_null("state_version")?,
            last_state_version: row.int("last_state_version")?,
            epoch: row.int("epoch")?,
        })
    }
}

pub(crate) async fn lock_by_name(
    tx: &mut Tx,
    tenant: &TenantName,
    name: &DeploymentName,
) -> Result<Option<Locked>, StoreError> {
    let row = tx
        .one(
            "SELECT id, tenant, name, generation, state_generation, state_version, last_state_version, epoch
             FROM deployments WHERE tenant = $1 AND name = $2 {lock}",
            params![tenant.as_str(), name.as_str()],
        )
        .await?;
    row.as_ref().map(Locked::from_row).transpose()
}

pub(crate) async fn lock_by_id(tx: &mut Tx, id: DeploymentId) -> Result<Option<Locked>, StoreError> {
    let row = tx
        .one(
            "SELECT id, tenant, name, generation, state_generation, state_version, last_state_version, epoch
             FROM deployments WHERE id = $1 {lock}",
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
            "SELECT id, tenant, name, generation, state_generation, state_version, last_state_version, epoch
             FROM deployments WHERE id = $1 AND epoch = $2 {lock}",
            params![lease.deployment.to_string(), lease.epoch],
        )
        .await?;
    row.as_ref().map(Locked::from_row).transpose()?.ok_or(StoreError::Fenced)
}

pub(crate) async fn load_run(tx: &mut Tx, id: RunId) -> Result<Option<Run>, StoreError> {
    let row = tx
        .one(
            "SELECT id, deployment, tenant, name, kind, generation, requires_approval, plan_only, cancel_requested, detail, engine,
                    author, author_name, attempts, created_at, started_at, ended_at
             FROM runs WHERE id = $1",
            params![id.to_string()],
        )
        .await?;
    row.as_ref().map(Run::from_row).transpose()
}

/// What the actions of a step may need.
#[derive(Default)]
pub(crate) struct Means<'a> {
    pub(crate) worker: Option<(&'a WorkerId, i64)>,
    pub(crate) sealed_plan: Option<Vec<u8>>,
}

/// Takes one step with a run and keeps everything that follows from it.
pub(crate) async fn advance(
    tx: &mut Tx,
    deployment: DeploymentId,
    run: &Run,
    command: Command,
    means: Means<'_>,
) -> Result<Run, StoreError> {
    let claimed = command == Command::Claim;
    let moved = step(&run.rules(), command)?;
    let status = &moved.run.status;
    let status_is_final = status.is_final();
    let claimable = matches!(status, Status::Queued(_) | Status::Applying(Phase::Interrupted));
    let expires_at = match status {
        Status::AwaitingApproval { expires_at, .. } => Some(*expires_at),
        _ => None,
    };
    tx.execute(
        "UPDATE runs SET status = $2, detail = $3, claimable = $4, cancel_requested = $5, expires_at = $6,
            attempts = attempts + $7,
            started_at = CASE WHEN $7 = 1 AND started_at IS NULL THEN {now} ELSE started_at END,
            ended_at = CASE WHEN $8 = 1 THEN {now} ELSE ended_at END
         WHERE id = $1",
        params![
            run.id.to_string(),
            status.word(),
            serde_json::to_string(status)?,
            claimable,
            moved.run.cancel_requested,
            expires_at,
            claimed,
            status_is_final,
        ],
    )
    .await?;
    append_events(tx, run.id, &moved.events).await?;
    for action in moved.actions {
        perform(tx, deployment, run, action, &means).await?;
    }
    // Others are told only what they may be waiting for: work, an end, or a wish to stop.
    if claimable || status_is_final || moved.run.cancel_requested {
        tx.notify().await?;
    }
    Ok(Run {
        status: moved.run.status,
        cancel_requested: moved.run.cancel_requested,
        attempts: run.attempts + i64::from(claimed),
        ..run.clone()
    })
}

async fn perform(
    tx: &mut Tx,
    deployment: DeploymentId,
    run: &Run,
    action: Action,
    means: &Means<'_>,
) -> Result<(), StoreError> {
    let id = deployment.to_string();
    match action {
        Action::Fence => {
            tx.execute("UPDATE deployments SET epoch = epoch + 1 WHERE id = $1", params![id]).await?;
        }
        Action::Lease => {
            let (worker, millis) = means.worker.ok_or_else(|| corrupt("a lease without a worker"))?;
            tx.execute(
                "UPDATE deployments SET lease_worker = $2, lease_until = {now} + $3 WHERE id = $1",
                params![id, worker.as_str(), millis],
            )
            .await?;
        }
        Action::EndLease => {
            tx.execute("UPDATE deployments SET lease_worker = NULL, lease_until = NULL WHERE id = $1", params![id])
                .await?;
        }
        Action::Hold => {
            tx.execute("UPDATE deployments SET active_run = $2 WHERE id = $1", params![id, run.id.to_string()]).await?;
        }
        // Only its own hold: a queued run that is superseded holds nothing, while another may be applying.
        Action::Free => {
            tx.execute(
                "UPDATE deployments SET active_run = NULL WHERE id = $1 AND active_run = $2",
                params![id, run.id.to_string()],
            )
            .await?;
        }
        Action::KeepPlan => {
            let plan = means.sealed_plan.clone().ok_or_else(|| corrupt("a plan to keep without its bytes"))?;
            tx.execute("UPDATE runs SET plan = $2 WHERE id = $1", params![run.id.to_string(), plan]).await?;
        }
        Action::DropPlan => {
            tx.execute("UPDATE runs SET plan = NULL WHERE id = $1", params![run.id.to_string()]).await?;
        }
        Action::Answered { doubt, answer } => {
            tx.execute(
                "UPDATE intents SET status = 'closed' WHERE id = $1 AND deployment = $2",
                params![doubt.intent, id.clone()],
            )
            .await?;
            if let Answer::Adopt(object_id) = answer {
                tx.execute(
                    "INSERT INTO adoptions (deployment, address, object_id) VALUES ($1, $2, $3)
                     ON CONFLICT (deployment, address) DO UPDATE SET object_id = excluded.object_id",
                    params![id, doubt.address, object_id],
                )
                .await?;
            }
        }
        Action::MarkApplied => {
            tx.execute(
                "UPDATE deployments SET applied_generation = $2, updated_at = {now} WHERE id = $1",
                params![id, run.generation],
            )
            .await?;
        }
        Action::RemoveDeployment => remove_deployment(tx, id, run.generation).await?,
    }
    Ok(())
}

/// The row goes, unless a newer generation was accepted meanwhile: then it begins anew, without state.
async fn remove_deployment(tx: &mut Tx, id: String, generation: i64) -> Result<(), StoreError> {
    let gone = tx
        .execute("DELETE FROM deployments WHERE id = $1 AND generation = $2", params![id.clone(), generation])
        .await?;
    if gone == 1 {
        tx.execute("DELETE FROM generations WHERE deployment = $1", params![id.clone()]).await?;
        tx.execute("DELETE FROM generation_connections WHERE deployment = $1", params![id.clone()]).await?;
    } else {
        tx.execute(
            "UPDATE deployments SET state_version = NULL, state_generation = NULL, applied_generation = NULL,
                outputs = NULL, updated_at = {now} WHERE id = $1",
            params![id.clone()],
        )
        .await?;
    }
    tx.execute("DELETE FROM adoptions WHERE deployment = $1", params![id]).await?;
    Ok(())
}

/// Numbers are given under the deployment's lock, so they are committed in their order.
pub(crate) async fn append_events(tx: &mut Tx, run: RunId, events: &[EventBody]) -> Result<(), StoreError> {
    if events.is_empty() {
        return Ok(());
    }
    let row = tx
        .exactly_one(
            "UPDATE runs SET last_event = last_event + $2 WHERE id = $1 RETURNING last_event",
            params![run.to_string(), events.len() as i64],
        )
        .await?;
    let first = row.int("last_event")? - events.len() as i64 + 1;
    for (seq, event) in (first..).zip(events) {
        tx.execute(
            "INSERT INTO events (run, seq, at, body) VALUES ($1, $2, {now}, $3)",
            params![run.to_string(), seq, serde_json::to_string(event)?],
        )
        .await?;
    }
    Ok(())
}

fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt(what.to_owned())
}
