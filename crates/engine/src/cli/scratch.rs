use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use landform_base::file::private_folder;

use super::folder::Folder;
use super::prepare::{DATA_FOLDER, LOCK_FILE, Prepared};
use super::statefile::STATE;
use super::{failed, prefixed};
use crate::{Diagnostic, EngineError, Workspace};

/// A provider's socket lies below the temporary folder, and a socket's path may have some 100 bytes.
const LONGEST_TEMPORARY: usize = 70;

/// The folder of one run: the CLI's working folder, its home, and the files that it is given.
pub(super) struct Scratch {
    pub root: PathBuf,
    /// A short name for the temporary folder, where its own is too long.
    link: Option<PathBuf>,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(link) = &self.link {
            let _ = std::fs::remove_file(link);
        }
    }
}

pub(super) fn work_below(scratch: &Path) -> PathBuf {
    scratch.join("work")
}

impl Scratch {
    pub fn make(root: &Path) -> Result<Scratch, EngineError> {
        let root = std::path::absolute(root).map_err(|e| failed(root, e))?;
        let mut scratch = Scratch { root, link: None };
        let temporary = scratch.temporary();
        for folder in [&scratch.root, &scratch.home(), &temporary] {
            private_folder(folder).map_err(|e| failed(folder, e))?;
        }
        if temporary.as_os_str().len() > LONGEST_TEMPORARY {
            scratch.link = Some(short_link(&temporary).map_err(|e| failed(&temporary, e))?);
        }
        Ok(scratch)
    }

    /// The same path for plan and apply: a configuration can read it.
    pub fn work(&self) -> PathBuf {
        work_below(&self.root)
    }

    pub fn plan(&self) -> PathBuf {
        self.root.join("plan")
    }

    fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }

    fn variables(&self) -> PathBuf {
        self.root.join("inputs.tfvars.json")
    }

    /// What plan and apply have in common. The state lies in a folder of this run alone: there is nothing to lock.
    pub fn arguments(&self, command: &str) -> Vec<OsString> {
        let mut args: Vec<OsString> = [command, "-lock=false"].map(Into::into).to_vec();
        args.push(prefixed("-var-file=", &self.variables()));
        args
    }

    /// Makes the working folder anew. A state that an earlier apply left there has been salvaged by now: the state
    /// that is written here was made from it.
    pub fn fill(&self, folder: &Folder, prepared: &Prepared, workspace: &Workspace) -> Result<(), EngineError> {
        let work = self.work();
        match std::fs::remove_dir_all(&work) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(failed(&work, e)),
            _ => private_folder(&work).map_err(|e| failed(&work, e))?,
        }
        folder.write(&work)?;
        let data = work.join(DATA_FOLDER);
        std::os::unix::fs::symlink(prepared.folder.join(DATA_FOLDER), &data).map_err(|e| failed(&data, e))?;
        let lock = prepared.lock_for_run();
        if !lock.is_empty() {
            write(&work.join(LOCK_FILE), &lock)?;
        }
        if let Some(state) = &workspace.state {
            write(&work.join(STATE), state)?;
        }
        // In a file of this kind every string is literal, whatever it looks like.
        let values: BTreeMap<_, _> = workspace.variables.iter().map(|(name, v)| (name, &v.value)).collect();
        write(&self.variables(), &serde_json::to_vec(&values).expect("JSON values are plain data"))
    }

    /// The whole environment of the CLI and, through it, of its providers.
    pub fn environment(
        &self,
        configuration: &Path,
        given: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<OsString, OsString>, EngineError> {
        if let Some(name) = given.keys().find(|name| name.starts_with("TF_")) {
            return Err(EngineError::Diagnostics(vec![Diagnostic::error(
                format!("The environment variable {name} cannot be set"),
                "Variables whose name begins with TF_ change what the CLI does. Use variables of the template instead.",
            )]));
        }
        let mut environment: BTreeMap<OsString, OsString> =
            given.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let temporary = self.link.clone().unwrap_or_else(|| self.temporary());
        environment.extend([
            ("PATH".into(), std::env::var_os("PATH").unwrap_or_default()),
            ("HOME".into(), self.home().into_os_string()),
            ("TMPDIR".into(), temporary.into_os_string()),
            ("TF_CLI_CONFIG_FILE".into(), configuration.as_os_str().to_owned()),
            ("TF_IN_AUTOMATION".into(), "1".into()),
            ("CHECKPOINT_DISABLE".into(), "1".into()),
        ]);
        Ok(environment)
    }
}

/// A link with a short path, in a folder below the system's temporary one that nobody else can write to. It has the
/// same name for each attempt of a run, so what a crash leaves behind is used again.
fn short_link(to: &Path) -> std::io::Result<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let user = rustix::process::geteuid().as_raw();
    let folder = std::env::temp_dir().join(format!("landform-{user}"));
    private_folder(&folder)?;
    let found = std::fs::symlink_metadata(&folder)?;
    if !found.is_dir() || found.uid() != user {
        return Err(std::io::Error::other(format!("{} belongs to somebody else", folder.display())));
    }
    let link = folder.join(&super::sha256(to.as_os_str().as_encoded_bytes())[..16]);
    match std::fs::remove_file(&link) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
        _ => std::os::unix::fs::symlink(to, &link)?,
    }
    Ok(link)
}

/// Writes a file of mode 0600. It is not synced: after a power cut the run starts again from the store.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), EngineError> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path).and_then(|mut file| file.write_all(bytes)).map_err(|e| failed(path, e))
}
