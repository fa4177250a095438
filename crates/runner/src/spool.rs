//! What providers have done and the store could not be told: kept on disk, sealed, until it is back.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use landform_base::file;
use landform_store::{Brought, SpooledSettlement, Store, StoreError};

/// A folder of the worker. It outlives the process, so what a killed worker had learnt is brought by its next life.
#[derive(Clone, Debug)]
pub(crate) struct Spool {
    folder: PathBuf,
    /// Spares a look at the folder before every claim.
    something: Arc<AtomicBool>,
}

impl Spool {
    pub(crate) fn open(folder: &Path) -> io::Result<Spool> {
        file::private_folder(folder)?;
        Ok(Spool { folder: folder.to_owned(), something: Arc::new(AtomicBool::new(true)) })
    }

    /// On disk when it returns.
    pub(crate) fn keep(&self, settlement: &SpooledSettlement) -> io::Result<()> {
        let bytes = serde_json::to_vec(settlement).map_err(io::Error::other)?;
        file::write_private(&self.path(settlement), &bytes)?;
        self.something.store(true, Ordering::SeqCst);
        Ok(())
    }

    pub(crate) fn drop_entry(&self, settlement: &SpooledSettlement) {
        if let Err(error) = std::fs::remove_file(self.path(settlement))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(run = %settlement.run, %error, "a result that was told stays in the spool");
        }
    }

    /// Tells the store what is kept here. What it cannot take yet stays.
    pub(crate) async fn bring(&self, store: &Store) -> Result<(), StoreError> {
        if !self.something.swap(false, Ordering::SeqCst) {
            return Ok(());
        }
        let brought = self.bring_all(store).await;
        if !matches!(brought, Ok(true)) {
            self.something.store(true, Ordering::SeqCst);
        }
        brought.map(drop)
    }

    /// Whether nothing is left.
    async fn bring_all(&self, store: &Store) -> Result<bool, StoreError> {
        let mut all = true;
        for path in self.entries() {
            let read = std::fs::read(&path).map_err(|error| error.to_string());
            let entry = read.and_then(|bytes| {
                serde_json::from_slice::<SpooledSettlement>(&bytes).map_err(|error| error.to_string())
            });
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    tracing::error!(path = %path.display(), error, "a kept result cannot be read");
                    continue;
                }
            };
            match store.settle_spooled(&entry).await? {
                Brought::NotYet => all = false,
                how => {
                    tracing::info!(run = %entry.run, intent = entry.intent, ?how, "brought a kept result");
                    self.drop_entry(&entry);
                }
            }
        }
        Ok(all)
    }

    fn entries(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        // In the order of the calls.
        paths.sort();
        paths
    }

    fn path(&self, settlement: &SpooledSettlement) -> PathBuf {
        self.folder.join(format!("{}-{:020}.json", settlement.run, settlement.intent))
    }
}
