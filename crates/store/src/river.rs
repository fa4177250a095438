//! River's connection to SQLite. It is sqlx's, with a thread of its own, and the tables are brought up to date through it.
//!
//! Whoever uses it has a turn of the writer's meanwhile, so that neither finds the database busy. Waiting for SQLite's own
//! lock would not do: SQLite looks for it ten times a second, and a busy writer leaves no gap that would be found.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection, SqliteConnection, SqlitePool};
use tokio::sync::oneshot;

use crate::error::StoreError;
use crate::group::Writer;
use crate::sqlite::PAGES_OF_LOG;

/// The turn that River has; dropped, it is over.
type Turn = Arc<Mutex<Option<oneshot::Sender<()>>>>;

/// Makes the database if there is none.
pub(crate) async fn connect(file: &Path, writer: &Writer, patience: Duration) -> Result<SqlitePool, StoreError> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .pragma("wal_autocheckpoint", PAGES_OF_LOG.to_string())
        .busy_timeout(patience);
    let writer = writer.clone();
    let begun = Turn::default();
    let ended = begun.clone();
    let pool = SqlitePoolOptions::new()
        .max_connections(1)
        .acquire_timeout(patience)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        // Not called for a connection that was just made: SQLite's own lock must do until that comes back.
        .before_acquire(move |_, _| {
            let (writer, turn) = (writer.clone(), begun.clone());
            Box::pin(async move {
                let lent = writer.lend().await;
                *turn.lock().unwrap_or_else(PoisonError::into_inner) = Some(lent);
                Ok(true)
            })
        })
        .after_release(move |connection, _| {
            let turn = ended.clone();
            Box::pin(async move {
                let is_usable = is_out_of_transactions(connection).await;
                drop(turn.lock().unwrap_or_else(PoisonError::into_inner).take());
                is_usable
            })
        });
    Ok(pool.connect_with(options).await?)
}

/// Whether the connection can be used again. On a full disk SQLite rolls back by itself; the driver's own rollback then fails,
/// and it takes the connection to be inside of a transaction for ever, so that River could begin none.
async fn is_out_of_transactions(connection: &mut SqliteConnection) -> sqlx::Result<bool> {
    if connection.is_in_transaction() {
        // Behind a rollback that is still on its way.
        connection.ping().await?;
    }
    Ok(!connection.is_in_transaction())
}

#[cfg(test)]
mod tests {
    use crate::db::{Db, params};

    async fn open() -> (tempfile::TempDir, Db) {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open_sqlite(&folder.path().join("some.db")).await.unwrap();
        (folder, db)
    }

    /// SQLite rolls back by itself when the disk is full, and the driver does not know: River must be able to begin again.
    #[tokio::test]
    async fn a_connection_that_has_lost_its_transaction_is_replaced() {
        let (_folder, db) = open().await;
        let Db::Sqlite { river, .. } = &db else { unreachable!() };
        let mut lost = river.begin().await.unwrap();
        sqlx::query("ROLLBACK").execute(&mut *lost).await.unwrap();
        lost.commit().await.unwrap_err();
        river.begin().await.unwrap().commit().await.unwrap();
    }

    /// What a connection promises is the same, whoever has it.
    #[tokio::test]
    async fn all_connections_are_set_up_alike() {
        let (_folder, db) = open().await;
        let Db::Sqlite { river, .. } = &db else { unreachable!() };
        for (sql, wanted) in [
            ("SELECT synchronous AS found FROM pragma_synchronous", 2),
            ("SELECT foreign_keys AS found FROM pragma_foreign_keys", 1),
            ("SELECT journal_mode = 'wal' AS found FROM pragma_journal_mode", 1),
        ] {
            assert_eq!(sqlx::query_scalar::<_, i64>(sql).fetch_one(river).await.unwrap(), wanted, "River: {sql}");
            let mut tx = db.begin().await.unwrap();
            assert_eq!(tx.exactly_one(sql, params![]).await.unwrap().int("found").unwrap(), wanted, "writer: {sql}");
            drop(tx);
            let row = db.read_one(sql, params![]).await.unwrap().unwrap();
            assert_eq!(row.int("found").unwrap(), wanted, "reader: {sql}");
        }
        let mut tx = db.begin().await.unwrap();
        let row = tx.exactly_one("SELECT cache_size FROM pragma_cache_size", params![]).await.unwrap();
        assert_eq!(row.int("cache_size").unwrap(), -65536);
    }
}
