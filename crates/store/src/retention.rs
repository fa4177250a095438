//! What is not needed any more goes, a little at a time, so that the writer is never held up for long.
//!
//! Runs and their logs go by age, except a deployment's newest one, which says how it stands. With a run goes the
//! desired state that it was for, unless something else needs that. Older versions of a state go by count when a newer
//! one is written; a journal entry goes when it is closed; a plan when its run has ended. The audit log stays.

use std::time::Duration;

use landform_domain::{DeploymentId, RunId};

use crate::db::{Tx, params};
use crate::error::StoreError;
use crate::finish::millis;
use crate::open::Store;

/// How long things are kept.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// From a run's end on.
    pub runs: Duration,
    /// For so long the same Idempotency-Key gets the same answer.
    pub idempotency_keys: Duration,
    /// So many versions of each state, the current one among them. At least 1.
    pub state_versions: u32,
}

impl Default for Retention {
    fn default() -> Retention {
        const DAY: Duration = Duration::from_secs(24 * 3600);
        Retention { runs: 90 * DAY, idempotency_keys: 2 * DAY, state_versions: 50 }
    }
}

/// One pass over what is old. It goes on where the last batch ended.
#[derive(Debug, Default)]
struct Pass {
    ended_at: i64,
    id: String,
}

const BATCH: usize = 200;

impl Store {
    /// Removes what is older than it must be. Returns how many runs went.
    pub async fn prune(&self) -> Result<usize, StoreError> {
        while self.prune_keys().await? == BATCH {}
        self.prune_accounts().await?;
        let (mut pass, mut removed) = (Pass::default(), 0);
        loop {
            let batch = self.prune_runs(&mut pass).await?;
            removed += batch.removed;
            if batch.seen < BATCH {
                return Ok(removed);
            }
        }
    }

    async fn prune_keys(&self) -> Result<usize, StoreError> {
        let mut tx = self.db().begin().await?;
        let gone = tx
            .execute(
                "DELETE FROM idempotency_keys WHERE (principal, route, key) IN (
                     SELECT principal, route, key FROM idempotency_keys
                     WHERE created_at < {now} - $1 ORDER BY created_at LIMIT $2)",
                params![millis(self.inner.retention.idempotency_keys), BATCH as i64],
            )
            .await?;
        tx.commit().await?;
        Ok(usize::try_from(gone).unwrap_or(usize::MAX))
    }

    /// What was called at an account that nobody owns: after this no window sees it.
    async fn prune_accounts(&self) -> Result<(), StoreError> {
        const LONGEST_WINDOW: Duration = Duration::from_secs(32 * 24 * 3600);
        let mut tx = self.db().begin().await?;
        tx.execute(
            "DELETE FROM account_pasts WHERE written_at < {now} - $1
                AND NOT EXISTS (SELECT 1 FROM accounts a WHERE a.key = account_pasts.key)",
            params![millis(LONGEST_WINDOW)],
        )
        .await?;
        tx.commit().await
    }

    async fn prune_runs(&self, pass: &mut Pass) -> Result<Batch, StoreError> {
        let mut tx = self.db().begin().await?;
        let rows = tx
            .all(
                "SELECT r.id, r.deployment, r.generation, r.ended_at,
                    CAST(CASE WHEN EXISTS (SELECT 1 FROM deployments d WHERE d.id = r.deployment)
                        AND NOT EXISTS (SELECT 1 FROM runs n WHERE n.deployment = r.deployment AND n.id > r.id
                            AND n.kind <> 'check') AND r.kind <> 'check'
                    THEN 1 ELSE 0 END AS BIGINT) AS stays
                 FROM runs r
                 WHERE r.ended_at < {now} - $1 AND (r.ended_at, r.id) > ($2, $3)
                 ORDER BY r.ended_at, r.id LIMIT $4",
                params![millis(self.inner.retention.runs), pass.ended_at, pass.id.as_str(), BATCH as i64],
            )
            .await?;
        let mut removed = 0;
        for row in &rows {
            *pass = Pass { ended_at: row.int("ended_at")?, id: row.text("id")? };
            if !row.flag("stays")? {
                remove_run(&mut tx, row.parsed("id")?, row.parsed("deployment")?, row.int("generation")?).await?;
                removed += 1;
            }
        }
        tx.commit().await?;
        Ok(Batch { seen: rows.len(), removed })
    }
}

struct Batch {
    seen: usize,
    removed: usize,
}

async fn remove_run(tx: &mut Tx, run: RunId, deployment: DeploymentId, generation: i64) -> Result<(), StoreError> {
    tx.execute("DELETE FROM events WHERE run = $1", params![run.to_string()]).await?;
    tx.execute("DELETE FROM runs WHERE id = $1", params![run.to_string()]).await?;
    let which = || params![deployment.to_string(), generation];
    let gone = tx
        .execute(
            "DELETE FROM generations WHERE deployment = $1 AND generation = $2
                AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.deployment = $1 AND r.generation = $2)
                AND NOT EXISTS (SELECT 1 FROM deployments d WHERE d.id = $1
                    AND (d.generation = $2 OR d.state_generation = $2 OR d.applied_generation = $2))",
            which(),
        )
        .await?;
    if gone == 1 {
        tx.execute("DELETE FROM generation_connections WHERE deployment = $1 AND generation = $2", which()).await?;
    }
    Ok(())
}

/// In the transaction that has written version `newest`.
pub(crate) async fn prune_states(
    tx: &mut Tx,
    deployment: DeploymentId,
    newest: i64,
    keep: u32,
) -> Result<(), StoreError> {
    let oldest = newest - i64::from(keep.max(1));
    // Nothing can be that old yet.
    if oldest > 0 {
        let sql = "DELETE FROM states WHERE deployment = $1 AND version <= $2";
        tx.execute(sql, params![deployment.to_string(), oldest]).await?;
    }
    Ok(())
}
