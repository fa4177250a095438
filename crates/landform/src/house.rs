//! What commands share that work on a data folder and its store without a server.

use std::path::{Path, PathBuf};

use landform_base::file::{self, FileLock};
use landform_base::seal::MasterKey;
use landform_base::secret::SecretString;
use landform_store::{Location, Options, Store, StoreError};

use crate::connection::Connection;
use crate::failure::Failure;

pub const MASTER_KEY: &str = "master.key";
/// Where a new master key is until everything is sealed with it.
pub const NEXT_MASTER_KEY: &str = "master.key.next";

/// The data folder, held so that no server begins on it meanwhile.
pub struct House {
    pub data: PathBuf,
    _lock: FileLock,
}

impl House {
    pub fn enter(connection: &Connection) -> Result<House, Failure> {
        let data = connection.data_folder()?;
        let in_data = |e: std::io::Error| {
            Failure::broken(format!("the data folder {}: {e}", data.display()), "Name another one with --data.")
        };
        file::private_folder(&data).map_err(in_data)?;
        let lock = FileLock::try_acquire(&data.join("serve.lock")).map_err(in_data)?;
        let lock = lock.ok_or_else(|| {
            Failure::broken(
                format!("another server works on {}", data.display()),
                "Stop it, or name another folder with --data.",
            )
        })?;
        Ok(House { data, _lock: lock })
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.data.join(name)
    }

    pub async fn open_store(&self, database: Option<&str>, key: MasterKey) -> Result<Store, Failure> {
        let opened = Store::open(Options::new(location(database, &self.data)?, key)).await;
        opened.map(|opened| opened.store).map_err(not_opened)
    }
}

/// Where the store is: SQLite in the data folder unless a PostgreSQL is named.
pub fn location(database: Option<&str>, data: &Path) -> Result<Location, Failure> {
    let Some(url) = database else { return Ok(Location::Sqlite(data.to_owned())) };
    // Of what is no such address nothing is repeated but its first word: the rest may be a password.
    let detail = match url.split_once("://") {
        Some(("postgres" | "postgresql", _)) => return Ok(Location::Postgres(SecretString::from(url))),
        Some((kind, _)) if !kind.is_empty() && kind.chars().all(|c| c.is_ascii_alphanumeric()) => {
            format!("--database names no PostgreSQL: its address begins with `{kind}://`")
        }
        _ => "--database names no PostgreSQL: it is no address".to_owned(),
    };
    Err(Failure::usage(detail, WHICH_DATABASE))
}

pub const WHICH_DATABASE: &str = "Give postgres://USER:PASSWORD@HOST:PORT/DATABASE, or leave --database (LANDFORM_DATABASE) \
    out: then it is SQLite in the data folder.";

/// From the environment, or from the data folder, where it is made when there is none.
pub fn master_key(data: &Path) -> Result<MasterKey, Failure> {
    let next = data.join(NEXT_MASTER_KEY);
    if next.exists() {
        return Err(Failure::broken(
            format!("a change of the master key was interrupted: there is {}", next.display()),
            "Finish it with `landform key rotate`.",
        ));
    }
    current_master_key(data)
}

/// The same, also in the middle of a change.
pub fn current_master_key(data: &Path) -> Result<MasterKey, Failure> {
    let key = match std::env::var("LANDFORM_MASTER_KEY") {
        Ok(text) => MasterKey::from_base64(&SecretString::from(text)),
        Err(_) => {
            refuse_a_new_key_for_an_old_store(data)?;
            MasterKey::load_or_create(&data.join(MASTER_KEY))
        }
    };
    key.map_err(|e| {
        let hint =
            "Is --data (or LANDFORM_DATA) the server's folder? The key's file belongs to its user, with mode 600.";
        Failure::broken(e.to_string(), hint)
    })
}

/// A new key would open nothing in it, and would be taken for the right one from then on: by backups, for instance.
fn refuse_a_new_key_for_an_old_store(data: &Path) -> Result<(), Failure> {
    let (store, key) = (data.join(landform_store::SQLITE_FILE), data.join(MASTER_KEY));
    if !store.exists() || key.exists() {
        return Ok(());
    }
    Err(Failure::broken(
        format!("there is a store, {}, and no master key beside it", store.display()),
        "Bring back the `master.key` that the store was made with, or put it into LANDFORM_MASTER_KEY.",
    ))
}

pub fn not_opened(error: StoreError) -> Failure {
    match error {
        StoreError::InUse(_) => Failure::broken(error.to_string(), "Stop the server first."),
        StoreError::Unavailable(_) => Failure::broken(
            error.to_string(),
            "Is the database there? `landform doctor`, with the same --database, looks at the whole installation.",
        ),
        error => broken(error.to_string()),
    }
}

pub fn broken(detail: String) -> Failure {
    Failure::broken(detail, "`landform doctor` looks at the whole installation.")
}
