//! SQLite's connections for reading.
//!
//! A pool that asks a connection whether it is well before and after each use makes three ways to the connection's thread
//! out of one, and the way costs more than most of what is asked there. A connection to a file does not break.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::StoreError;

#[derive(Clone, Debug)]
pub(crate) struct Readers {
    options: Box<SqliteConnectOptions>,
    most: u32,
    patience: Duration,
    places: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<SqliteConnection>>>,
}

impl Readers {
    pub(crate) fn new(options: SqliteConnectOptions, most: u32, patience: Duration) -> Readers {
        Readers {
            options: Box::new(options),
            most,
            patience,
            places: Arc::new(Semaphore::new(most as usize)),
            idle: Arc::default(),
        }
    }

    /// A connection for the caller alone. Each is opened when it is first needed.
    pub(crate) async fn take(&self) -> Result<Reader, StoreError> {
        let place = tokio::time::timeout(self.patience, self.places.clone().acquire_owned()).await;
        let place = place.map_err(|_| StoreError::Unavailable("all readers are busy for too long".into()))?;
        let place = place.map_err(|_| StoreError::Unavailable("the store is closed".into()))?;
        let idle = self.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.options.connect().await?,
        };
        Ok(Reader { connection: Some(connection), idle: self.idle.clone(), _place: place })
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<SqliteConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes all connections when nobody reads any more; who comes later is refused.
    pub(crate) async fn close(&self) {
        let all = self.places.acquire_many(self.most).await;
        self.places.close();
        drop(all);
        let idle = std::mem::take(&mut *self.idle());
        for connection in idle {
            let _ = connection.close().await;
        }
    }
}

/// Given back when dropped, also in the middle of a read: its thread then leaves the rest of the rows alone.
pub(crate) struct Reader {
    connection: Option<SqliteConnection>,
    idle: Arc<Mutex<Vec<SqliteConnection>>>,
    _place: OwnedSemaphorePermit,
}

impl Reader {
    pub(crate) fn connection(&mut self) -> &mut SqliteConnection {
        self.connection.as_mut().expect("held until it is given back")
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }
}
