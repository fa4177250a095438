//! Results of provider calls that could not be written while the store was away. A worker keeps them on its disk, sealed as
//! they will stand in the journal, and brings them once the store is back.

use landform_domain::run::{Command, Phase, Status};
use landform_domain::{DeploymentId, RunId};
use serde::{Deserialize, Serialize};

use crate::claim::Lease;
use crate::db::params;
use crate::error::StoreError;
use crate::keys::Kind;
use crate::open::Store;
use crate::transition::{Means, advance, load_run, lock_by_id};

/// What became of one intent, sealed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SpooledSettlement {
    pub deployment: DeploymentId,
    pub run: RunId,
    pub epoch: i64,
    pub intent: i64,
    pub sealed: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brought {
    /// The journal has it now.
    Taken,
    /// The intent was settled, or answered for, in another way.
    TooLate,
    /// Somebody is just finding out what the journal says; it has to be brought again.
    NotYet,
}

impl Store {
    /// Needs no database where the lease's intents were written: the key is known then.
    pub async fn seal_settlement(
        &self,
        lease: &Lease,
        intent: i64,
        settlement: &[u8],
    ) -> Result<SpooledSettlement, StoreError> {
        let sealer = match self.inner.keys.remembered(&lease.tenant) {
            Some(key) => key.sealer(lease.deployment),
            None => self.sealer(lease).await?,
        };
        let sealed = sealer.seal(Kind::Settlement, &intent.to_string(), settlement)?;
        Ok(SpooledSettlement { deployment: lease.deployment, run: lease.run, epoch: lease.epoch, intent, sealed })
    }

    /// Takes what a worker had to keep, also when its lease is gone. That is no way around the fence: as long as the very
    /// intent is open, nobody has begun anything about its object since, so what was learnt of it still holds.
    pub async fn settle_spooled(&self, spooled: &SpooledSettlement) -> Result<Brought, StoreError> {
        let mut tx = self.db().begin().await?;
        if lock_by_id(&mut tx, spooled.deployment).await?.is_none() {
            return Ok(Brought::TooLate);
        }
        let Some(run) = load_run(&mut tx, spooled.run).await? else { return Ok(Brought::TooLate) };
        if run.status == Status::Applying(Phase::Recovering) {
            return Ok(Brought::NotYet);
        }
        let settled = tx
            .execute(
                "UPDATE intents SET status = 'settled', settlement = $5
                 WHERE id = $1 AND deployment = $2 AND run = $3 AND epoch = $4 AND status = 'open'",
                params![
                    spooled.intent,
                    spooled.deployment.to_string(),
                    spooled.run.to_string(),
                    spooled.epoch,
                    spooled.sealed.as_slice(),
                ],
            )
            .await?;
        if settled != 1 {
            return Ok(Brought::TooLate);
        }
        if matches!(run.status, Status::NeedsRecovery { .. }) {
            advance(&mut tx, spooled.deployment, &run, Command::Learnt, Means::default()).await?;
        }
        tx.commit().await?;
        self.inner.bell.ring();
        Ok(Brought::Taken)
    }
}
