use sqlx::Row as _;
use sqlx::postgres::PgRow;

use crate::error::StoreError;
use crate::sqlite::SqliteRow;

/// A row of either database. What is in a column is taken for nothing else than it is.
pub(crate) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

macro_rules! getters {
    ($($name:ident, $type:ty;)*) => {
        impl Row {$(
            pub(crate) fn $name(&self, column: &str) -> Result<$type, StoreError> {
                match self {
                    Row::Sqlite(row) => row.get(column),
                    Row::Postgres(row) => Ok(row.try_get(column)?),
                }
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
    pub(crate) fn flag(&self, column: &str) -> Result<bool, StoreError> {
        Ok(self.int(column)? != 0)
    }

    /// A text that this crate wrote from a type, read back into that type.
    pub(crate) fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(&self, column: &str) -> Result<T, StoreError> {
        self.text(column)?.parse().map_err(|error| StoreError::Corrupt(format!("column {column}: {error}")))
    }
}
