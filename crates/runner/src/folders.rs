//! The worker's folders: templates by digest, shared and read-only; and a scratch folder per run.

use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use landform_base::file;
use landform_domain::RunId;
use landform_domain::template::Files;

#[derive(Clone, Debug)]
pub(crate) struct Folders {
    root: PathBuf,
    /// Held while a scratch folder is taken or removed. The next attempt of a run may begin as soon as the store knows the
    /// end of the last one, which is before that one has cleaned up.
    handover: Arc<Mutex<()>>,
}

/// What no run has needed for so long is removed at the next start, and unpacked again if one needs it after all.
const KEPT_UNUSED: Duration = Duration::from_secs(30 * 24 * 3600);

impl Folders {
    /// The folders belong to one worker, and nothing of it is under way yet.
    pub(crate) fn make(root: &Path) -> io::Result<Folders> {
        for name in ["", "templates", "runs"] {
            file::private_folder(&root.join(name))?;
        }
        let removed = file::remove_unused(&root.join("templates"), KEPT_UNUSED)?;
        if removed > 0 {
            tracing::info!(removed, "unpacked templates that no run has needed for long were removed");
        }
        Ok(Folders { root: root.to_owned(), handover: Arc::default() })
    }

    /// The folder with these files. It is complete when it exists: it is filled elsewhere and renamed.
    pub(crate) fn template(&self, files: &Files) -> io::Result<PathBuf> {
        let target = self.root.join("templates").join(files.digest().as_str());
        if target.exists() {
            file::mark_used(&target)?;
            return Ok(target);
        }
        let filling = tempfile::Builder::new().prefix(".filling-").tempdir_in(self.root.join("templates"))?;
        // Synced, because after a power cut a folder that exists counts as complete.
        unpack(files, filling.path(), |file| file.sync_all())?;
        match std::fs::rename(filling.path(), &target) {
            // Another run of the same template was quicker; its folder has the same content.
            Err(_) if target.exists() => Ok(target),
            Err(error) => Err(error),
            Ok(()) => {
                let _ = filling.keep();
                Ok(target)
            }
        }
    }

    /// Stays the same for all attempts of a run, so that what a dead one left can be found. There is none before an attempt
    /// needs it ([`Folders::mark`]).
    pub(crate) fn scratch(&self, run: RunId) -> PathBuf {
        self.root.join("runs").join(run.to_string())
    }

    /// An attempt begins to use its run's scratch folder.
    pub(crate) fn mark(&self, run: RunId, epoch: i64) -> io::Result<()> {
        let scratch = self.scratch(run);
        let _turn = self.turn();
        file::private_folder(&scratch)?;
        std::fs::write(scratch.join(MARK), epoch.to_string())
    }

    /// What a run had on disk may hold secrets, so it goes as soon as nothing needs it. What a later attempt than this one
    /// has begun to use stays.
    pub(crate) fn remove_scratch(&self, run: RunId, epoch: i64) {
        let scratch = self.scratch(run);
        let _turn = self.turn();
        if left_by(&scratch).is_some_and(|later| later > epoch) {
            return;
        }
        if let Err(error) = std::fs::remove_dir_all(scratch)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%run, %error, "a run's scratch folder stays behind");
        }
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.handover.lock().expect("no panic while held")
    }

    /// The runs that have a scratch folder.
    pub(crate) fn leftovers(&self) -> io::Result<Vec<RunId>> {
        let mut runs = Vec::new();
        for entry in std::fs::read_dir(self.root.join("runs"))? {
            if let Some(run) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) {
                runs.push(run);
            }
        }
        Ok(runs)
    }
}

/// The file in a run's scratch folder that says whose it is.
const MARK: &str = "attempt";

/// The attempt that has used it last.
pub(crate) fn left_by(scratch: &Path) -> Option<i64> {
    std::fs::read_to_string(scratch.join(MARK)).ok()?.parse().ok()
}

/// Writes the files below a folder, read-only; `after` sees each of them.
pub(crate) fn unpack(files: &Files, folder: &Path, after: impl Fn(&std::fs::File) -> io::Result<()>) -> io::Result<()> {
    for (path, content) in files.iter() {
        let path = folder.join(path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut file = std::fs::File::create(&path)?;
        file.write_all(content)?;
        file.set_permissions(std::fs::Permissions::from_mode(0o400))?;
        after(&file)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_that_nobody_needs_go_at_a_start() {
        let root = tempfile::tempdir().unwrap();
        let folders = Folders::make(root.path()).unwrap();
        let unpack =
            |content: &[u8]| folders.template(&Files::new([("main.tf".into(), content.to_vec())]).unwrap()).unwrap();
        let (old, used) = (unpack(b"old"), unpack(b"used"));
        let long_ago = std::time::SystemTime::now() - 2 * KEPT_UNUSED;
        for folder in [&old, &used] {
            std::fs::File::open(folder).unwrap().set_modified(long_ago).unwrap();
        }
        unpack(b"used");
        Folders::make(root.path()).unwrap();
        assert!(!old.exists() && used.exists());
    }

    /// The next attempt begins while the last one cleans up behind itself.
    #[test]
    fn an_attempt_never_removes_the_folder_of_the_next() {
        let root = tempfile::tempdir().unwrap();
        let folders = Folders::make(root.path()).unwrap();
        let run = RunId::from_parts(1_000, &[1; 10]);
        for epoch in 1..500 {
            folders.mark(run, epoch).unwrap();
            std::thread::scope(|both| {
                both.spawn(|| folders.remove_scratch(run, epoch));
                folders.mark(run, epoch + 1).expect("the folder is not taken away meanwhile");
            });
            assert_eq!(left_by(&folders.scratch(run)), Some(epoch + 1));
        }
        folders.remove_scratch(run, 500);
        assert!(!folders.scratch(run).exists());
    }

    #[test]
    fn a_template_is_unpacked_once() {
        let root = tempfile::tempdir().unwrap();
        let folders = Folders::make(root.path()).unwrap();
        let files =
            Files::new([("main.tf".into(), b"x".to_vec()), ("modules/a/main.tf".into(), b"y".to_vec())]).unwrap();
        let folder = folders.template(&files).unwrap();
        assert_eq!(std::fs::read(folder.join("modules/a/main.tf")).unwrap(), b"y");
        assert_eq!(folders.template(&files).unwrap(), folder);
        assert_eq!(std::fs::read_dir(root.path().join("templates")).unwrap().count(), 1);
    }
}
