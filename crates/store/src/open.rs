use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use landform_base::file::{self, FileLock};
use landform_base::seal::MasterKey;
use landform_base::secret::SecretString;
use landform_domain::RunId;

use crate::access::{self, KeepToken};
use crate::chores;
use crate::db::Db;
use crate::doorbell::{Bell, Doorbell, News, connect_to_postgres};
use crate::error::StoreError;
use crate::keys::Keys;
use crate::metrics::Meter;
use crate::reader::{AnyTemplate, TemplateReader};
use crate::retention::Retention;
use crate::ring::KeyLimits;
use crate::states::{NoEditor, StateEditor};
use crate::statistics;

/// The database's name in the data folder.
pub const SQLITE_FILE: &str = "landform.db";

/// Where a store is.
#[derive(Clone, Debug)]
pub enum Location {
    /// A folder with the database and its lock; made when missing. For one process.
    Sqlite(PathBuf),
    /// The URL holds a password, perhaps.
    Postgres(SecretString),
}

pub struct Options {
    pub location: Location,
    pub master_key: MasterKey,
    /// How long a worker's claim lasts without renewal.
    pub lease: Duration,
    /// How long a plan waits for approval.
    pub approval: Duration,
    /// Reads templates at their push, and inputs before they are accepted.
    pub reader: Arc<dyn TemplateReader>,
    /// Changes states as people ask.
    pub editor: Arc<dyn StateEditor>,
    pub retention: Retention,
    /// When tenants get new data keys.
    pub key_limits: KeyLimits,
    /// Called with the first admin token before that exists in the store.
    pub keep_admin_token: KeepToken,
}

impl Options {
    pub fn new(location: Location, master_key: MasterKey) -> Options {
        Options {
            location,
            master_key,
            lease: Duration::from_secs(30),
            approval: Duration::from_secs(7 * 24 * 3600),
            reader: Arc::new(AnyTemplate),
            editor: Arc::new(NoEditor),
            retention: Retention::default(),
            key_limits: KeyLimits::default(),
            keep_admin_token: Box::new(|_| Ok(())),
        }
    }
}

#[derive(Debug)]
pub struct Opened {
    pub store: Store,
    /// The admin token, at the very first start only: it is kept hashed and cannot be shown again.
    pub admin_token: Option<SecretString>,
}

/// A handle on the store; clones share it.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) db: Db,
    pub(crate) keys: Keys,
    pub(crate) bell: Bell,
    pub(crate) lease: Duration,
    pub(crate) approval: Duration,
    pub(crate) retention: Retention,
    pub(crate) reader: Arc<dyn TemplateReader>,
    pub(crate) meter: Meter,
    pub(crate) editor: Arc<dyn StateEditor>,
    beside: Option<tokio::task::JoinHandle<()>>,
    _lock: Option<FileLock>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            beside.abort();
        }
    }
}

impl Store {
    pub async fn open(options: Options) -> Result<Opened, StoreError> {
        let bell = Bell::new();
        let (db, lock, beside) = match &options.location {
            Location::Sqlite(folder) => {
                let lock = lock_folder(folder)?;
                (Db::open_sqlite(&folder.join(SQLITE_FILE)).await?, Some(lock), None)
            }
            Location::Postgres(url) => {
                let db = Db::open_postgres(url.expose()).await?;
                let Db::Postgres(pool) = &db else { unreachable!("just opened as PostgreSQL") };
                let (pool, bell) = (pool.clone(), bell.clone());
                let beside = tokio::spawn(async move {
                    tokio::join!(connect_to_postgres(pool.clone(), bell), statistics::keep_up(pool));
                });
                (db, None, Some(beside))
            }
        };
        chores::migrate(&db).await?;
        let inner = Inner {
            db,
            keys: Keys::new(options.master_key, options.key_limits),
            bell,
            lease: options.lease,
            approval: options.approval,
            retention: options.retention,
            reader: options.reader,
            meter: Meter::default(),
            editor: options.editor,
            beside,
            _lock: lock,
        };
        let store = Store { inner: Arc::new(inner) };
        let admin_token = access::create_admin(&store, &options.keep_admin_token).await?;
        Ok(Opened { store, admin_token })
    }

    /// Rings when runs may have become due.
    pub fn doorbell(&self) -> Doorbell {
        self.inner.bell.listen_for_work()
    }

    /// Rings when there is news of one run.
    pub fn doorbell_of(&self, run: RunId, news: News) -> Doorbell {
        self.inner.bell.listen_to(run, news)
    }

    /// Somebody in this process follows the run's log right now.
    pub fn is_followed(&self, run: RunId) -> bool {
        self.inner.bell.is_followed(run)
    }

    /// How long a claim lasts without renewal.
    pub fn lease(&self) -> Duration {
        self.inner.lease
    }

    /// Closes all connections; what is in flight ends first.
    pub async fn close(&self) {
        self.inner.db.close().await;
    }

    pub(crate) fn db(&self) -> &Db {
        &self.inner.db
    }
}

fn lock_folder(folder: &Path) -> Result<FileLock, StoreError> {
    let failed = |source| StoreError::Io { context: format!("the data folder {}", folder.display()), source };
    file::private_folder(folder).map_err(failed)?;
    FileLock::try_acquire(&folder.join("landform.lock")).map_err(failed)?.ok_or_else(|| {
        StoreError::InUse(format!(
            "another process works on {}. SQLite is for one process; use PostgreSQL for several",
            folder.display()
        ))
    })
}
