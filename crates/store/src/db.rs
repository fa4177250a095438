//! One small layer over both databases, so that every query is written once.
//!
//! SQL uses `$1` placeholders and three words in braces that differ by dialect: `{now}` (milliseconds by the database's
//! clock), `{lock}` (lock the rows read) and `{lock_or_skip}` (the same for the rows of `d`, passing over locked ones).
//! SQLite needs no row locks: it has one writer, and every writing transaction begins with BEGIN IMMEDIATE.

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use sqlx::postgres::{PgPoolOptions, PgRow};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteRow, SqliteSynchronous};
use sqlx::{AssertSqlSafe, PgPool, Postgres, Row as _, Sqlite, SqlitePool, Transaction};

use crate::error::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

#[derive(Clone, Debug)]
pub(crate) enum Db {
    Sqlite { writer: SqlitePool, readers: SqlitePool },
    Postgres(PgPool),
}

const READERS: u32 = 4;
const POSTGRES_CONNECTIONS: u32 = 16;
/// A caller who waits longer than this for a connection is told so.
const PATIENCE: Duration = Duration::from_secs(30);

impl Db {
    pub(crate) async fn open_sqlite(file: &Path) -> Result<Db> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // A kill passes with less; a power cut does not.
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(PATIENCE);
        let pool = |connections| {
            SqlitePoolOptions::new()
                .max_connections(connections)
                .acquire_timeout(PATIENCE)
                .idle_timeout(None)
                .max_lifetime(None)
        };
        let writer = pool(1).connect_with(options.clone()).await?;
        sqlx::migrate!("migrations/sqlite").run(&writer).await.map_err(StoreError::migration)?;
        let readers = pool(READERS).connect_with(options.read_only(true).create_if_missing(false)).await?;
        Ok(Db::Sqlite { writer, readers })
    }

    pub(crate) async fn open_postgres(url: &str) -> Result<Db> {
        let pool = PgPoolOptions::new()
            .max_connections(POSTGRES_CONNECTIONS)
            .acquire_timeout(PATIENCE)
            .connect(url)
            .await
            .map_err(|error| StoreError::Unavailable(format!("cannot reach PostgreSQL: {error}")))?;
        sqlx::migrate!("migrations/postgres").run(&pool).await.map_err(StoreError::migration)?;
        Ok(Db::Postgres(pool))
    }

    /// A transaction that writes.
    pub(crate) async fn begin(&self) -> Result<Tx> {
        Ok(match self {
            Db::Sqlite { writer, .. } => Tx::Sqlite(writer.begin_with("BEGIN IMMEDIATE").await?),
            Db::Postgres(pool) => Tx::Postgres(pool.begin().await?),
        })
    }

    /// Reads outside of any transaction; on SQLite they never wait for the writer.
    pub(crate) async fn read_all(&self, sql: &'static str, params: Vec<Param>) -> Result<Vec<Row>> {
        match self {
            Db::Sqlite { readers, .. } => {
                let rows = bind_sqlite(sql, params).fetch_all(readers).await?;
                Ok(rows.into_iter().map(Row::Sqlite).collect())
            }
            Db::Postgres(pool) => {
                let rows = bind_postgres(sql, params).fetch_all(pool).await?;
                Ok(rows.into_iter().map(Row::Postgres).collect())
            }
        }
    }

    pub(crate) async fn read_one(&self, sql: &'static str, params: Vec<Param>) -> Result<Option<Row>> {
        Ok(self.read_all(sql, params).await?.into_iter().next())
    }

    pub(crate) async fn close(&self) {
        match self {
            Db::Sqlite { writer, readers } => {
                readers.close().await;
                writer.close().await;
            }
            Db::Postgres(pool) => pool.close().await,
        }
    }
}

/// Rolled back unless committed.
pub(crate) enum Tx {
    Sqlite(Transaction<'static, Sqlite>),
    Postgres(Transaction<'static, Postgres>),
}

impl Tx {
    /// The number of rows that were written.
    pub(crate) async fn execute(&mut self, sql: &'static str, params: Vec<Param>) -> Result<u64> {
        Ok(match self {
            Tx::Sqlite(tx) => bind_sqlite(sql, params).execute(&mut **tx).await?.rows_affected(),
            Tx::Postgres(tx) => bind_postgres(sql, params).execute(&mut **tx).await?.rows_affected(),
        })
    }

    pub(crate) async fn all(&mut self, sql: &'static str, params: Vec<Param>) -> Result<Vec<Row>> {
        Ok(match self {
            Tx::Sqlite(tx) => {
                let rows = bind_sqlite(sql, params).fetch_all(&mut **tx).await?;
                rows.into_iter().map(Row::Sqlite).collect()
            }
            Tx::Postgres(tx) => {
                let rows = bind_postgres(sql, params).fetch_all(&mut **tx).await?;
                rows.into_iter().map(Row::Postgres).collect()
            }
        })
    }

    pub(crate) async fn one(&mut self, sql: &'static str, params: Vec<Param>) -> Result<Option<Row>> {
        Ok(self.all(sql, params).await?.into_iter().next())
    }

    /// For a query that always has a row.
    pub(crate) async fn exactly_one(&mut self, sql: &'static str, params: Vec<Param>) -> Result<Row> {
        self.one(sql, params).await?.ok_or_else(|| StoreError::Corrupt(format!("no row for: {sql}")))
    }

    /// Tells other processes that there is news, once this transaction is committed.
    pub(crate) async fn notify(&mut self) -> Result<()> {
        if let Tx::Postgres(tx) = self {
            sqlx::query("SELECT pg_notify('landform', '')").execute(&mut **tx).await?;
        }
        Ok(())
    }

    pub(crate) async fn commit(self) -> Result<()> {
        match self {
            Tx::Sqlite(tx) => tx.commit().await?,
            Tx::Postgres(tx) => tx.commit().await?,
        }
        Ok(())
    }
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

const SQLITE_WORDS: [(&str, &str); 3] =
    [("{now}", "CAST(unixepoch('subsec') * 1000 AS INTEGER)"), ("{lock_or_skip}", ""), ("{lock}", "")];
const POSTGRES_WORDS: [(&str, &str); 3] = [
    ("{now}", "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"),
    ("{lock_or_skip}", "FOR UPDATE OF d SKIP LOCKED"),
    ("{lock}", "FOR UPDATE"),
];

fn render(sql: &'static str, words: [(&str, &str); 3]) -> Cow<'static, str> {
    if !sql.contains('{') {
        return sql.into();
    }
    words.into_iter().fold(sql.to_owned(), |sql, (word, meaning)| sql.replace(word, meaning)).into()
}

fn bind_sqlite(
    sql: &'static str,
    params: Vec<Param>,
) -> sqlx::query::Query<'static, Sqlite, sqlx::sqlite::SqliteArguments> {
    // Safe: the text is ours from beginning to end; only the fixed words above are put in.
    params.into_iter().fold(sqlx::query(AssertSqlSafe(render(sql, SQLITE_WORDS))), |query, param| match param {
        Param::Text(value) => query.bind(value),
        Param::Int(value) => query.bind(value),
        Param::Blob(value) => query.bind(value),
    })
}

fn bind_postgres(
    sql: &'static str,
    params: Vec<Param>,
) -> sqlx::query::Query<'static, Postgres, sqlx::postgres::PgArguments> {
    params.into_iter().fold(sqlx::query(AssertSqlSafe(render(sql, POSTGRES_WORDS))), |query, param| match param {
        Param::Text(value) => query.bind(value),
        Param::Int(value) => query.bind(value),
        Param::Blob(value) => query.bind(value),
    })
}

pub(crate) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

macro_rules! getters {
    ($($name:ident, $type:ty;)*) => {
        impl Row {$(
            pub(crate) fn $name(&self, column: &str) -> Result<$type> {
                Ok(match self {
                    Row::Sqlite(row) => row.try_get(column)?,
                    Row::Postgres(row) => row.try_get(column)?,
                })
            }
        )*}
    };
}

getters! {
    text, String;
    text_or_null, Option<String>;
    int, i64;
    int_or_null, Option<i64>;
    blob, Vec<u8>;
    blob_or_null, Option<Vec<u8>>;
}

impl Row {
    pub(crate) fn flag(&self, column: &str) -> Result<bool> {
        Ok(self.int(column)? != 0)
    }

    /// A text that this crate wrote from a type, read back into that type.
    pub(crate) fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(&self, column: &str) -> Result<T> {
        self.text(column)?.parse().map_err(|error| StoreError::Corrupt(format!("column {column}: {error}")))
    }
}
