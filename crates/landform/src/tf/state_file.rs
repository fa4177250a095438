//! The state of an ordinary folder: `terraform.tfstate`, its backup, and the lock that OpenTofu respects too.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::fs::{FlockOperation, fcntl_lock};
use serde_json::json;

/// The state file, locked for as long as this lives.
///
/// The lock is the same POSIX lock on the state file itself that OpenTofu takes, so neither works while the other does.
/// Such a lock ends when *any* handle of the file is closed by this process: everything goes through this one handle,
/// and a new state is written in place.
pub struct StateFile {
    path: PathBuf,
    file: File,
    existed: bool,
    written: bool,
    locked: bool,
}

/// Whether a state is locked, and how long is waited for it.
pub enum Locking {
    Within(Duration),
    Without,
}

impl StateFile {
    pub fn lock(path: &Path, operation: &str) -> anyhow::Result<StateFile> {
        StateFile::open(path, operation, &Locking::Within(Duration::ZERO))
    }

    pub fn open(path: &Path, operation: &str, locking: &Locking) -> anyhow::Result<StateFile> {
        let existed = path.exists();
        let shown = path.display();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .with_context(|| format!("cannot open {shown}"))?;
        let Locking::Within(wait) = locking else {
            return Ok(StateFile { path: path.to_owned(), file, existed, written: false, locked: false });
        };
        let last = Instant::now() + *wait;
        while fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            if Instant::now() < last {
                std::thread::sleep(Duration::from_millis(200));
                continue;
            }
            let holder = std::fs::read_to_string(info_path(path)).unwrap_or_default();
            bail!("Error acquiring the state lock: {shown} is in use.\n{holder}");
        }
        let info = json!({
            "ID": uuid::Uuid::new_v4().to_string(),
            "Operation": operation,
            "Info": "",
            "Who": format!("landform[{}]", std::process::id()),
            "Created": landform_engine::native::now(),
            "Version": landform_engine::state::TERRAFORM_VERSION,
            "Path": path,
        });
        std::fs::write(info_path(path), info.to_string()).with_context(|| format!("cannot lock {shown}"))?;
        Ok(StateFile { path: path.to_owned(), file, existed, written: false, locked: true })
    }

    /// The state, if there is one.
    pub fn read(&mut self) -> anyhow::Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_to_end(&mut bytes).with_context(|| format!("cannot read {}", self.path.display()))?;
        Ok(Some(bytes).filter(|bytes| !bytes.trim_ascii().is_empty()))
    }

    /// Writes a new state; the old one, if it differs, becomes the backup.
    pub fn write(&mut self, state: &[u8]) -> anyhow::Result<()> {
        if let Some(old) = self.read()?
            && old != state
        {
            let backup = with_suffix(&self.path, ".backup");
            write_private(&backup, &old).with_context(|| format!("cannot write {}", backup.display()))?;
        }
        let write = |file: &mut File| {
            file.seek(SeekFrom::Start(0))?;
            file.set_len(0)?;
            file.write_all(state)?;
            file.sync_all()
        };
        self.written = true;
        write(&mut self.file).with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Where this folder's journal is while an apply is under way.
    pub fn journal_path(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.path.with_file_name(format!(".{name}.journal"))
    }

    /// Changes in doubt are listed here until an apply has come to its end.
    pub fn doubts_path(&self) -> PathBuf {
        self.journal_path().with_extension("doubts")
    }
}

impl Drop for StateFile {
    fn drop(&mut self) {
        // What cannot be removed is in nobody's way: the lock itself ends with the handle.
        if self.locked {
            let _ = std::fs::remove_file(info_path(&self.path));
        }
        if !self.existed && !self.written {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn info_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    path.with_file_name(format!(".{name}.lock.info"))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_state_keeps_the_old_one_as_backup() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("terraform.tfstate");
        {
            let mut file = StateFile::lock(&path, "apply").unwrap();
            assert!(folder.path().join(".terraform.tfstate.lock.info").exists());
            assert_eq!(file.read().unwrap(), None);
            file.write(b"one").unwrap();
            file.write(b"two").unwrap();
            assert_eq!(file.read().unwrap().unwrap(), b"two");
        }
        assert_eq!(std::fs::read(folder.path().join("terraform.tfstate.backup")).unwrap(), b"one");
        assert!(!folder.path().join(".terraform.tfstate.lock.info").exists());
    }

    #[test]
    fn nothing_is_left_behind_where_nothing_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("terraform.tfstate");
        drop(StateFile::lock(&path, "plan").unwrap());
        assert!(!path.exists());
    }
}
