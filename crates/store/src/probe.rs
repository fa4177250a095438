//! A look at a store from outside, without opening it: nothing is made, locked or brought up to date.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sqlx::{Connection, Row};

use crate::error::StoreError;
use crate::open::Location;

/// What a look has found.
#[derive(Clone, Debug)]
pub struct Probe {
    pub description: String,
    /// How far this machine's clock is ahead of the database's, where that has one of its own.
    pub clock_skew_millis: Option<i64>,
}

const PATIENCE: Duration = Duration::from_secs(10);

pub async fn probe(location: &Location) -> Result<Probe, StoreError> {
    match location {
        Location::Sqlite(folder) => {
            let path = folder.join(crate::open::SQLITE_FILE);
            let size = std::fs::metadata(&path).map_err(|e| away(format!("{}: {e}", path.display())))?.len();
            Ok(Probe { description: format!("SQLite, {} MB", size >> 20), clock_skew_millis: None })
        }
        Location::Postgres(url) => {
            let look = async {
                let mut connection = sqlx::PgConnection::connect(url.expose()).await?;
                let sql = "SELECT current_setting('server_version') AS version,
                    (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now";
                let row = sqlx::query(sql).fetch_one(&mut connection).await?;
                let found: (String, i64) = (row.try_get("version")?, row.try_get("now")?);
                connection.close().await?;
                Ok::<_, sqlx::Error>(found)
            };
            let looked = tokio::time::timeout(PATIENCE, look).await.map_err(|_| away("it does not answer".into()))?;
            let (version, database) = looked.map_err(|e| away(e.to_string()))?;
            let here = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as i64;
            Ok(Probe { description: format!("PostgreSQL {version}"), clock_skew_millis: Some(here - database) })
        }
    }
}

fn away(why: String) -> StoreError {
    StoreError::Unavailable(why)
}
