//! The step of a claim, with several runs at once.

use landform_domain::EventBody;
use landform_domain::run::{Action, Command, Status, step};

use super::WorkerId;
use crate::db::{Tx, params};
use crate::error::StoreError;
use crate::transition::Locked;
use crate::view::Run;

/// A run that is being claimed, with its deployment's row as it was before.
pub(super) struct Taken {
    pub(super) locked: Locked,
    pub(super) run: Run,
    /// Addresses of objects to replace.
    pub(super) replaces: Vec<String>,
    /// What it is thought to need, if that is known.
    pub(super) memory: Option<u64>,
}

/// Takes the step of a claim with several runs at once, in three statements for each status that they get: what
/// [`crate::transition::advance`] does one by one. All rows are locked.
pub(super) async fn take_all(
    tx: &mut Tx,
    worker: &WorkerId,
    lease_millis: i64,
    taken: Vec<Taken>,
) -> Result<Vec<Taken>, StoreError> {
    let mut moved: Vec<(Status, Vec<String>)> = Vec::new();
    let mut after = Vec::with_capacity(taken.len());
    for Taken { locked, run, replaces, memory } in taken {
        let step = step(&run.rules(), Command::Claim)?;
        let (status, actions) = (step.run.status, step.actions);
        if actions != [Action::Fence, Action::Hold, Action::Lease] || step.events != [EventBody::Status(status.clone())]
        {
            return Err(StoreError::Corrupt("a claim that does more than to take the run".into()));
        }
        match moved.iter_mut().find(|(other, _)| *other == status) {
            Some((_, runs)) => runs.push(run.id.to_string()),
            None => moved.push((status.clone(), vec![run.id.to_string()])),
        }
        after.push(Taken { locked, run: Run { status, attempts: run.attempts + 1, ..run }, replaces, memory });
    }
    for (status, runs) in moved {
        let runs = serde_json::to_string(&runs)?;
        tx.execute(
            "UPDATE runs SET status = $2, detail = $3, claimable = 0, expires_at = NULL, attempts = attempts + 1,
                started_at = COALESCE(started_at, {now}), last_event = last_event + 1
             WHERE id IN (SELECT e.value FROM {strings $1})",
            params![runs.as_str(), status.word(), serde_json::to_string(&status)?],
        )
        .await?;
        tx.execute(
            "INSERT INTO events (run, seq, at, body) SELECT r.id, r.last_event, {now}, $2 FROM runs r
             WHERE r.id IN (SELECT e.value FROM {strings $1})",
            params![runs.as_str(), serde_json::to_string(&EventBody::Status(status))?],
        )
        .await?;
        tx.execute(
            "UPDATE deployments SET epoch = epoch + 1, active_run = r.id, lease_worker = $2, lease_until = {now} + $3
             FROM runs r WHERE r.id IN (SELECT e.value FROM {strings $1}) AND deployments.id = r.deployment",
            params![runs, worker.as_str(), lease_millis],
        )
        .await?;
    }
    Ok(after)
}
