//! What providers have done and the store could not be told: kept on disk, sealed, until it is back.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use landform_base::file;
use landform_store::{Brought, SpooledSettlement, Store, StoreError};

/// Room that is taken on the disk in advance, in files of one size: the disk that is full for the database is mostly this
/// one, and what is already there can be written over.
const SET_ASIDE: usize = 16;
const SET_ASIDE_SIZE: usize = 64 << 10;

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
        let spool = Spool { folder: folder.to_owned(), something: Arc::new(AtomicBool::new(true)) };
        // Of a worker that died while it wrote one over.
        for path in spool.files("taken") {
            fs::remove_file(path)?;
        }
        spool.set_room_aside();
        Ok(spool)
    }

    /// As much as there is room for.
    fn set_room_aside(&self) {
        for number in 0..SET_ASIDE {
            let path = self.folder.join(format!("{number:02}.aside"));
            let made = match path.exists() {
                true => Ok(()),
                // The room is what matters, not that zeros survive a power cut.
                false => fs::write(&path, [0; SET_ASIDE_SIZE]).inspect_err(|_| drop(fs::remove_file(&path))),
            };
            if let Err(error) = made {
                tracing::warn!(%error, "no room could be set aside for results that the store cannot take");
                break;
            }
        }
    }

    /// On disk when it returns.
    pub(crate) fn keep(&self, settlement: &SpooledSettlement) -> io::Result<()> {
        let bytes = serde_json::to_vec(settlement).map_err(io::Error::other)?;
        let path = self.path(settlement);
        match file::write_private(&path, &bytes) {
            Err(error) if is_full(&error) => self.keep_in_room_set_aside(&path, &bytes)?,
            written => written?,
        }
        self.something.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// A file that is written over needs no room, and keeps its length: what it gave back would be anybody's. Where a file system
    /// never writes in place, it leaves room when it is gone.
    fn keep_in_room_set_aside(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let taken = path.with_extension("taken");
        // Others may look for one at the same moment: whoever renames it has it.
        if !self.files("aside").into_iter().any(|aside| fs::rename(aside, &taken).is_ok()) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let write_over = || {
            let mut file = OpenOptions::new().write(true).open(&taken)?;
            file.write_all(bytes)?;
            // Behind JSON spaces mean nothing.
            file.write_all(&vec![b' '; SET_ASIDE_SIZE.saturating_sub(bytes.len())])?;
            file.sync_all()?;
            file::rename_synced(&taken, path)
        };
        write_over().or_else(|_| {
            fs::remove_file(&taken)?;
            file::write_private(path, bytes)
        })
    }

    pub(crate) fn drop_entry(&self, settlement: &SpooledSettlement) {
        if let Err(error) = fs::remove_file(self.path(settlement))
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
        match brought {
            Ok(true) => self.set_room_aside(),
            _ => self.something.store(true, Ordering::SeqCst),
        }
        brought.map(drop)
    }

    /// Whether nothing is left.
    async fn bring_all(&self, store: &Store) -> Result<bool, StoreError> {
        let mut all = true;
        // In the order of the calls.
        for path in self.files("json") {
            let read = fs::read(&path).map_err(|error| error.to_string());
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

    fn files(&self, extension: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|of| of == extension));
        paths.sort();
        paths
    }

    fn path(&self, settlement: &SpooledSettlement) -> PathBuf {
        self.folder.join(format!("{}-{:020}.json", settlement.run, settlement.intent))
    }
}

fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
