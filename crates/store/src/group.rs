//! Group commit for SQLite.
//!
//! SQLite has one writer, and a commit costs a flush to disk. So transactions take turns inside of one that is theirs
//! together: whoever is first to end asks for another turn, behind those who wait by then, and that turn is the commit
//! for all of them. Alone, a transaction commits at once; the more wait, the more share a flush.
//!
//! Each is told of its success only after that commit. One that fails is taken back alone, to its savepoint, and
//! disturbs nobody; if the commit itself fails, all who were in it are told.
//!
//! Every way to SQLite's thread and back costs more than most statements do there. So a turn begins with its first
//! statement, in the same text ([`Turn::opening`]), and the connection is kept for a while from one group to the next.

use std::sync::Arc;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Sqlite, SqliteConnection, SqlitePool};
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};

use crate::error::StoreError;

/// How long the connection is kept at the most. To give it back and to get it anew is a way to SQLite's thread, too; and
/// River waits for it meanwhile.
const KEPT: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub(crate) struct Writer {
    /// One connection, shared with River, which waits for it like everybody.
    pool: SqlitePool,
    group: Arc<Mutex<Group>>,
    patience: Duration,
}

#[derive(Debug, Default)]
struct Group {
    connection: Option<PoolConnection<Sqlite>>,
    /// It has been kept for long enough: it goes back after the next commit.
    overdue: bool,
    /// A transaction has begun.
    open: bool,
    /// Those who have ended well and wait for the commit.
    waiting: Vec<oneshot::Sender<Result<(), String>>>,
    /// The last turn's savepoint is still there. The next turn releases it on the way to its own, or the commit does.
    savepoint: bool,
}

impl Group {
    /// Nothing of it will be in the database. Without its connection SQLite takes everything back, and the pool makes
    /// another one.
    fn abandon(&mut self, reason: &str) {
        if let Some(connection) = self.connection.take() {
            drop(connection.detach());
        }
        self.ended(Err(reason.to_owned()));
    }

    async fn roll_back(&mut self, reason: &str) {
        match self.run("ROLLBACK").await {
            // After an error of the disk SQLite has rolled back by itself.
            Err(error) if !error.to_string().contains("no transaction is active") => self.abandon(reason),
            Ok(()) | Err(_) => self.ended(Err(reason.to_owned())),
        }
    }

    async fn commit(&mut self) {
        if !self.open {
            return;
        }
        match self.run("COMMIT").await {
            Ok(()) => self.ended(Ok(())),
            Err(error) => self.roll_back(&error.to_string()).await,
        }
    }

    fn ended(&mut self, result: Result<(), String>) {
        (self.open, self.savepoint) = (false, false);
        if std::mem::take(&mut self.overdue) {
            self.connection = None;
        }
        for waiting in self.waiting.drain(..) {
            let _ = waiting.send(result.clone());
        }
    }

    async fn run(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        let connection = self.connection.as_mut().ok_or(sqlx::Error::WorkerCrashed)?;
        sqlx::query(sql).execute(&mut **connection).await?;
        Ok(())
    }

    fn give_back(&mut self) {
        match self.open {
            true => self.overdue = true,
            false => self.connection = None,
        }
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
        Ok(Turn { lock: Some(lock), writer: self.clone(), begun: Begun::NotYet })
    }

    /// Returns when nobody writes any more.
    pub(crate) async fn close(&self) {
        self.group.lock().await.give_back();
        self.pool.close().await;
    }
}

/// A transaction's turn. Dropped, what it did is taken back.
pub(crate) struct Turn {
    lock: Option<OwnedMutexGuard<Group>>,
    writer: Writer,
    begun: Begun,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    NotYet,
    /// Nobody in the group has ended before it: if it fails, the whole group is rolled back.
    First,
    /// Behind others.
    AtSavepoint,
}

impl Turn {
    /// What comes before its first statement, in the same text. Nothing, once it has begun.
    pub(crate) fn opening(&self) -> &'static [&'static str] {
        let group = self.lock.as_ref().expect("held until it ends");
        match (self.begun, group.open, group.savepoint) {
            (Begun::First | Begun::AtSavepoint, ..) => &[],
            (Begun::NotYet, false, _) => &["BEGIN IMMEDIATE"],
            (Begun::NotYet, true, false) => &["SAVEPOINT turn"],
            (Begun::NotYet, true, true) => &["RELEASE turn", "SAVEPOINT turn"],
        }
    }

    /// `done` statements of its opening have been carried out. Where that is not all of them, it has not begun; and where
    /// some are missing, nobody knows what the group is.
    pub(crate) fn opened(&mut self, done: usize) {
        let all = self.opening().len();
        let group = self.lock.as_mut().expect("held until it ends");
        if all == 0 {
            return;
        }
        if done < all {
            if group.open {
                group.abandon("a turn could not begin");
            }
            return;
        }
        match std::mem::replace(&mut group.open, true) {
            false => self.begun = Begun::First,
            true => (self.begun, group.savepoint) = (Begun::AtSavepoint, true),
        }
    }

    /// Where its statements go.
    pub(crate) async fn connection(&mut self) -> Result<&mut SqliteConnection, StoreError> {
        let group = self.lock.as_mut().expect("held until it ends");
        if group.connection.is_none() {
            group.connection = Some(self.writer.pool.acquire().await?);
            let waiting = Arc::downgrade(&self.writer.group);
            tokio::spawn(async move {
                tokio::time::sleep(KEPT).await;
                if let Some(group) = waiting.upgrade() {
                    group.lock().await.give_back();
                }
            });
        }
        Ok(group.connection.as_mut().expect("just taken"))
    }

    /// Returns when it is on disk.
    pub(crate) async fn commit(mut self) -> Result<(), StoreError> {
        if self.begun == Begun::NotYet {
            return Ok(());
        }
        let mut lock = self.lock.take().expect("held until it ends");
        let (sender, committed) = oneshot::channel();
        lock.waiting.push(sender);
        let first = lock.waiting.len() == 1;
        drop(lock);
        if first {
            let group = self.writer.group.clone();
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
        let begun = self.begun;
        if begun == Begun::NotYet {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return lock.abandon("the process ends") };
        runtime.spawn(async move {
            if begun == Begun::First {
                return lock.roll_back("rolled back").await;
            }
            lock.savepoint = false;
            // An error here means that SQLite has rolled back more than this turn, as it does when the disk is full.
            if let Err(error) = lock.run("ROLLBACK TO turn; RELEASE turn").await {
                lock.roll_back(&error.to_string()).await;
            }
        });
    }
}
