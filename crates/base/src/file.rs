//! Files that only this user may read, and locks that end with the process.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Makes a folder (and those above it) with mode 0700; narrows an existing one.
pub fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
}

/// Says that a folder of a cache is used now, for [`remove_unused`].
pub fn mark_used(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.set_modified(SystemTime::now())
}

/// Removes the folders of a cache that were not used for so long. Only while nobody uses the cache: at a process's start.
pub fn remove_unused(cache: &Path, for_longer_than: Duration) -> io::Result<usize> {
    let mut removed = 0;
    for entry in fs::read_dir(cache)? {
        let entry = entry?;
        let about = entry.metadata()?;
        let age = about.modified()?.elapsed().unwrap_or_default();
        if about.is_dir() && age > for_longer_than {
            fs::remove_dir_all(entry.path())?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Writes a file of mode 0600 so that after a crash the old content or the new one is there, never half of one.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = temporary_beside(path);
    write_synced(&temporary, bytes)?;
    fs::rename(&temporary, path)?;
    sync_folder_of(path)
}

/// Like [`write_private`], for a file that must not exist yet. Of two processes at the same moment one wins, and the
/// other gets `AlreadyExists`; neither ever sees a half-written file.
pub fn create_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = temporary_beside(path);
    write_synced(&temporary, bytes)?;
    let linked = fs::hard_link(&temporary, path);
    fs::remove_file(&temporary)?;
    linked?;
    sync_folder_of(path)
}

/// Gives a file that is on disk its final name; the name is on disk when it returns.
pub fn rename_synced(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_folder_of(to)
}

fn temporary_beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{:016x}.new", rand::random::<u64>()));
    path.with_file_name(name)
}

/// What cannot be written whole is taken away again: half a file would only fill a full disk.
fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written
}

fn sync_folder_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

/// An exclusive lock on a file. It ends when the value is dropped or the process dies, whichever is first.
#[derive(Debug)]
pub struct FileLock {
    _file: File,
}

impl FileLock {
    /// `Ok(None)` when someone else holds it.
    pub fn try_acquire(path: &Path) -> io::Result<Option<FileLock>> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(FileLock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_can_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        create_private(&path, b"one").unwrap();
        assert_eq!(create_private(&path, b"two").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"one");
        write_private(&path, b"three").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"three");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file stays behind");
    }

    #[test]
    fn a_lock_has_one_holder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = FileLock::try_acquire(&path).unwrap().expect("free");
        assert!(FileLock::try_acquire(&path).unwrap().is_none());
        drop(held);
        // A child that another test starts at this moment has the file open, too, until it becomes another program.
        let free = || {
            (0..500).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(10));
                FileLock::try_acquire(&path).unwrap().is_some()
            })
        };
        assert!(free());
    }
}
