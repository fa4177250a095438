//! One small layer over both databases, so that every query is written once.
//!
//! SQL uses `$1` placeholders and words in braces that differ by dialect: `{now}` (milliseconds by the database's
//! clock), `{lock}` (lock the rows read), `{lock_both}` (those of `d` and `r`), `{lock_or_skip}` (the same, passing over
//! locked ones), `{skip_locked}` (`{lock}`, passing over locked ones), `{json}` (behind a text: the JSON in it), and `{strings $1}` (the rows `e.at`, counted from 0, and `e.value` of a JSON array of strings).
//! SQLite needs no row locks: it has one writer, and transactions take turns (see `group`).

use std::path::Path;
use std::time::Duration;

use futures::TryStreamExt;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Connection, Either, Executor, PgConnection, PgPool, Postgres, SqlitePool, Transaction};
use tokio::time::Instant;

use crate::error::StoreError;
use crate::group::{Turn, Writer};
use crate::readers::Readers;
use crate::river;
pub(crate) use crate::row::Row;
use crate::sql::{Dialect, render};
use crate::sqlite::Wanted;

type Result<T> = std::result::Result<T, StoreError>;

#[derive(Clone, Debug)]
pub(crate) enum Db {
    Sqlite { writer: Writer, readers: Readers, river: SqlitePool },
    Postgres(PgPool),
}

const READERS: u32 = 4;
const POSTGRES_CONNECTIONS: u32 = 16;
/// A caller who waits longer than this for a connection is told so.
const PATIENCE: Duration = Duration::from_secs(30);
/// The same for PostgreSQL. It may be away altogether: whoever asks over REST learns that before a client gives up, and a run
/// asks again.
const POSTGRES_PATIENCE: Duration = Duration::from_secs(10);
/// How often it is asked for at the start while it is away.
const POSTGRES_AGAIN: Duration = Duration::from_millis(500);
/// A connection to PostgreSQL that was in use a moment ago is taken without asking whether it is still there.
const ASKED_AFTER: Duration = Duration::from_secs(1);

impl Db {
    pub(crate) async fn open_sqlite(file: &Path) -> Result<Db> {
        let writer = Writer::new(file.to_owned(), PATIENCE)?;
        let river = river::connect(file, &writer, PATIENCE).await?;
        sqlx::migrate!("migrations/sqlite").run(&river).await.map_err(StoreError::migration)?;
        Ok(Db::Sqlite { writer, readers: Readers::new(file.into(), READERS, PATIENCE), river })
    }

    pub(crate) async fn open_postgres(url: &str) -> Result<Db> {
        await_postgres(url).await?;
        let pool = PgPoolOptions::new()
            .max_connections(POSTGRES_CONNECTIONS)
            .acquire_timeout(POSTGRES_PATIENCE)
            .test_before_acquire(false)
            .before_acquire(|connection, use_of| {
                Box::pin(async move {
                    if use_of.idle_for >= ASKED_AFTER {
                        connection.ping().await?;
                    }
                    Ok(true)
                })
            })
            .connect(url)
            .await
            .map_err(no_postgres)?;
        sqlx::migrate!("migrations/postgres").run(&pool).await.map_err(StoreError::migration)?;
        Ok(Db::Postgres(pool))
    }

    /// A transaction that writes.
    pub(crate) async fn begin(&self) -> Result<Tx> {
        Ok(match self {
            Db::Sqlite { writer, .. } => Tx::Sqlite(writer.begin().await?),
            // Begun on a task of its own: a caller who goes away half-way leaves no connection inside of a transaction.
            Db::Postgres(pool) => Tx::Postgres(riverqueue::database::begin_postgres(pool).await?),
        })
    }

    /// Reads outside of any transaction; on SQLite they never wait for the writer.
    pub(crate) async fn read_all(&self, sql: &'static str, params: Vec<Param>) -> Result<Vec<Row>> {
        self.read(sql, params, Wanted::All).await
    }

    pub(crate) async fn read_one(&self, sql: &'static str, params: Vec<Param>) -> Result<Option<Row>> {
        Ok(self.read(sql, params, Wanted::First).await?.into_iter().next())
    }

    async fn read(&self, sql: &'static str, params: Vec<Param>, wanted: Wanted) -> Result<Vec<Row>> {
        Ok(match self {
            Db::Sqlite { readers, .. } => {
                readers.read(sql, params, wanted).await?.into_iter().map(Row::Sqlite).collect()
            }
            Db::Postgres(pool) => {
                bind_postgres(sql, params).fetch_all(pool).await?.into_iter().map(Row::Postgres).collect()
            }
        })
    }

    pub(crate) async fn close(&self) {
        match self {
            Db::Sqlite { writer, readers, river } => {
                readers.close().await;
                writer.close().await;
                river.close().await;
            }
            Db::Postgres(pool) => pool.close().await,
        }
    }
}

/// A pool asks again and again, says nothing, and then only that it has. So a connection is made before: what stays wrong is
/// said at once, and a database that is not there yet is waited for, aloud.
async fn await_postgres(url: &str) -> Result<()> {
    let deadline = Instant::now() + POSTGRES_PATIENCE;
    let mut told = false;
    loop {
        let connecting = tokio::time::timeout_at(deadline, PgConnection::connect(url)).await;
        let error = match connecting {
            Ok(Ok(connection)) => return connection.close().await.map_err(no_postgres),
            Ok(Err(error)) => error,
            Err(_) => return Err(StoreError::Unavailable("cannot reach PostgreSQL: it does not answer".into())),
        };
        if !may_come_yet(&error) || Instant::now() + POSTGRES_AGAIN >= deadline {
            return Err(no_postgres(error));
        }
        if !told {
            let seconds = POSTGRES_PATIENCE.as_secs();
            tracing::warn!(%error, "PostgreSQL cannot be reached; it is waited for, {seconds} seconds at most");
            told = true;
        }
        tokio::time::sleep(POSTGRES_AGAIN).await;
    }
}

/// Nobody listens there, or it only starts, or has no place just now.
fn may_come_yet(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) => true,
        sqlx::Error::Database(error) => matches!(error.code().as_deref(), Some("57P03" | "53300")),
        _ => false,
    }
}

fn no_postgres(error: sqlx::Error) -> StoreError {
    StoreError::Unavailable(format!("cannot reach PostgreSQL: {error}"))
}

/// Rolled back unless committed. Whoever answers from what it has read here commits too, though it has written nothing:
/// on SQLite what it saw may be another's, which is on disk only then.
pub(crate) enum Tx {
    Sqlite(Turn),
    Postgres(Transaction<'static, Postgres>),
}

impl Tx {
    /// The number of rows that were written.
    pub(crate) async fn execute(&mut self, sql: &'static str, params: Vec<Param>) -> Result<u64> {
        Ok(self.run(sql, params, Wanted::All).await?.written)
    }

    pub(crate) async fn all(&mut self, sql: &'static str, params: Vec<Param>) -> Result<Vec<Row>> {
        Ok(self.run(sql, params, Wanted::All).await?.rows)
    }

    pub(crate) async fn one(&mut self, sql: &'static str, params: Vec<Param>) -> Result<Option<Row>> {
        Ok(self.run(sql, params, Wanted::First).await?.rows.into_iter().next())
    }

    /// For a query that always has a row.
    pub(crate) async fn exactly_one(&mut self, sql: &'static str, params: Vec<Param>) -> Result<Row> {
        self.one(sql, params).await?.ok_or_else(|| StoreError::Corrupt(format!("no row for: {sql}")))
    }

    async fn run(&mut self, sql: &'static str, params: Vec<Param>, wanted: Wanted) -> Result<Done> {
        let mut done = Done::default();
        match self {
            Tx::Sqlite(turn) => {
                // Nothing else here waits: without this a long row of statements would leave no room for others.
                tokio::task::consume_budget().await;
                let answer = turn.run(sql, &params, wanted)?;
                done = Done { written: answer.written, rows: answer.rows.into_iter().map(Row::Sqlite).collect() };
            }
            Tx::Postgres(tx) => {
                let mut answers = (&mut **tx).fetch_many(bind_postgres(sql, params));
                while let Some(answer) = answers.try_next().await? {
                    match answer {
                        Either::Right(row) => done.rows.push(Row::Postgres(row)),
                        Either::Left(end) => done.written = end.rows_affected(),
                    }
                }
            }
        }
        Ok(done)
    }

    pub(crate) async fn commit(self) -> Result<()> {
        match self {
            Tx::Sqlite(turn) => turn.commit().await,
            Tx::Postgres(tx) => Ok(tx.commit().await?),
        }
    }
}

/// What a statement has done.
#[derive(Default)]
struct Done {
    /// The number of rows that were written.
    written: u64,
    /// What it answers, if it answers anything.
    rows: Vec<Row>,
}

/// A value for a placeholder. A null still has a type, which PostgreSQL wants to know.
#[derive(Clone, Debug)]
pub(crate) enum Param {
    Text(Option<String>),
    Int(Option<i64>),
    Blob(Option<Vec<u8>>),
}

macro_rules! param_from {
    ($($from:ty, $variant:ident, $value:ident => $into:expr;)*) => {$(
        impl From<$from> for Param {
            fn from($value: $from) -> Param {
                Param::$variant($into)
            }
        }
    )*};
}

param_from! {
    &str, Text, value => Some(value.to_owned());
    String, Text, value => Some(value);
    Option<String>, Text, value => value;
    Option<&str>, Text, value => value.map(str::to_owned);
    i64, Int, value => Some(value);
    bool, Int, value => Some(i64::from(value));
    Option<i64>, Int, value => value;
    Option<bool>, Int, value => value.map(i64::from);
    Vec<u8>, Blob, value => Some(value);
    &[u8], Blob, value => Some(value.to_owned());
    Option<Vec<u8>>, Blob, value => value;
}

macro_rules! params {
    ($($value:expr),* $(,)?) => { vec![$($crate::db::Param::from($value)),*] };
}
pub(crate) use params;

fn bind_postgres(
    sql: &'static str,
    params: Vec<Param>,
) -> sqlx::query::Query<'static, Postgres, sqlx::postgres::PgArguments> {
    let sql = render(sql, Dialect::Postgres);
    params.into_iter().fold(sqlx::query(AssertSqlSafe(sql)), |query, param| match param {
        Param::Text(value) => query.bind(value),
        Param::Int(value) => query.bind(value),
        Param::Blob(value) => query.bind(value),
    })
}
