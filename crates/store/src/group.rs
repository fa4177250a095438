//! Group commit for SQLite.
//!
//! SQLite has one writer, and a commit costs a flush to disk. So transactions take turns inside of one that is theirs
//! together: whoever is first to end asks for another turn, behind those who wait by then, and that turn is the commit
//! for all of them. Alone, a transaction commits at once; the more wait, the more share a flush.
//!
//! Each is told of its success only after that commit. One that fails is taken back alone, to its savepoint, and
//! disturbs nobody; if the commit itself fails, all who were in it are told.
//!
//! Statements are carried out on the thread of whoever has the turn; a commit, which waits for the disk, on a thread of its
//! own. River writes through a connection of its own, and has a turn for as long as it uses that ([`Writer::lend`]).

use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};

use crate::db::Param;
use crate::error::StoreError;
use crate::sqlite::{Connection, Done, Wanted, is_busy};

/// Nobody but River has another connection that writes, and it has its turns. If somebody has one all the same (a program from
/// outside, or River after a turn that took too long), the writer asks again, less and less often.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// A turn that was lent ends by then at the latest.
const LENT: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub(crate) struct Writer {
    group: Arc<Mutex<Group>>,
    /// To the thread that commits. It ends with the last writer.
    commits: mpsc::Sender<Arc<Mutex<Group>>>,
    patience: Duration,
}

#[derive(Debug)]
struct Group {
    file: PathBuf,
    /// Opened when it is first needed.
    connection: Option<Connection>,
    closed: bool,
    /// A transaction has begun.
    open: bool,
    /// Those who have ended well and wait for the commit.
    waiting: Vec<oneshot::Sender<Result<(), String>>>,
}

/// Where a turn has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    /// Nobody in the group has ended before it: if it fails, the whole group is rolled back.
    First,
    /// Behind others.
    AtSavepoint,
}

impl Group {
    fn connection(&mut self) -> rusqlite::Result<&mut Connection> {
        match &mut self.connection {
            Some(connection) => Ok(connection),
            none => Ok(none.insert(Connection::to_write(&self.file)?)),
        }
    }

    fn begin(&mut self) -> rusqlite::Result<Begun> {
        if self.open {
            self.connection()?.tell("SAVEPOINT turn")?;
            return Ok(Begun::AtSavepoint);
        }
        self.connection()?.tell("BEGIN IMMEDIATE")?;
        self.open = true;
        Ok(Begun::First)
    }

    /// In the transaction, never outside of it: on a full disk SQLite rolls back by itself, and what comes after that would be
    /// a transaction of its own.
    fn run(&mut self, sql: &'static str, params: &[Param], wanted: Wanted) -> Result<Done, StoreError> {
        Ok(self.inside()?.run(sql, params, wanted)?)
    }

    fn inside(&mut self) -> Result<&mut Connection, StoreError> {
        match &mut self.connection {
            Some(connection) if !connection.is_out_of_transactions() => Ok(connection),
            _ => Err(StoreError::Unavailable("the transaction has been rolled back".into())),
        }
    }

    /// All who wait are told, also if it crashes.
    fn commit(&mut self) {
        if !self.open {
            return;
        }
        let committing = std::panic::AssertUnwindSafe(|| self.run("COMMIT", &[], Wanted::All));
        match std::panic::catch_unwind(committing) {
            Ok(Ok(_)) => self.ended(Ok(())),
            Ok(Err(error)) => self.roll_back(&error.to_string()),
            Err(_) => {
                self.connection = None;
                self.ended(Err("it crashed".to_owned()));
            }
        }
    }

    fn roll_back(&mut self, reason: &str) {
        if let Some(connection) = &mut self.connection
            && !connection.is_out_of_transactions()
            && connection.tell("ROLLBACK").is_err()
        {
            // Without its connection SQLite takes everything back.
            self.connection = None;
        }
        self.ended(Err(reason.to_owned()));
    }

    fn ended(&mut self, result: Result<(), String>) {
        self.open = false;
        for waiting in self.waiting.drain(..) {
            let _ = waiting.send(result.clone());
        }
    }
}

impl Writer {
    pub(crate) fn new(file: PathBuf, patience: Duration) -> Result<Writer, StoreError> {
        let (commits, asked) = mpsc::channel::<Arc<Mutex<Group>>>();
        std::thread::Builder::new()
            .name("commits".to_owned())
            .spawn(move || asked.into_iter().for_each(|group| group.blocking_lock().commit()))
            .map_err(|source| StoreError::Io { context: "a thread that commits".into(), source })?;
        let group = Group { file, connection: None, closed: false, open: false, waiting: Vec::new() };
        Ok(Writer { group: Arc::new(Mutex::new(group)), commits, patience })
    }

    pub(crate) async fn begin(&self) -> Result<Turn, StoreError> {
        let begun = tokio::time::timeout(self.patience, async {
            let mut group = self.group.clone().lock_owned().await;
            if group.closed {
                return Err(StoreError::Unavailable("the store is closed".into()));
            }
            let mut pause = FIRST_PAUSE;
            loop {
                match group.begin() {
                    Ok(begun) => return Ok(Turn { group: Some(group), begun, commits: self.commits.clone() }),
                    Err(error) if is_busy(&error) => tokio::time::sleep(pause).await,
                    Err(error) => return Err(error.into()),
                }
                pause = LONGEST_PAUSE.min(pause * 2);
            }
        });
        begun.await.map_err(|_| StoreError::Unavailable("the writer is busy for too long".into()))?
    }

    /// Lets another connection write until what is returned is dropped. It waits for its turn like everybody.
    pub(crate) async fn lend(&self) -> oneshot::Sender<()> {
        let group = committed(self.group.clone().lock_owned().await).await;
        let (borrowed, given_back) = oneshot::channel::<()>();
        tokio::spawn(async move {
            let _ = tokio::time::timeout(LENT, given_back).await;
            drop(group);
        });
        borrowed
    }

    /// Returns when nobody writes any more; who comes later is refused.
    pub(crate) async fn close(&self) {
        if let Some(mut group) = committed(self.group.clone().lock_owned().await).await {
            group.closed = true;
            group.connection = None;
        }
    }
}

/// Whoever has ended in the group is on disk now. None if the runtime ends meanwhile.
async fn committed(mut group: OwnedMutexGuard<Group>) -> Option<OwnedMutexGuard<Group>> {
    if !group.open {
        return Some(group);
    }
    let committing = tokio::task::spawn_blocking(move || {
        group.commit();
        group
    });
    committing.await.ok()
}

/// A transaction's turn. Dropped, what it did is taken back.
pub(crate) struct Turn {
    /// Held until it ends.
    group: Option<OwnedMutexGuard<Group>>,
    begun: Begun,
    commits: mpsc::Sender<Arc<Mutex<Group>>>,
}

impl Turn {
    pub(crate) fn run(&mut self, sql: &'static str, params: &[Param], wanted: Wanted) -> Result<Done, StoreError> {
        self.group.as_mut().expect("held until it ends").run(sql, params, wanted)
    }

    /// Returns when it is on disk.
    pub(crate) async fn commit(mut self) -> Result<(), StoreError> {
        let group = self.group.as_mut().expect("held until it ends");
        match self.begun {
            Begun::First => drop(group.inside()?),
            Begun::AtSavepoint => drop(group.run("RELEASE turn", &[], Wanted::All)?),
        }
        let (sender, committed) = oneshot::channel();
        group.waiting.push(sender);
        if group.waiting.len() == 1 {
            let all = OwnedMutexGuard::mutex(group).clone();
            self.group = None;
            // The thread is there as long as a writer is.
            let _ = self.commits.send(all);
        }
        self.group = None;
        match committed.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(StoreError::Unavailable(format!("a commit failed: {error}"))),
            Err(_) => Err(StoreError::Unavailable("a commit was not answered".into())),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(mut group) = self.group.take() else { return };
        if self.begun == Begun::First {
            return group.roll_back("rolled back");
        }
        // An error here means that SQLite has rolled back more than this turn, as it does when the disk is full.
        for sql in ["ROLLBACK TO turn", "RELEASE turn"] {
            if let Err(error) = group.run(sql, &[], Wanted::All) {
                return group.roll_back(&error.to_string());
            }
        }
    }
}

#[cfg(test)]
mod tests;
