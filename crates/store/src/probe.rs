//! A look at a store from outside, without opening it: nothing is made, locked or brought up to date.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use landform_base::seal::MasterKey;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, Row};

use crate::error::StoreError;
use crate::keys;
use crate::open::Location;

/// What a look has found.
#[derive(Clone, Debug)]
pub struct Probe {
    pub description: String,
    /// How far this machine's clock is ahead of the database's, where that has one of its own.
    pub clock_skew_millis: Option<i64>,
    /// A tenant and its first key, sealed.
    first_key: Option<(String, Vec<u8>)>,
}

impl Probe {
    /// Whether this key opens what is in the store; an empty one is opened by any.
    pub fn opened_by(&self, key: &MasterKey) -> bool {
        let Some((tenant, sealed)) = &self.first_key else { return true };
        tenant.parse().is_ok_and(|tenant| keys::opens(key, &tenant, sealed).is_ok())
    }
}

const FIRST_KEY: &str = "SELECT tenant, sealed FROM tenant_keys WHERE number = 1 ORDER BY tenant LIMIT 1";

const PATIENCE: Duration = Duration::from_secs(10);

pub async fn probe(location: &Location) -> Result<Probe, StoreError> {
    match location {
        Location::Sqlite(folder) => {
            let path = folder.join(crate::open::SQLITE_FILE);
            let size = std::fs::metadata(&path).map_err(|e| away(format!("{}: {e}", path.display())))?.len();
            // Without its log nobody uses it, and to look at it as at any other file makes none: they would be of whoever
            // looks, and the server could not use them.
            let at_rest = !folder.join(format!("{}-wal", crate::open::SQLITE_FILE)).exists();
            let options = SqliteConnectOptions::new().filename(&path).read_only(true).immutable(at_rest);
            let options = options.busy_timeout(PATIENCE);
            let look = async {
                let mut connection = sqlx::SqliteConnection::connect_with(&options).await?;
                let key = sqlx::query_as(FIRST_KEY).fetch_optional(&mut connection).await?;
                connection.close().await?;
                Ok::<_, sqlx::Error>(key)
            };
            let first_key = look.await.map_err(|e| away(e.to_string()))?;
            Ok(Probe { description: format!("SQLite, {} MB", size >> 20), clock_skew_millis: None, first_key })
        }
        Location::Postgres(url) => {
            let look = async {
                let mut connection = sqlx::PgConnection::connect(url.expose()).await?;
                let sql = "SELECT current_setting('server_version') AS version,
                    (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now";
                let row = sqlx::query(sql).fetch_one(&mut connection).await?;
                let found: (String, i64) = (row.try_get("version")?, row.try_get("now")?);
                let made: Option<String> =
                    sqlx::query_scalar("SELECT to_regclass('tenant_keys')::text").fetch_one(&mut connection).await?;
                let key = match made {
                    Some(_) => sqlx::query_as(FIRST_KEY).fetch_optional(&mut connection).await?,
                    None => None,
                };
                connection.close().await?;
                Ok::<_, sqlx::Error>((found, key))
            };
            let looked = tokio::time::timeout(PATIENCE, look).await.map_err(|_| away("it does not answer".into()))?;
            let ((version, database), first_key) = looked.map_err(|e| away(e.to_string()))?;
            let here = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as i64;
            let description = format!("PostgreSQL {version}");
            Ok(Probe { description, clock_skew_millis: Some(here - database), first_key })
        }
    }
}

fn away(why: String) -> StoreError {
    StoreError::Unavailable(why)
}
