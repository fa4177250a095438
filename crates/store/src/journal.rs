//! The journal of an apply: intents before, settlements after. Every write is fenced and on disk when it returns.
//!
//! An intent is open, then settled, and goes when a whole state has what came of it. An update that recovery could not
//! clear up is `doubted`: it blocks nothing and belongs to no attempt, but every plan is told of it until one was carried
//! out.

use landform_domain::{EventBody, RunId};

use crate::claim::Lease;
use crate::db::{Tx, params};
use crate::error::StoreError;
use crate::keys::{Kind, Sealer};
use crate::open::Store;
use crate::transition::{Locked, append_events, fence};

/// An intent with what is known of its result, as the engine wrote them. They hold secrets.
#[derive(Clone)]
pub struct JournalEntry {
    pub id: i64,
    /// Of the attempt that wrote it.
    pub epoch: i64,
    pub intent: Vec<u8>,
    pub settlement: Option<Vec<u8>>,
}

/// So many events of one run are kept; what comes after is counted by the caller as dropped.
pub(crate) const MOST_EVENTS: i64 = 10_000;

impl Store {
    /// Writes all intents, or none.
    pub async fn intend(&self, lease: &Lease, intents: &[Vec<u8>]) -> Result<Vec<i64>, StoreError> {
        let sealer = self.sealer(lease).await?;
        let mut tx = self.db().begin().await?;
        let mut ids = Vec::with_capacity(intents.len());
        for intent in intents {
            // The gate of `fence`, in the statement that writes: a question of its own would be half of the cost. And no apply
            // begins while an older attempt's call may still have an effect that nobody has looked at. Such an intent was
            // written under the lock of the row before the epoch rose, so it is seen here.
            let row = tx
                .one(
                    "INSERT INTO intents (deployment, run, epoch, status, intent, created_at)
                     SELECT d.id, $3, d.epoch, 'open', $4, {now} FROM deployments d
                     WHERE d.id = $1 AND d.epoch = $2 AND NOT EXISTS (SELECT 1 FROM intents i
                        WHERE i.deployment = d.id AND i.status <> 'closed' AND i.status <> 'doubted' AND i.epoch < $2)
                     {lock} RETURNING id",
                    params![
                        lease.deployment.to_string(),
                        lease.epoch,
                        lease.run.to_string(),
                        sealer.seal(Kind::Intent, &lease.run.to_string(), intent)?,
                    ],
                )
                .await?;
            match row {
                Some(row) => ids.push(row.int("id")?),
                None => return Err(why_no_intent(&mut tx, lease).await?),
            }
        }
        tx.commit().await?;
        Ok(ids)
    }

    /// May be repeated when the answer to the first try was lost; the last one counts.
    pub async fn settle(&self, lease: &Lease, intent: i64, settlement: &[u8]) -> Result<(), StoreError> {
        let sealer = self.sealer(lease).await?;
        let mut tx = self.db().begin().await?;
        let settled = tx
            .execute(
                "UPDATE intents SET status = 'settled', settlement = $3
                 WHERE id = $1 AND deployment = $2 AND status <> 'closed'
                    AND EXISTS (SELECT 1 FROM deployments d WHERE d.id = $2 AND d.epoch = $4 {lock})",
                params![
                    intent,
                    lease.deployment.to_string(),
                    sealer.seal(Kind::Settlement, &intent.to_string(), settlement)?,
                    lease.epoch,
                ],
            )
            .await?;
        if settled != 1 {
            fence(&mut tx, lease).await?;
            return Err(StoreError::Corrupt(format!("intent {intent} is closed")));
        }
        tx.commit().await
    }

    /// Adds to the run's log. Returns how many did not fit.
    pub async fn report(&self, lease: &Lease, events: &[EventBody]) -> Result<usize, StoreError> {
        let mut tx = self.db().begin().await?;
        let locked = tx
            .one(
                "SELECT r.last_event FROM deployments d JOIN runs r ON r.deployment = d.id
                 WHERE d.id = $1 AND d.epoch = $2 AND r.id = $3 {lock_both}",
                params![lease.deployment.to_string(), lease.epoch, lease.run.to_string()],
            )
            .await?;
        let room = room_beside(locked.ok_or(StoreError::Fenced)?.int("last_event")?);
        let taken = &events[..events.len().min(room)];
        append_events(&mut tx, lease.run, taken).await?;
        tx.commit().await?;
        self.inner.bell.ring_for_log(lease.run);
        Ok(events.len() - taken.len())
    }

    pub(crate) async fn sealer(&self, lease: &Lease) -> Result<Sealer, StoreError> {
        let key = self.inner.keys.of(self.db(), &lease.tenant).await?;
        let key = key.ok_or_else(|| StoreError::Corrupt(format!("tenant {} has no key", lease.tenant)))?;
        Ok(key.sealer(lease.deployment))
    }
}

/// How many more events a run's log takes.
pub(crate) async fn room_for_events(tx: &mut Tx, run: RunId) -> Result<usize, StoreError> {
    let row = tx.exactly_one("SELECT last_event FROM runs WHERE id = $1", params![run.to_string()]).await?;
    Ok(room_beside(row.int("last_event")?))
}

fn room_beside(last_event: i64) -> usize {
    usize::try_from(MOST_EVENTS - last_event).unwrap_or(0)
}

/// Why [`Store::intend`] has written nothing.
async fn why_no_intent(tx: &mut Tx, lease: &Lease) -> Result<StoreError, StoreError> {
    fence(tx, lease).await?;
    let row = tx
        .one(
            "SELECT MIN(i.id) AS older FROM intents i
             WHERE i.deployment = $1 AND i.status <> 'closed' AND i.status <> 'doubted' AND i.epoch < $2",
            params![lease.deployment.to_string(), lease.epoch],
        )
        .await?;
    let older = row.map(|row| row.int_or_null("older")).transpose()?.flatten();
    Ok(StoreError::Corrupt(match older {
        Some(older) => format!("intent {older} of an older attempt is not closed"),
        None => "an intent was not written, and nothing stands in its way".to_owned(),
    }))
}

/// What an attempt that died has left, in the order of the calls.
pub(crate) async fn load_journal(
    tx: &mut Tx,
    sealer: &Sealer,
    locked: &Locked,
) -> Result<Vec<JournalEntry>, StoreError> {
    let rows = tx
        .all(
            "SELECT id, run, epoch, intent, settlement FROM intents
             WHERE deployment = $1 AND status <> 'closed' AND status <> 'doubted' ORDER BY id",
            params![locked.id.to_string()],
        )
        .await?;
    let mut entries = Vec::with_capacity(rows.len());
    for row in rows {
        let id = row.int("id")?;
        let settlement = row.blob_or_null("settlement")?;
        entries.push(JournalEntry {
            id,
            epoch: row.int("epoch")?,
            intent: sealer.open(Kind::Intent, &row.text("run")?, &row.blob("intent")?)?,
            settlement: settlement.map(|sealed| sealer.open(Kind::Settlement, &id.to_string(), &sealed)).transpose()?,
        });
    }
    Ok(entries)
}

/// The whole state has them now, so they go; what is doubted stays.
pub(crate) async fn close_journal(tx: &mut Tx, locked: &Locked, except: &[i64]) -> Result<(), StoreError> {
    if except.is_empty() {
        let sql = "DELETE FROM intents WHERE deployment = $1 AND status <> 'closed' AND status <> 'doubted'";
        tx.execute(sql, params![locked.id.to_string()]).await?;
        return Ok(());
    }
    let rows = tx
        .all(
            "SELECT id FROM intents WHERE deployment = $1 AND status <> 'closed' AND status <> 'doubted'",
            params![locked.id.to_string()],
        )
        .await?;
    for row in rows {
        let id = row.int("id")?;
        if !except.contains(&id) {
            tx.execute("DELETE FROM intents WHERE id = $1", params![id]).await?;
        }
    }
    Ok(())
}

pub(crate) async fn doubt(tx: &mut Tx, locked: &Locked, updates: &[i64]) -> Result<(), StoreError> {
    for id in updates {
        let sql = "UPDATE intents SET status = 'doubted' WHERE id = $1 AND deployment = $2";
        tx.execute(sql, params![*id, locked.id.to_string()]).await?;
    }
    Ok(())
}

/// A plan that was told of them is done.
pub(crate) async fn forget_doubted(tx: &mut Tx, locked: &Locked) -> Result<(), StoreError> {
    let sql = "DELETE FROM intents WHERE deployment = $1 AND status <> 'closed' AND status = 'doubted'";
    tx.execute(sql, params![locked.id.to_string()]).await?;
    Ok(())
}
