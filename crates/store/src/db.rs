//! One small layer over both databases, so that every query is written once.
//!
//! SQL uses `$1` placeholders and words in braces that differ by dialect: `{now}` (milliseconds by the database's
//! clock), `{lock}` (lock the rows read), `{lock_both}` (those of `d` and `r`), `{lock_or_skip}` (the same, passing over
//! locked ones), `{skip_locked}` (`{lock}`, passing over locked ones), `{json}` (behind a text: the JSON in it), and `{strings $1}` (the rows `e.at`, counted from 0, and `e.value` of a JSON array of strings).
//! SQLite needs no row locks: it has one writer, and transactions take turns (see `group`).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use sqlx::postgres::{PgPoolOptions, PgRow};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteRow, SqliteSynchronous};
use sqlx::{
    AssertSqlSafe, Connection, Either, Executor, PgPool, Postgres, Row as _, Sqlite, SqliteConnection, Transaction,
};

use crate::error::StoreError;
use crate::group::{Turn, Writer};
use crate::readers::Readers;
use crate::sql::{Dialect, join, render};

type Result<T> = std::result::Result<T, StoreError>;

#[derive(Clone, Debug)]
pub(crate) enum Db {
    Sqlite { writer: Writer, readers: Readers },
    Postgres(PgPool),
}

const READERS: u32 = 4;
const POSTGRES_CONNECTIONS: u32 = 16;
/// The log of SQLite is carried over into the database when it has so many pages of 4 KiB. Runs write the same pages again
/// and again: the longer the log, the fewer of them are written twice.
const PAGES_OF_LOG: &str = "4000";
/// What each connection to SQLite may remember of the database, in KiB (which SQLite wants with a minus). A claim from a
/// queue of a million, or a page of a long list, visits more than SQLite's usual 2 MB would hold; what nobody visits
/// takes no memory.
const WRITER_REMEMBERS: &str = "-65536";
const READER_REMEMBERS: &str = "-8192";
/// Texts that a connection to SQLite has ready: all that the store has, alone and behind the beginning of a turn.
const STATEMENTS: usize = 512;
/// A caller who waits longer than this for a connection is told so.
const PATIENCE: Duration = Duration::from_secs(30);
/// A connection to PostgreSQL that was in use a moment ago is taken without asking whether it is still there.
const ASKED_AFTER: Duration = Duration::from_secs(1);

impl Db {
    pub(crate) async fn open_sqlite(file: &Path) -> Result<Db> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // A kill passes with less; a power cut does not.
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .pragma("wal_autocheckpoint", PAGES_OF_LOG)
            .statement_cache_capacity(STATEMENTS)
            .busy_timeout(PATIENCE);
        let writer = SqlitePoolOptions::new()
            .max_connections(1)
            .acquire_timeout(PATIENCE)
            .idle_timeout(None)
            .max_lifetime(None)
            .test_before_acquire(false)
            .after_release(|connection, _| Box::pin(is_out_of_transactions(connection)))
            .connect_with(options.clone().pragma("cache_size", WRITER_REMEMBERS))
            .await?;
        sqlx::migrate!("migrations/sqlite").run(&writer).await.map_err(StoreError::migration)?;
        let options = options.pragma("cache_size", READER_REMEMBERS).read_only(true).create_if_missing(false);
        let readers = Readers::new(options, READERS, PATIENCE);
        Ok(Db::Sqlite { writer: Writer::new(writer, PATIENCE), readers })
    }

    pub(crate) async fn open_postgres(url: &str) -> Result<Db> {
        let pool = PgPoolOptions::new()
            .max_connections(POSTGRES_CONNECTIONS)
            .acquire_timeout(PATIENCE)
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
            .map_err(|error| StoreError::Unavailable(format!("cannot reach PostgreSQL: {error}")))?;
        sqlx::migrate!("migrations/postgres").run(&pool).await.map_err(StoreError::migration)?;
        Ok(Db::Postgres(pool))
    }

    /// A transaction that writes.
    pub(crate) async fn begin(&self) -> Result<Tx> {
        Ok(match self {
            Db::Sqlite { writer, .. } => Tx::new(TxInner::Sqlite(Some(writer.begin().await?))),
            // Begun on a task of its own: a caller who goes away half-way leaves no connection inside of a transaction.
            Db::Postgres(pool) => Tx::new(TxInner::Postgres(riverqueue::database::begin_postgres(pool).await?)),
        })
    }

    /// Reads outside of any transaction; on SQLite they never wait for the writer.
    pub(crate) async fn read_all(&self, sql: &'static str, params: Vec<Param>) -> Result<Vec<Row>> {
        match self {
            Db::Sqlite { readers, .. } => {
                let mut reader = readers.take().await?;
                Ok(run_sqlite(reader.connection(), vec![Statement { sql, params }], &mut 0).await?.rows)
            }
            Db::Postgres(pool) => {
                let rows = bind_postgres(sql, params).fetch_all(pool).await?;
                Ok(rows.into_iter().map(Row::Postgres).collect())
            }
        }
    }

    pub(crate) async fn read_one(&self, sql: &'static str, params: Vec<Param>) -> Result<Option<Row>> {
        match self {
            Db::Sqlite { readers, .. } => {
                let mut reader = readers.take().await?;
                one_of_sqlite(reader.connection(), Statement { sql, params }).await
            }
            Db::Postgres(_) => Ok(self.read_all(sql, params).await?.into_iter().next()),
        }
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

/// Whether the connection can be used again. On a full disk SQLite rolls back by itself; the driver's own rollback then fails,
/// and it takes the connection to be inside of a transaction for ever, so that River could begin none.
async fn is_out_of_transactions(connection: &mut SqliteConnection) -> sqlx::Result<bool> {
    if connection.is_in_transaction() {
        // Behind a rollback that is still on its way.
        connection.ping().await?;
    }
    Ok(!connection.is_in_transaction())
}

/// Rolled back unless committed. Whoever answers from what it has read here commits too, though it has written nothing:
/// on SQLite what it saw may be another's, which is on disk only then.
pub(crate) struct Tx {
    inner: TxInner,
    /// What is sent with the next statement, before it.
    later: Vec<Statement>,
}

enum TxInner {
    /// None if a task that has it was ended, which happens only with the runtime.
    Sqlite(Option<Turn>),
    Postgres(Transaction<'static, Postgres>),
}

/// With the values for its placeholders.
struct Statement {
    sql: &'static str,
    params: Vec<Param>,
}

/// More in one text would make a text that never comes again.
const MOST_TOGETHER: usize = 16;

impl Tx {
    fn new(inner: TxInner) -> Tx {
        Tx { inner, later: Vec::new() }
    }

    /// A write whose answer nobody needs. It is sent with the next statement or with the commit, whichever comes first: on
    /// SQLite the way to its thread costs more than most statements do there. If it fails, that one does.
    pub(crate) fn later(&mut self, sql: &'static str, params: Vec<Param>) {
        self.later.push(Statement { sql, params });
    }

    /// The number of rows that were written.
    pub(crate) async fn execute(&mut self, sql: &'static str, params: Vec<Param>) -> Result<u64> {
        Ok(self.run(Some(Statement { sql, params })).await?.written)
    }

    pub(crate) async fn all(&mut self, sql: &'static str, params: Vec<Param>) -> Result<Vec<Row>> {
        Ok(self.run(Some(Statement { sql, params })).await?.rows)
    }

    pub(crate) async fn one(&mut self, sql: &'static str, params: Vec<Param>) -> Result<Option<Row>> {
        let statement = Statement { sql, params };
        match &mut self.inner {
            TxInner::Sqlite(Some(turn)) if self.later.is_empty() && turn.opening().is_empty() => {
                one_of_sqlite(turn.connection().await?, statement).await
            }
            _ => Ok(self.run(Some(statement)).await?.rows.into_iter().next()),
        }
    }

    /// For a query that always has a row.
    pub(crate) async fn exactly_one(&mut self, sql: &'static str, params: Vec<Param>) -> Result<Row> {
        self.one(sql, params).await?.ok_or_else(|| StoreError::Corrupt(format!("no row for: {sql}")))
    }

    /// Sends what was left for later.
    pub(crate) async fn flush(&mut self) -> Result<()> {
        if !self.later.is_empty() {
            self.run(None).await?;
        }
        Ok(())
    }

    /// Everything that was left for later and then this one; the answer is the last one's.
    async fn run(&mut self, last: Option<Statement>) -> Result<Done> {
        let mut statements = std::mem::take(&mut self.later);
        statements.extend(last);
        let mut done = Done::default();
        match &mut self.inner {
            TxInner::Sqlite(slot) => {
                let turn = slot.take().ok_or_else(|| StoreError::Unavailable("the process ends".into()))?;
                let (turn, result) = match turn.opening() {
                    [] => in_turn(turn, statements).await,
                    // On a task of its own, as everything here that may not stop half-way: a caller can go away at any
                    // moment, and then nobody would know whether the turn has begun.
                    _ => tokio::spawn(in_turn(turn, statements))
                        .await
                        .map_err(|error| StoreError::Unavailable(error.to_string()))?,
                };
                *slot = Some(turn);
                done = result?;
            }
            TxInner::Postgres(tx) => {
                for Statement { sql, params } in statements {
                    done = Done::default();
                    let mut answers = (&mut **tx).fetch_many(bind_postgres(sql, params));
                    while let Some(answer) = answers.try_next().await? {
                        match answer {
                            Either::Right(row) => done.rows.push(Row::Postgres(row)),
                            Either::Left(end) => done.written = end.rows_affected(),
                        }
                    }
                }
            }
        }
        Ok(done)
    }

    pub(crate) async fn commit(mut self) -> Result<()> {
        self.flush().await?;
        match self.inner {
            TxInner::Sqlite(Some(turn)) => turn.commit().await,
            TxInner::Sqlite(None) => Err(StoreError::Unavailable("the process ends".into())),
            TxInner::Postgres(tx) => Ok(tx.commit().await?),
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

/// Carries statements out in a turn, which begins with the first of them.
async fn in_turn(mut turn: Turn, statements: Vec<Statement>) -> (Turn, Result<Done>) {
    let opening = turn.opening();
    let plain = |sql: &&'static str| Statement { sql, params: Vec::new() };
    let mut statements: Vec<Statement> = opening.iter().map(plain).chain(statements).collect();
    let (mut ended, mut result) = (0, Ok(Done::default()));
    while !statements.is_empty() && result.is_ok() {
        let rest = statements.split_off(statements.len().min(MOST_TOGETHER));
        let now = std::mem::replace(&mut statements, rest);
        result = match turn.connection().await {
            Ok(connection) => run_sqlite(connection, now, &mut ended).await,
            Err(error) => Err(error),
        };
    }
    turn.opened(ended.min(opening.len()));
    (turn, result)
}

/// Sends statements to SQLite's thread together, and takes what the last one answers. The thread is not waited for any
/// longer than that: each time that it is waited for is a change from one thread to another and back. `ended` counts those
/// that were carried out.
async fn run_sqlite(
    connection: &mut SqliteConnection,
    mut statements: Vec<Statement>,
    ended: &mut usize,
) -> Result<Done> {
    let sql = match &statements[..] {
        [one] => render(one.sql, Dialect::Sqlite),
        several => join(several.iter().map(|statement| (statement.sql, statement.params.len()))).into(),
    };
    let params = statements.iter_mut().flat_map(|statement| std::mem::take(&mut statement.params));
    let mut answers = connection.fetch_many(bind_sqlite(sql, params));
    let mut done = Done::default();
    for _ in 0..statements.len() {
        done = Done::default();
        loop {
            match answers.try_next().await? {
                Some(Either::Right(row)) => done.rows.push(Row::Sqlite(row)),
                Some(Either::Left(end)) => {
                    done.written = end.rows_affected();
                    break;
                }
                None => return Err(StoreError::Corrupt("a statement without an end".into())),
            }
        }
        *ended += 1;
    }
    Ok(done)
}

/// The first row alone. A statement that writes has written everything before it answers anything.
async fn one_of_sqlite(connection: &mut SqliteConnection, statement: Statement) -> Result<Option<Row>> {
    let query = bind_sqlite(render(statement.sql, Dialect::Sqlite), statement.params);
    Ok(connection.fetch_optional(query).await?.map(Row::Sqlite))
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

fn bind_sqlite(
    sql: Arc<str>,
    params: impl IntoIterator<Item = Param>,
) -> sqlx::query::Query<'static, Sqlite, sqlx::sqlite::SqliteArguments> {
    // Safe: the text is ours from beginning to end; only fixed words are put in.
    params.into_iter().fold(sqlx::query(AssertSqlSafe(sql)), |query, param| match param {
        Param::Text(value) => query.bind(value),
        Param::Int(value) => query.bind(value),
        Param::Blob(value) => query.bind(value),
    })
}

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
