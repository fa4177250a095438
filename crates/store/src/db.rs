//! One small layer over both databases, so that every query is written once.
//!
//! SQL uses `$1` placeholders and words in braces that differ by dialect: `{now}` (milliseconds by the database's
//! clock), `{lock}` (lock the rows read), `{lock_both}` (those of `d` and `r`), `{lock_or_skip}` (the same, passing over
//! locked ones), `{skip_locked}` (`{lock}`, passing over locked ones), `{json}` (behind a text: the JSON in it), and `{strings $1}` (the rows `e.at`, counted from 0, and `e.value` of a JSON array of strings).
//! SQLite needs no row locks: it has one writer, and transactions take turns (see `group`).

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use sqlx::postgres::{PgPoolOptions, PgRow};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteRow, SqliteSynchronous};
use sqlx::{AssertSqlSafe, PgPool, Postgres, Row as _, Sqlite, SqlitePool, Transaction};

use crate::error::StoreError;
use crate::group::{Turn, Writer};

type Result<T> = std::result::Result<T, StoreError>;

#[derive(Clone, Debug)]
pub(crate) enum Db {
    Sqlite { writer: Writer, readers: SqlitePool },
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
        Ok(Db::Sqlite { writer: Writer::new(writer, PATIENCE), readers })
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
            Db::Sqlite { writer, .. } => Tx::Sqlite(writer.begin().await?),
            // Begun on a task of its own: a caller who goes away half-way leaves no connection inside of a transaction.
            Db::Postgres(pool) => Tx::Postgres(riverqueue::database::begin_postgres(pool).await?),
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
                writer.pool().close().await;
            }
            Db::Postgres(pool) => pool.close().await,
        }
    }
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
        Ok(match self {
            Tx::Sqlite(tx) => bind_sqlite(sql, params).execute(tx.connection()).await?.rows_affected(),
            Tx::Postgres(tx) => bind_postgres(sql, params).execute(&mut **tx).await?.rows_affected(),
        })
    }

    pub(crate) async fn all(&mut self, sql: &'static str, params: Vec<Param>) -> Result<Vec<Row>> {
        Ok(match self {
            Tx::Sqlite(tx) => {
                let rows = bind_sqlite(sql, params).fetch_all(tx.connection()).await?;
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

    pub(crate) async fn commit(self) -> Result<()> {
        match self {
            Tx::Sqlite(turn) => turn.commit().await,
            Tx::Postgres(tx) => Ok(tx.commit().await?),
        }
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

type Words = &'static [(&'static str, &'static str)];

const SQLITE_WORDS: Words = &[
    ("{now}", "CAST(unixepoch('subsec') * 1000 AS INTEGER)"),
    ("{json}", ""),
    ("{lock_or_skip}", ""),
    ("{skip_locked}", ""),
    ("{lock_both}", ""),
    ("{lock_shared}", ""),
    ("{lock}", ""),
    ("{strings ", "(SELECT key AS at, value FROM json_each("),
    ("}", ")) AS e"),
];
const POSTGRES_WORDS: Words = &[
    ("{now}", "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"),
    ("{json}", "::jsonb"),
    ("{lock_or_skip}", "FOR UPDATE OF d, r SKIP LOCKED"),
    ("{skip_locked}", "FOR UPDATE SKIP LOCKED"),
    ("{lock_both}", "FOR UPDATE OF d, r"),
    ("{lock_shared}", "FOR KEY SHARE"),
    ("{lock}", "FOR UPDATE"),
    ("{strings ", "(SELECT n - 1 AS at, value FROM jsonb_array_elements_text(CAST("),
    ("}", " AS JSONB)) WITH ORDINALITY AS a(value, n)) AS e"),
];

fn render(sql: &'static str, words: Words) -> Cow<'static, str> {
    if !sql.contains('{') {
        return sql.into();
    }
    words.iter().fold(sql.to_owned(), |sql, (word, meaning)| sql.replace(word, meaning)).into()
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
