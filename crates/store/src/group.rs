//! Group commit for SQLite.
//!
//! SQLite has one writer, and a commit costs a flush to disk. So transactions take turns inside of one that is theirs
//! together: whoever is first to end asks for another turn, behind those who wait by then, and that turn is the commit
//! for all of them. Alone, a transaction commits at once; the more wait, the more share a flush.
//!
//! Each is told of its success only after that commit. One that fails is taken back alone, to its savepoint, and
//! disturbs nobody; if the commit itself fails, all who were in it are told.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{Sqlite, SqliteConnection, SqlitePool, Transaction};
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};

use crate::error::StoreError;

#[derive(Clone, Debug)]
pub(crate) struct Writer {
    /// One connection, shared with River, which waits for it like everybody.
    pool: SqlitePool,
    group: Arc<Mutex<Group>>,
    patience: Duration,
}

#[derive(Debug, Default)]
struct Group {
    tx: Option<Transaction<'static, Sqlite>>,
    /// Those who have ended well and wait for the commit.
    waiting: Vec<oneshot::Sender<Result<(), String>>>,
    /// The last turn's savepoint is still there. The next turn releases it on the way to its own, or the commit does: a way
    /// to SQLite's thread for that alone would cost more than it.
    savepoint: bool,
}

impl Group {
    /// Nothing of it will be in the database.
    fn fail(&mut self, reason: &str) {
        // Dropped, a transaction rolls back before its connection is used again.
        self.tx = None;
        self.savepoint = false;
        for waiting in self.waiting.drain(..) {
            let _ = waiting.send(Err(reason.to_owned()));
        }
    }

    async fn commit(&mut self) {
        let Some(tx) = self.tx.take() else { return };
        self.savepoint = false;
        let result = tx.commit().await.map_err(|error| error.to_string());
        for waiting in self.waiting.drain(..) {
            let _ = waiting.send(result.clone());
        }
    }

    async fn run(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        let tx = self.tx.as_mut().ok_or(sqlx::Error::WorkerCrashed)?;
        sqlx::query(sql).execute(&mut **tx).await?;
        Ok(())
    }
}

impl Writer {
    pub(crate) fn new(pool: SqlitePool, patience: Duration) -> Writer {
        Writer { pool, group: Arc::default(), patience }
    }

    pub(crate) fn pool(&self) -> &SqlitePool {
        &self.pool
    }

    pub(crate) async fn begin(&self) -> Result<Turn, StoreError> {
        let lock = tokio::time::timeout(self.patience, self.group.clone().lock_owned()).await;
        let lock = lock.map_err(|_| StoreError::Unavailable("the writer is busy for too long".into()))?;
        let turn = Turn { lock: Some(lock), group: self.group.clone(), savepoint: false };
        // On a task of its own, as everything here that may not stop half-way: a caller can go away at any moment.
        finish(tokio::spawn(turn.open(self.pool.clone()))).await
    }
}

async fn finish<T>(task: tokio::task::JoinHandle<Result<T, StoreError>>) -> Result<T, StoreError> {
    task.await.map_err(|error| StoreError::Unavailable(error.to_string()))?
}

/// A transaction's turn. Dropped, what it did is taken back.
pub(crate) struct Turn {
    lock: Option<OwnedMutexGuard<Group>>,
    group: Arc<Mutex<Group>>,
    /// Set when others in the group have ended before this one began. Who is first needs none: if it fails, the whole
    /// group is rolled back.
    savepoint: bool,
}

impl Turn {
    async fn open(mut self, pool: SqlitePool) -> Result<Turn, StoreError> {
        let group = self.lock.as_mut().expect("held until it ends");
        if group.tx.is_none() {
            group.tx = Some(pool.begin_with("BEGIN IMMEDIATE").await?);
        } else {
            let before = std::mem::replace(&mut group.savepoint, true);
            group.run(if before { "RELEASE turn; SAVEPOINT turn" } else { "SAVEPOINT turn" }).await?;
            self.savepoint = true;
        }
        Ok(self)
    }

    pub(crate) fn transaction(&mut self) -> &mut Transaction<'static, Sqlite> {
        let group = self.lock.as_mut().expect("held until it ends");
        group.tx.as_mut().expect("open for as long as the turn")
    }

    pub(crate) fn connection(&mut self) -> &mut SqliteConnection {
        &mut *self.transaction()
    }

    /// Returns when it is on disk.
    pub(crate) async fn commit(mut self) -> Result<(), StoreError> {
        let mut lock = self.lock.take().expect("held until it ends");
        let (sender, committed) = oneshot::channel();
        lock.waiting.push(sender);
        let first = lock.waiting.len() == 1;
        drop(lock);
        if first {
            let group = self.group.clone();
            tokio::spawn(async move { group.lock().await.commit().await });
        }
        match committed.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(StoreError::Unavailable(format!("a commit failed: {error}"))),
            Err(_) => Err(StoreError::Unavailable("a commit was not answered".into())),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(mut lock) = self.lock.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return lock.fail("the process ends") };
        let savepoint = self.savepoint;
        runtime.spawn(async move {
            if !savepoint {
                return lock.fail("rolled back");
            }
            lock.savepoint = false;
            // An error here means that SQLite has rolled back more than this turn, as it does when the disk is full.
            if let Err(error) = lock.run("ROLLBACK TO turn; RELEASE turn").await {
                lock.fail(&error.to_string());
            }
        });
    }
}
