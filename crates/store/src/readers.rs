//! SQLite's connections for reading.
//!
//! The rule for what is read where: a read begins on the thread of whoever asks. Most are short, and are done there. One that
//! is not (see `sqlite`) is stopped after some milliseconds and begun again on a thread that may take its time, so
//! that nobody has to know beforehand which reads are long, and none holds up the others of a runtime's thread.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::db::Param;
use crate::error::StoreError;
use crate::sqlite::{Connection, SqliteRow, Wanted, is_busy};

/// Readers do not wait for a writer. SQLite may still say busy while somebody from outside opens or closes the database.
const ASKED_AGAIN_AFTER: Duration = Duration::from_millis(5);

#[derive(Clone, Debug)]
pub(crate) struct Readers {
    file: Arc<Path>,
    most: u32,
    patience: Duration,
    places: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    pub(crate) fn new(file: Arc<Path>, most: u32, patience: Duration) -> Readers {
        Readers { file, most, patience, places: Arc::new(Semaphore::new(most as usize)), idle: Arc::default() }
    }

    pub(crate) async fn read(
        &self,
        sql: &'static str,
        params: Vec<Param>,
        wanted: Wanted,
    ) -> Result<Vec<SqliteRow>, StoreError> {
        let mut reader = self.take().await?;
        let asked_until = Instant::now() + self.patience;
        loop {
            match reader.connection().and_then(|connection| connection.run_if_short(sql, &params, wanted)) {
                Ok(Some(done)) => return Ok(done.rows),
                Ok(None) => break,
                Err(error) if is_busy(&error) && Instant::now() < asked_until => {
                    tokio::time::sleep(ASKED_AGAIN_AFTER).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
        let long = tokio::task::spawn_blocking(move || reader.connection()?.run(sql, &params, wanted)).await;
        Ok(long.map_err(|_| StoreError::Unavailable("the process ends".into()))??.rows)
    }

    /// A connection for the caller alone.
    async fn take(&self) -> Result<Reader, StoreError> {
        let place = tokio::time::timeout(self.patience, self.places.clone().acquire_owned()).await;
        let place = place.map_err(|_| StoreError::Unavailable("all readers are busy for too long".into()))?;
        let place = place.map_err(|_| StoreError::Unavailable("the store is closed".into()))?;
        let connection = self.idle().pop();
        Ok(Reader { connection, readers: self.clone(), _place: place })
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes all connections when nobody reads any more; who comes later is refused.
    pub(crate) async fn close(&self) {
        let all = self.places.acquire_many(self.most).await;
        self.places.close();
        drop(all);
        self.idle().clear();
    }
}

/// Given back when dropped.
struct Reader {
    connection: Option<Connection>,
    readers: Readers,
    _place: OwnedSemaphorePermit,
}

impl Reader {
    /// Opened when it is first needed.
    fn connection(&mut self) -> rusqlite::Result<&mut Connection> {
        match &mut self.connection {
            Some(connection) => Ok(connection),
            none => Ok(none.insert(Connection::to_read(&self.readers.file)?)),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.readers.idle().push(connection);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::db::{Db, params};

    /// On one thread, which is free for others while a long read is under way.
    #[tokio::test]
    async fn a_long_read_holds_up_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open_sqlite(&folder.path().join("some.db")).await.unwrap();
        let sql = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000000)
            SELECT COUNT(*) AS count FROM n";
        let mut long = std::pin::pin!(db.read_one(sql, params![]));
        let mut others = 0;
        let row = loop {
            tokio::select! {
                biased;
                row = &mut long => break row.unwrap().unwrap(),
                () = tokio::task::yield_now() => others += 1,
            }
        };
        assert_eq!(row.int("count").unwrap(), 3_000_000);
        assert!(others > 10, "others had {others} turns");
        db.close().await;
        assert!(db.read_one("SELECT 1 AS one", params![]).await.is_err());
    }
}
