//! The state of an ordinary folder: `terraform.tfstate`, its backup, and the lock that OpenTofu respects too.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use landform_engine::{Diagnostic, EngineError};
use rustix::fs::{FlockOperation, fcntl_lock};
use serde_json::json;

use super::Failure;

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
    pub fn lock(path: &Path, operation: &str) -> Result<StateFile, Failure> {
        StateFile::open(path, operation, &Locking::Within(Duration::ZERO))
    }

    pub fn open(path: &Path, operation: &str, locking: &Locking) -> Result<StateFile, Failure> {
        let existed = path.exists();
        let shown = path.display();
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(|error| not_locked(&format!("open {shown}: {}", in_go(&error)), None))?;
        let Locking::Within(wait) = locking else {
            return Ok(StateFile { path: path.to_owned(), file, existed, written: false, locked: false });
        };
        let last = Instant::now() + *wait;
        while fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            if Instant::now() < last {
                std::thread::sleep(Duration::from_millis(200));
                continue;
            }
            let holder = std::fs::read(info_path(path)).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
            return Err(not_locked("resource temporarily unavailable", holder.as_ref()));
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
        self.write_keeping(state, ".backup")
    }

    /// The same for a change that somebody makes by hand: the old state stays, whatever is done next.
    pub fn write_edited(&mut self, state: &[u8]) -> anyhow::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.write_keeping(state, &format!(".{}.backup", now.as_secs()))
    }

    fn write_keeping(&mut self, state: &[u8], suffix: &str) -> anyhow::Result<()> {
        if let Some(old) = self.read()?
            && old != state
        {
            let backup = with_suffix(&self.path, suffix);
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

/// That the state cannot be had, why, and who has it, in OpenTofu's words.
fn not_locked(why: &str, holder: Option<&serde_json::Value>) -> Failure {
    let holder = holder.map(|holder| {
        let said = |name: &str| holder[name].as_str().unwrap_or_default();
        // As Go writes a time.
        let created = match said("Created").strip_suffix('Z') {
            Some(time) => format!("{} +0000 UTC", time.replacen('T', " ", 1)),
            None => said("Created").to_owned(),
        };
        let lines = [
            ("ID", said("ID")),
            ("Path", said("Path")),
            ("Operation", said("Operation")),
            ("Who", said("Who")),
            ("Version", said("Version")),
            ("Created", created.as_str()),
            ("Info", said("Info")),
        ];
        let lines: String =
            lines.iter().map(|(name, value)| format!("  {:<10} {value}\n", format!("{name}:"))).collect();
        format!("\nLock Info:\n{lines}\n")
    });
    let detail = format!(
        "Error message: {why}{}\n\nOpenTofu acquires a state lock to protect the state from being written\nby multiple users at \
         the same time. Please resolve the issue above and try\nagain. For most commands, you can disable locking with the \
         \"-lock=false\"\nflag, but this is not recommended.",
        holder.unwrap_or_default()
    );
    EngineError::Diagnostics(vec![Diagnostic::error("Error acquiring the state lock", detail)]).into()
}

/// An error of the system as Go says it: in small letters, without its number.
fn in_go(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.to_lowercase()
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
            let mut file = StateFile::lock(&path, "apply").ok().unwrap();
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
        drop(StateFile::lock(&path, "plan").ok().unwrap());
        assert!(!path.exists());
    }
}
