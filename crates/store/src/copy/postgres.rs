//! Our own copy of a PostgreSQL store: a file for each table, in the format of COPY, all of one moment. It needs none of
//! PostgreSQL's programs, whose versions would have to fit the server's.

use std::collections::BTreeMap;
use std::path::Path;

use futures::TryStreamExt;
use landform_base::seal::MasterKey;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::error::StoreError;

/// What the files are: the columns of each table, and how far the tables had been brought up to date.
#[derive(serde::Serialize, serde::Deserialize)]
struct Contents {
    migration: i64,
    tables: BTreeMap<String, Vec<String>>,
}

pub(super) const CONTENTS: &str = "tables.json";
const CHUNK: usize = 1 << 20;

/// Tables of ours, with the columns that are not computed. River's are left out: what is in them is made anew.
const COLUMNS: &str = "SELECT c.table_name::text AS table_name, c.column_name::text AS column_name
    FROM information_schema.columns c
    JOIN information_schema.tables t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
    WHERE c.table_schema = current_schema() AND t.table_type = 'BASE TABLE' AND c.is_generated = 'NEVER'
        AND c.table_name NOT LIKE 'river%' AND c.table_name <> '_sqlx_migrations'
    ORDER BY c.table_name, c.ordinal_position";

const MIGRATION: &str = "SELECT MAX(version) AS version FROM _sqlx_migrations";

pub(super) async fn export(url: &str, folder: &Path) -> Result<(), StoreError> {
    let mut connection = PgConnection::connect(url).await?;
    // One moment for all tables.
    sqlx::raw_sql("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").execute(&mut connection).await?;
    let contents = contents(&mut connection).await?;
    for (table, columns) in &contents.tables {
        let path = folder.join(table);
        let mut file = tokio::fs::File::create(&path).await.map_err(|e| failed(&path, e))?;
        let sql = format!("COPY {table} ({}) TO STDOUT", columns.join(", "));
        let mut rows = connection.copy_out_raw(&sql).await?;
        while let Some(bytes) = rows.try_next().await? {
            file.write_all(&bytes).await.map_err(|e| failed(&path, e))?;
        }
        file.sync_all().await.map_err(|e| failed(&path, e))?;
    }
    let path = folder.join(CONTENTS);
    landform_base::file::write_private(&path, &serde_json::to_vec(&contents)?).map_err(|e| failed(&path, e))?;
    connection.close().await?;
    Ok(())
}

async fn contents(connection: &mut PgConnection) -> Result<Contents, StoreError> {
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in sqlx::query(COLUMNS).fetch_all(&mut *connection).await? {
        tables.entry(row.try_get("table_name")?).or_default().push(row.try_get("column_name")?);
    }
    let migration: i64 = sqlx::query(MIGRATION).fetch_one(connection).await?.try_get("version")?;
    Ok(Contents { migration, tables })
}

/// Into a database that has the tables of the same version, and in them nothing but what a first start makes.
pub(super) async fn import(url: &str, folder: &Path, master_key: &MasterKey) -> Result<(), StoreError> {
    let path = folder.join(CONTENTS);
    let read = tokio::fs::read(&path).await.map_err(|e| failed(&path, e))?;
    let copied: Contents = serde_json::from_slice(&read)?;
    let mut connection = PgConnection::connect(url).await?;
    let here = contents(&mut connection).await?;
    if here.migration != copied.migration || here.tables != copied.tables {
        return Err(StoreError::Corrupt(format!(
            "the backup is of another version (tables of {}, here {}): restore it with that one, then upgrade",
            copied.migration, here.migration
        )));
    }
    let row = sqlx::query("SELECT COUNT(*) AS tenants FROM tenants").fetch_one(&mut connection).await?;
    if row.try_get::<i64, _>("tenants")? > 0 {
        return Err(StoreError::InUse("the database has tenants already; name an empty one".into()));
    }
    let mut tx = connection.begin().await?;
    // The audit log cannot be emptied by anybody, and a store that was never used has none.
    let all: Vec<&str> = copied.tables.keys().map(String::as_str).filter(|table| *table != "audit").collect();
    // Safe: these are names of our own tables and columns, as the database has them.
    sqlx::raw_sql(AssertSqlSafe(format!("TRUNCATE {}", all.join(", ")))).execute(&mut *tx).await?;
    // Others refer to tenants.
    let (first, rest): (Vec<_>, Vec<_>) = copied.tables.iter().partition(|(table, _)| *table == "tenants");
    for (table, columns) in first.into_iter().chain(rest) {
        let path = folder.join(table);
        let mut file = tokio::fs::File::open(&path).await.map_err(|e| failed(&path, e))?;
        let sql = format!("COPY {table} ({}) FROM STDIN", columns.join(", "));
        let mut copy = tx.copy_in_raw(&sql).await?;
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = file.read(&mut chunk).await.map_err(|e| failed(&path, e))?;
            if read == 0 {
                break;
            }
            copy.send(&chunk[..read]).await?;
        }
        copy.finish().await?;
    }
    let key: Option<(String, Vec<u8>)> = sqlx::query_as(super::ANY_KEY).fetch_optional(&mut *tx).await?;
    super::check_key(master_key, key)?;
    sqlx::raw_sql(super::PAUSE_EVERYTHING).execute(&mut *tx).await?;
    // Numbers that the database gives go on behind the last one.
    for (table, column) in [("intents", "id"), ("audit", "seq"), ("deliveries", "id")] {
        let sql = format!(
            "SELECT setval(pg_get_serial_sequence('{table}', '{column}'),
                 (SELECT COALESCE(MAX({column}), 0) + 1 FROM {table}), false)"
        );
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *tx).await?;
    }
    tx.commit().await?;
    connection.close().await?;
    Ok(())
}

fn failed(path: &Path, source: std::io::Error) -> StoreError {
    StoreError::Io { context: path.display().to_string(), source }
}
