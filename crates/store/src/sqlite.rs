//! A connection to SQLite that is called on the thread one is on: a change of threads costs more than most statements do.
//!
//! Elsewhere goes only what takes long: a commit, which waits for the disk (`group`), and a read that turns out to be a
//! long one (`readers`). No statement waits for another connection's lock: it fails as busy, and whoever called can wait
//! without a thread.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rusqlite::types::{FromSql, Type, Value, ValueRef};
use rusqlite::{ErrorCode, OpenFlags};

use crate::db::Param;
use crate::error::StoreError;
use crate::sql::{Dialect, render};

/// The log of SQLite is carried over into the database when it has so many pages of 4 KiB. Runs write the same pages again
/// and again: the longer the log, the fewer of them are written twice.
pub(crate) const PAGES_OF_LOG: u32 = 4000;
/// What a connection may remember of the database, in KiB. A claim from a queue of a million, or a page of a long list,
/// visits more than SQLite's usual 2 MB would hold; what nobody visits takes no memory.
const WRITER_REMEMBERS: u32 = 65536;
const READER_REMEMBERS: u32 = 8192;
/// Statements that a connection has ready: all that the store has.
const STATEMENTS: usize = 512;

/// A short read is at most so many rows and so many thousand steps of SQLite's machine, which are some milliseconds. A page
/// of a list is one, a count of a million rows is not.
const ROWS_OF_A_SHORT_READ: usize = 1000;
const STEPS_OF_A_SHORT_READ: u32 = 200;
const UNLIMITED: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Connection {
    sqlite: rusqlite::Connection,
    /// Of each statement that has answered, by its place in the program.
    columns: HashMap<(usize, usize), Arc<[String]>>,
    /// Thousands of steps until a short read is too long.
    steps_left: Arc<AtomicU32>,
}

/// What a statement has done.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The number of rows that were written.
    pub(crate) written: u64,
    /// What it answers, if it answers anything.
    pub(crate) rows: Vec<SqliteRow>,
}

/// What is wanted of a statement's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A statement that writes has written everything before it answers anything.
    First,
    All,
}

impl Connection {
    /// The file is there, with its tables and in WAL mode: `river` opens it before.
    pub(crate) fn to_write(file: &Path) -> rusqlite::Result<Connection> {
        Connection::open(file, OpenFlags::SQLITE_OPEN_READ_WRITE, WRITER_REMEMBERS)
    }

    pub(crate) fn to_read(file: &Path) -> rusqlite::Result<Connection> {
        let connection = Connection::open(file, OpenFlags::SQLITE_OPEN_READ_ONLY, READER_REMEMBERS)?;
        let left = connection.steps_left.clone();
        let is_too_long = move || match left.load(Ordering::Relaxed) {
            UNLIMITED => false,
            0 => true,
            steps => {
                left.store(steps - 1, Ordering::Relaxed);
                false
            }
        };
        connection.sqlite.progress_handler(1000, Some(is_too_long))?;
        Ok(connection)
    }

    fn open(file: &Path, access: OpenFlags, remembers: u32) -> rusqlite::Result<Connection> {
        let sqlite = rusqlite::Connection::open_with_flags(file, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        sqlite.busy_timeout(Duration::ZERO)?;
        sqlite.set_prepared_statement_cache_capacity(STATEMENTS);
        // A kill passes with less than a full flush; a power cut does not. SQLite takes KiB with a minus.
        sqlite.execute_batch(&format!(
            "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;
             PRAGMA wal_autocheckpoint = {PAGES_OF_LOG}; PRAGMA cache_size = -{remembers};"
        ))?;
        Ok(Connection { sqlite, columns: HashMap::new(), steps_left: Arc::new(AtomicU32::new(UNLIMITED)) })
    }

    /// Outside of any transaction; after an error of the disk SQLite rolls back by itself.
    pub(crate) fn is_out_of_transactions(&self) -> bool {
        self.sqlite.is_autocommit()
    }

    /// One statement without values or an answer.
    pub(crate) fn tell(&mut self, sql: &'static str) -> rusqlite::Result<()> {
        self.run(sql, &[], Wanted::All).map(drop)
    }

    pub(crate) fn run(&mut self, sql: &'static str, params: &[Param], wanted: Wanted) -> rusqlite::Result<Done> {
        let done = self.run_up_to(usize::MAX, sql, params, wanted)?;
        Ok(done.expect("no number of rows is too many"))
    }

    /// None if it is no short read: it has been stopped, and is to be begun again where it may take its time.
    pub(crate) fn run_if_short(
        &mut self,
        sql: &'static str,
        params: &[Param],
        wanted: Wanted,
    ) -> rusqlite::Result<Option<Done>> {
        self.steps_left.store(STEPS_OF_A_SHORT_READ, Ordering::Relaxed);
        let result = self.run_up_to(ROWS_OF_A_SHORT_READ, sql, params, wanted);
        self.steps_left.store(UNLIMITED, Ordering::Relaxed);
        match result {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => Ok(None),
            result => result,
        }
    }

    fn run_up_to(
        &mut self,
        most_rows: usize,
        sql: &'static str,
        params: &[Param],
        wanted: Wanted,
    ) -> rusqlite::Result<Option<Done>> {
        let mut statement = self.sqlite.prepare_cached(&render(sql, Dialect::Sqlite))?;
        if statement.parameter_count() != params.len() {
            return Err(rusqlite::Error::InvalidParameterCount(params.len(), statement.parameter_count()));
        }
        for (at, param) in params.iter().enumerate() {
            match param {
                Param::Text(value) => statement.raw_bind_parameter(at + 1, value)?,
                Param::Int(value) => statement.raw_bind_parameter(at + 1, value)?,
                Param::Blob(value) => statement.raw_bind_parameter(at + 1, value)?,
            }
        }
        let names = || statement.column_names().into_iter().map(str::to_owned).collect();
        let columns = self.columns.entry((sql.as_ptr() as usize, sql.len())).or_insert_with(names).clone();
        let writes = !statement.readonly();
        let mut answers = statement.raw_query();
        let mut done = Done::default();
        while let Some(answer) = answers.next()? {
            if done.rows.len() == most_rows {
                return Ok(None);
            }
            let values = (0..columns.len()).map(|at| owned(at, answer.get_ref(at)?)).collect::<Result<_, _>>()?;
            done.rows.push(SqliteRow { columns: columns.clone(), values });
            if wanted == Wanted::First {
                break;
            }
        }
        drop(answers);
        done.written = if writes { self.sqlite.changes() } else { 0 };
        Ok(Some(done))
    }
}

/// Another connection is writing.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

fn owned(at: usize, value: ValueRef<'_>) -> rusqlite::Result<Value> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Integer(value),
        ValueRef::Real(value) => Value::Real(value),
        ValueRef::Blob(value) => Value::Blob(value.to_vec()),
        ValueRef::Text(value) => Value::Text(
            std::str::from_utf8(value)
                .map_err(|error| rusqlite::Error::FromSqlConversionFailure(at, Type::Text, Box::new(error)))?
                .to_owned(),
        ),
    })
}

/// A row on its own.
#[derive(Debug)]
pub(crate) struct SqliteRow {
    columns: Arc<[String]>,
    values: Vec<Value>,
}

impl SqliteRow {
    /// Nothing is converted: a number is no text, and a null is neither.
    pub(crate) fn get<T: FromSql>(&self, column: &str) -> Result<T, StoreError> {
        let corrupt = |what: &dyn std::fmt::Display| StoreError::Corrupt(format!("column {column}: {what}"));
        let at = self.columns.iter().position(|name| name == column).ok_or_else(|| corrupt(&"there is none"))?;
        T::column_result(ValueRef::from(&self.values[at])).map_err(|error| corrupt(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::params;

    const TO_A_MILLION: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000)
        SELECT COUNT(*) AS count FROM n";
    const UP_TO: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1) SELECT i FROM n";

    fn reader() -> (tempfile::TempDir, Connection) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("some.db");
        rusqlite::Connection::open(&file).unwrap().execute_batch("PRAGMA journal_mode = WAL").unwrap();
        let reader = Connection::to_read(&file).unwrap();
        (folder, reader)
    }

    #[test]
    fn a_read_that_is_not_short_is_stopped() {
        let (_folder, mut reader) = reader();
        let mut short = |sql, params: &[Param]| reader.run_if_short(sql, params, Wanted::All).unwrap();
        assert!(short(TO_A_MILLION, &[]).is_none(), "too many steps");
        assert_eq!(short(UP_TO, &[Param::from(1000)]).expect("short").rows.len(), 1000);
        assert!(short(UP_TO, &[Param::from(1001)]).is_none(), "too many rows");
        assert_eq!(short(UP_TO, &[Param::from(2)]).expect("short").rows.len(), 2);
        let all = reader.run(TO_A_MILLION, &[], Wanted::All).unwrap();
        assert_eq!(all.rows[0].get::<i64>("count").unwrap(), 1_000_000);
    }

    #[test]
    fn a_value_is_taken_for_nothing_else() {
        let (_folder, mut reader) = reader();
        let sql = "SELECT $2 AS number, $1 AS text, $3 AS bytes, 1.5 AS real, NULL AS empty";
        let params = params!["1", 1, b"1".as_slice()];
        let row = reader.run(sql, &params, Wanted::First).unwrap().rows.remove(0);
        assert_eq!(row.get::<String>("text").unwrap(), "1");
        assert_eq!(row.get::<Option<i64>>("number").unwrap(), Some(1));
        assert_eq!(row.get::<Vec<u8>>("bytes").unwrap(), b"1");
        assert_eq!(row.get::<Option<String>>("empty").unwrap(), None);
        row.get::<String>("number").unwrap_err();
        row.get::<i64>("text").unwrap_err();
        row.get::<Vec<u8>>("text").unwrap_err();
        row.get::<String>("bytes").unwrap_err();
        row.get::<i64>("real").unwrap_err();
        row.get::<i64>("empty").unwrap_err();
        row.get::<i64>("missing").unwrap_err();
        reader.run(sql, &params[..2], Wanted::First).unwrap_err();
    }

    #[test]
    fn a_reader_writes_nothing() {
        let (_folder, mut reader) = reader();
        reader.tell("CREATE TABLE t (x)").unwrap_err();
    }
}
