//! Vendors' accounts across processes. A vendor counts the calls of an account, whoever makes them, so one process keeps
//! the account's budget at a time: the account's owner. Runs that need an account go to its owner, and runs that a budget
//! cannot carry yet wait outside of the queue. Neither costs a run one of its attempts.

use std::time::{Duration, SystemTime};

use landform_domain::run::{Command, Status};
use landform_domain::{Code, EventBody, Problem};

use crate::claim::waiting::{FOR_OWNER, FOR_TIME};
use crate::claim::{Lease, WorkerId};
use crate::db::{Tx, params};
use crate::error::StoreError;
use crate::finish::millis;
use crate::open::Store;
use crate::transition::{Means, advance, fence_run};

/// Who owns an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// The worker that asked. It has to renew that.
    Owned,
    OwnedBy(WorkerId),
}

/// What an account's last owner has left for the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Legacy {
    /// As the owner wrote it.
    pub calls: String,
    pub written_ago: Duration,
    /// The owner has given the account up; otherwise it may have called after it wrote this.
    pub is_whole: bool,
}

/// An account's lease is longer than a run's by this factor: whoever cannot renew either has ended its providers long
/// before somebody else counts the account's calls.
const LONGER: u32 = 2;

/// An owner that takes and loses an account between two questions is met at most so often.
const MOST_QUESTIONS: u32 = 5;

const BATCH: i64 = 1000;
const NO_CALLS: &str = "{}";
const PASTS_AT_ONCE: usize = 100;

impl Store {
    /// Takes the account for a worker, if nobody else has it.
    pub async fn own_account(&self, worker: &WorkerId, key: &str) -> Result<Ownership, StoreError> {
        for _ in 0..MOST_QUESTIONS {
            let mut tx = self.db().begin().await?;
            let owned = tx
                .execute(
                    "INSERT INTO accounts (key, worker, lease_until) VALUES ($1, $2, {now} + $3)
                     ON CONFLICT (key) DO UPDATE SET lease_until = excluded.lease_until
                     WHERE accounts.worker = excluded.worker",
                    params![key, worker.as_str(), self.account_millis()],
                )
                .await?;
            if owned == 1 {
                tx.commit().await?;
                return Ok(Ownership::Owned);
            }
            let sql = "SELECT worker, CAST(CASE WHEN lease_until < {now} THEN 1 ELSE 0 END AS BIGINT) AS lapsed
                 FROM accounts WHERE key = $1";
            let owner = tx.one(sql, params![key]).await?;
            tx.commit().await?;
            match owner {
                Some(row) if row.flag("lapsed")? => self.free_lapsed_accounts().await?,
                Some(row) => return Ok(Ownership::OwnedBy(WorkerId::new(row.text("worker")?))),
                // Given up just now.
                None => {}
            }
        }
        Err(StoreError::Unavailable(format!("the account {key} changes hands all the time")))
    }

    /// What a new owner has to know of others' calls. Whatever the worker writes from now on is not whole before it gives
    /// the account up. None: nobody else has called, as far as anybody knows.
    pub async fn inherit_account(&self, worker: &WorkerId, key: &str) -> Result<Option<Legacy>, StoreError> {
        let mut tx = self.db().begin().await?;
        let sql =
            "SELECT owner, writer, calls, is_whole, {now} - written_at AS ago FROM account_pasts WHERE key = $1 {lock}";
        let found = tx.one(sql, params![key]).await?;
        tx.execute(
            "INSERT INTO account_pasts (key, owner, writer, calls, is_whole, written_at) VALUES ($1, $2, $2, $3, 0, {now})
             ON CONFLICT (key) DO UPDATE SET owner = excluded.owner, is_whole = 0",
            params![key, worker.as_str(), NO_CALLS],
        )
        .await?;
        tx.commit().await?;
        let Some(row) = found else { return Ok(None) };
        let is_own = |column: &'static str| Ok::<bool, StoreError>(row.text(column)? == worker.as_str());
        // Its own calls a worker knows better.
        if is_own("owner")? {
            return Ok(None);
        }
        let calls = if is_own("writer")? { NO_CALLS.to_owned() } else { row.text("calls")? };
        let written_ago = Duration::from_millis(u64::try_from(row.int("ago")?).unwrap_or_default());
        Ok(Some(Legacy { calls, written_ago, is_whole: row.flag("is_whole")? }))
    }

    /// Writes down what a worker has called, for the next owners of its accounts. With the last word, the accounts are
    /// given up.
    pub async fn leave_accounts(
        &self,
        worker: &WorkerId,
        pasts: &[(String, String)],
        last_word: bool,
    ) -> Result<(), StoreError> {
        for some in pasts.chunks(PASTS_AT_ONCE) {
            let mut tx = self.db().begin().await?;
            for (key, calls) in some {
                tx.execute(
                    "UPDATE account_pasts SET writer = $2, calls = $3, is_whole = $4, written_at = {now} WHERE key = $1
                        AND EXISTS (SELECT 1 FROM accounts a WHERE a.key = $1 AND a.worker = $2)",
                    params![key.as_str(), worker.as_str(), calls.as_str(), i64::from(last_word)],
                )
                .await?;
            }
            tx.commit().await?;
        }
        if !last_word {
            return Ok(());
        }
        let keys: Vec<&str> = pasts.iter().map(|(key, _)| key.as_str()).collect();
        let mut tx = self.db().begin().await?;
        tx.execute(
            "DELETE FROM accounts WHERE worker = $1 AND key IN (SELECT e.value FROM {strings $2})",
            params![worker.as_str(), serde_json::to_string(&keys)?],
        )
        .await?;
        tx.commit().await?;
        // What was bound to this worker for one of them is anybody's; what was for others comes back to it.
        self.free_bound(worker).await?;
        self.inner.bell.ring();
        Ok(())
    }

    /// Keeps all accounts of a worker, and says which they are. One that is missing belongs to somebody else by now.
    pub async fn renew_accounts(&self, worker: &WorkerId) -> Result<Vec<String>, StoreError> {
        let mut tx = self.db().begin().await?;
        let sql = "UPDATE accounts SET lease_until = {now} + $2 WHERE worker = $1 RETURNING key";
        let rows = tx.all(sql, params![worker.as_str(), self.account_millis()]).await?;
        tx.commit().await?;
        let mut keys = rows.iter().map(|row| row.text("key")).collect::<Result<Vec<_>, _>>()?;
        keys.sort();
        Ok(keys)
    }

    /// Gives all accounts of a worker up. Whatever waited for it is anybody's again.
    pub async fn free_accounts(&self, worker: &WorkerId) -> Result<(), StoreError> {
        self.free(worker, "DELETE FROM accounts WHERE worker = $1").await
    }

    /// `accounts` deletes those that are over. Others that the worker has stay, and what is bound to it comes back to it.
    async fn free(&self, worker: &WorkerId, accounts: &'static str) -> Result<(), StoreError> {
        // Most of them in short transactions; the last one has what came in between.
        self.free_bound(worker).await?;
        let mut tx = self.db().begin().await?;
        // Whoever binds a run to this worker holds one of these rows: after this there is nobody.
        tx.execute(accounts, params![worker.as_str()]).await?;
        tx.execute("UPDATE runs SET claimable = 1 WHERE claimable = 4 AND bound_worker = $1", params![worker.as_str()])
            .await?;
        tx.commit().await?;
        self.inner.bell.ring();
        Ok(())
    }

    /// What is bound to a worker is anybody's, in short transactions.
    async fn free_bound(&self, worker: &WorkerId) -> Result<(), StoreError> {
        loop {
            let mut tx = self.db().begin().await?;
            let freed = tx
                .execute(
                    "UPDATE runs SET claimable = 1 WHERE claimable = 4 AND id IN (
                         SELECT id FROM runs WHERE claimable = 4 AND bound_worker = $1
                         ORDER BY order_key, id LIMIT $2 {skip_locked})",
                    params![worker.as_str(), BATCH],
                )
                .await?;
            tx.commit().await?;
            if freed == 0 {
                return Ok(());
            }
        }
    }

    /// Gives a run back that nothing was done for: it waits for this worker alone. If that one owns no account any more,
    /// anybody may take the run.
    pub async fn bind_to(&self, lease: &Lease, owner: &WorkerId) -> Result<(), StoreError> {
        let mut tx = self.db().begin().await?;
        put_back(&mut tx, lease, None).await?;
        let sql = "SELECT key FROM accounts WHERE worker = $1 ORDER BY key LIMIT 1 {lock}";
        if tx.one(sql, params![owner.as_str()]).await?.is_some() {
            tx.execute(
                "UPDATE runs SET claimable = $2, bound_worker = $3 WHERE id = $1 AND claimable = 1",
                params![lease.run.to_string(), FOR_OWNER, owner.as_str()],
            )
            .await?;
        }
        tx.commit().await?;
        self.inner.bell.ring();
        Ok(())
    }

    /// Gives a run back that nothing was done for: nobody takes it before `when`. People see the reason.
    pub async fn give_back_until(&self, lease: &Lease, when: SystemTime, reason: &str) -> Result<(), StoreError> {
        // Only the distance counts: the moment is the database's.
        let wait = when.duration_since(SystemTime::now()).unwrap_or(Duration::ZERO);
        let mut tx = self.db().begin().await?;
        put_back(&mut tx, lease, Some(reason)).await?;
        tx.execute(
            "UPDATE runs SET claimable = $2, not_before = {now} + $3, blocked_by = $4 WHERE id = $1 AND claimable = 1",
            params![lease.run.to_string(), FOR_TIME, millis(wait), reason],
        )
        .await?;
        tx.commit().await?;
        self.inner.bell.ring();
        Ok(())
    }

    /// Whose time has come is due.
    pub(crate) async fn put_back_in_time(&self) -> Result<(), StoreError> {
        let mut tx = self.db().begin().await?;
        tx.execute(
            "UPDATE runs SET claimable = 1 WHERE claimable = 5 AND id IN (
                 SELECT id FROM runs WHERE claimable = 5 AND not_before <= {now} ORDER BY not_before LIMIT $1 {skip_locked})",
            params![BATCH],
        )
        .await?;
        tx.commit().await
    }

    /// Ends the ownership of workers that went silent.
    pub(crate) async fn free_lapsed_accounts(&self) -> Result<(), StoreError> {
        let sql = "SELECT DISTINCT worker FROM accounts WHERE lease_until < {now}";
        for row in self.db().read_all(sql, params![]).await? {
            let worker = row.text("worker")?;
            tracing::warn!(worker, "a worker went silent; its accounts are free");
            let lapsed = "DELETE FROM accounts WHERE worker = $1 AND lease_until < {now}";
            self.free(&WorkerId::new(worker), lapsed).await?;
        }
        Ok(())
    }

    /// For so long an account is its owner's, from its last word on.
    pub fn account_lease(&self) -> Duration {
        self.inner.lease * LONGER
    }

    fn account_millis(&self) -> i64 {
        millis(self.account_lease())
    }
}

/// The run is queued as if nobody had claimed it.
async fn put_back(tx: &mut Tx, lease: &Lease, reason: Option<&str>) -> Result<(), StoreError> {
    let (locked, run) = fence_run(tx, lease).await?;
    if matches!(run.status, Status::Applying(_)) {
        let sql = "SELECT id FROM intents WHERE deployment = $1 AND run = $2 AND epoch = $3 LIMIT 1";
        let begun = params![lease.deployment.to_string(), lease.run.to_string(), lease.epoch];
        if tx.one(sql, begun).await?.is_some() {
            let message = format!("run {} has begun to change things: it cannot be put back", lease.run);
            return Err(Problem::new(Code::RunApplying, message).into());
        }
    }
    let events = reason.map(|reason| EventBody::Note { text: format!("blocked: {reason}") }).into_iter().collect();
    advance(tx, locked.id, &run, Command::PutBack, Means { events, ..Means::default() }).await?;
    tx.execute(
        "UPDATE runs SET attempts = attempts - 1,
            started_at = CASE WHEN attempts = 1 THEN NULL ELSE started_at END
         WHERE id = $1 AND claimable = 1",
        params![lease.run.to_string()],
    )
    .await?;
    Ok(())
}
