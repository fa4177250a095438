//! Copies of a whole store, and a change of the key that everything in it hangs on.

mod postgres;

use std::path::Path;

use landform_base::seal::MasterKey;
use landform_domain::TenantName;
use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};

use crate::db::params;
use crate::error::StoreError;
use crate::keys;
use crate::open::{Location, SQLITE_FILE, Store};

/// Writes a consistent copy of a store into an empty folder, while servers may be working on it: on both databases
/// readers never wait for writers, nor they for them.
pub async fn back_up(location: &Location, folder: &Path) -> Result<(), StoreError> {
    match location {
        Location::Sqlite(data) => copy_sqlite(&data.join(SQLITE_FILE), &folder.join(SQLITE_FILE)).await,
        Location::Postgres(url) => postgres::export(url.expose(), folder).await,
    }
}

/// Whether a folder has what [`back_up`] writes, of either database.
pub fn is_copy(folder: &Path) -> bool {
    folder.join(SQLITE_FILE).is_file() || folder.join(postgres::CONTENTS).is_file()
}

/// Brings a copy back, to a place that has no store yet (SQLite), or one that was never used (PostgreSQL, which has the
/// tables already). Nobody has it open. Everything in it is paused from its first moment: what was applied after the copy
/// was made is not known to it. A master key that does not open it is refused before anything is there.
pub async fn bring_back(folder: &Path, location: &Location, master_key: &MasterKey) -> Result<(), StoreError> {
    match location {
        Location::Sqlite(data) => {
            bring_back_sqlite(&folder.join(SQLITE_FILE), &data.join(SQLITE_FILE), master_key).await
        }
        Location::Postgres(url) => postgres::import(url.expose(), folder, master_key).await,
    }
}

/// The same on both databases.
const PAUSE_EVERYTHING: &str = "UPDATE switches SET paused = 1; UPDATE deployments SET paused = paused | 4";
const ANY_KEY: &str = "SELECT tenant, sealed FROM tenant_keys WHERE number = 1 ORDER BY tenant LIMIT 1";

/// A copy without tenants is opened by any key.
fn check_key(master_key: &MasterKey, found: Option<(String, Vec<u8>)>) -> Result<(), StoreError> {
    let Some((tenant, sealed)) = found else { return Ok(()) };
    let tenant: TenantName = tenant.parse().map_err(|_| StoreError::Corrupt("a tenant's name".into()))?;
    Ok(keys::opens(master_key, &tenant, &sealed)?)
}

/// Aside, until it is whole and paused: half a copy, or one that runs, would be taken for a store.
async fn bring_back_sqlite(from: &Path, to: &Path, master_key: &MasterKey) -> Result<(), StoreError> {
    if to.exists() {
        return Err(StoreError::InUse(format!("{} is there already; name another folder", to.display())));
    }
    check_sqlite(from).await?;
    let part = to.with_extension("part");
    let failed = |source| StoreError::Io { context: part.display().to_string(), source };
    if part.exists() {
        std::fs::remove_file(&part).map_err(failed)?;
    }
    copy_sqlite(from, &part).await?;
    let options = SqliteConnectOptions::new().filename(&part);
    // One file, which is all there when it is closed.
    let options = options.journal_mode(SqliteJournalMode::Delete).synchronous(SqliteSynchronous::Full);
    let mut connection = sqlx::SqliteConnection::connect_with(&options).await?;
    let key: Option<(String, Vec<u8>)> = sqlx::query_as(ANY_KEY).fetch_optional(&mut connection).await?;
    check_key(master_key, key)?;
    sqlx::raw_sql(PAUSE_EVERYTHING).execute(&mut connection).await?;
    connection.close().await?;
    std::fs::File::open(&part).and_then(|file| file.sync_all()).map_err(failed)?;
    landform_base::file::rename_synced(&part, to).map_err(failed)
}

async fn copy_sqlite(from: &Path, to: &Path) -> Result<(), StoreError> {
    let mut connection = open_to_read(from).await?;
    let path = to.to_str().ok_or_else(|| StoreError::Corrupt("the path of a copy is no text".into()))?;
    sqlx::query("VACUUM INTO $1").bind(path).execute(&mut connection).await?;
    connection.close().await?;
    Ok(())
}

async fn check_sqlite(file: &Path) -> Result<(), StoreError> {
    let mut connection = open_to_read(file).await?;
    let said: String = sqlx::query_scalar("PRAGMA quick_check").fetch_one(&mut connection).await?;
    connection.close().await?;
    if said == "ok" { Ok(()) } else { Err(StoreError::Corrupt(format!("the copy is not whole: {said}"))) }
}

async fn open_to_read(file: &Path) -> Result<sqlx::SqliteConnection, StoreError> {
    let options = SqliteConnectOptions::new().filename(file).read_only(true);
    let opened = sqlx::SqliteConnection::connect_with(&options).await;
    opened.map_err(|e| StoreError::Unavailable(format!("{}: {e}", file.display())))
}

impl Store {
    /// Whether the master key opens what is here. The first one who asks makes something that it opens: a second process
    /// with another key finds out before there are tenants, not after each of them has sealed some.
    pub async fn check_master_key(&self) -> Result<(), StoreError> {
        let sql = "SELECT tenant FROM tenant_keys ORDER BY tenant LIMIT 1";
        if let Some(row) = self.db().read_one(sql, params![]).await? {
            let tenant: TenantName = row.parsed("tenant")?;
            self.tenant_key(&tenant).await?;
        }
        self.inner.keys.installation(self.db()).await.map(drop)
    }

    /// Seals all data keys with another master key, in one transaction. Returns how many of tenants; none if that was done
    /// before and only its end was not seen. No other process may be at work: it would go on with the old key.
    pub async fn change_master_key(&self, new: &MasterKey) -> Result<usize, StoreError> {
        let mut tx = self.db().begin().await?;
        let mut changed = 0;
        for row in tx.all("SELECT tenant, number, sealed FROM tenant_keys {lock}", params![]).await? {
            let (tenant, number): (TenantName, i64) = (row.parsed("tenant")?, row.int("number")?);
            let anew = self.inner.keys.seal_anew(new, Some(&tenant), keys::number(number)?, &row.blob("sealed")?)?;
            let Some(sealed) = anew else { continue };
            let sql = "UPDATE tenant_keys SET sealed = $3 WHERE tenant = $1 AND number = $2";
            changed += tx.execute(sql, params![tenant.as_str(), number, sealed]).await?;
        }
        for row in tx.all("SELECT number, sealed FROM installation_keys {lock}", params![]).await? {
            let number = row.int("number")?;
            let anew = self.inner.keys.seal_anew(new, None, keys::number(number)?, &row.blob("sealed")?)?;
            let Some(sealed) = anew else { continue };
            tx.execute("UPDATE installation_keys SET sealed = $2 WHERE number = $1", params![number, sealed]).await?;
        }
        tx.commit().await?;
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }
}
