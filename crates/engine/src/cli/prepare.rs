use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hcl_edit::structure::{Body, Structure};
use serde_json::json;
use tokio::sync::Mutex;

use super::folder::Folder;
use super::messages::Heard;
use super::process::Invocation;
use super::statefile::STATE;
use super::{failed, sha256};
use crate::{Diagnostic, EngineError, Stop};

pub(super) const LOCK_FILE: &str = ".terraform.lock.hcl";
pub(super) const DATA_FOLDER: &str = ".terraform";

/// Folders in which `init` has been run, one for each content of a template folder. They are made beside their place
/// and moved there whole, so whoever finds one can use it; nobody writes to one afterwards.
pub(super) struct PreparedFolders {
    cache: PathBuf,
    /// Runs of one template wait for the first one's `init` instead of doing the same. A few locks, shared by digest:
    /// templates that meet in one of them only wait for each other.
    making: [Mutex<()>; 16],
}

pub(super) struct Prepared {
    pub folder: PathBuf,
    /// The lock file pins the hashes of the providers; empty if the configuration needs none.
    lock: Vec<u8>,
    /// The providers are the very files that `init` has compared with the lock file. Where one is gone from the mirror, the
    /// CLI complains.
    as_compared: bool,
    /// All its providers together are small programs.
    pub is_small: bool,
}

/// Most providers are below this; those of the large clouds are far above it, and with them memory is what is scarce.
const SMALL: u64 = 100 << 20;

impl Prepared {
    pub fn lock_digest(&self) -> String {
        sha256(&self.lock)
    }

    /// The lock file for the folder of a run; empty if the configuration needs none. Each process of the CLI reads every
    /// provider whole whose hashes it finds there, tens of milliseconds for a small one, to compare what `init` has
    /// compared already.
    pub fn lock_for_run(&self) -> Vec<u8> {
        if self.as_compared { without_hashes(&self.lock) } else { self.lock.clone() }
    }

    fn open(folder: PathBuf) -> Result<Option<Prepared>, EngineError> {
        if !folder.join(DATA_FOLDER).exists() {
            return Ok(None);
        }
        landform_base::file::mark_used(&folder).map_err(|e| failed(&folder, e))?;
        let path = folder.join(LOCK_FILE);
        let lock = match std::fs::read(&path) {
            Ok(lock) => lock,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(e) => return Err(failed(&path, e)),
        };
        let providers = providers_of(&folder).ok();
        let is_small = providers.iter().any(|files| files.iter().map(|(_, found)| found.len()).sum::<u64>() < SMALL);
        let compared = std::fs::read(folder.join(COMPARED)).ok();
        let as_compared = compared.is_some() && compared == providers.as_ref().map(identity);
        Ok(Some(Prepared { folder, lock, as_compared, is_small }))
    }

    fn providers(&self) -> BTreeSet<String> {
        let body = std::str::from_utf8(&self.lock).ok().and_then(|text| text.parse::<Body>().ok()).unwrap_or_default();
        let blocks = body.iter().filter_map(Structure::as_block).filter(|b| b.ident.as_str() == "provider");
        blocks.filter_map(|b| b.labels.first()).map(|label| label.as_str().to_owned()).collect()
    }
}

/// Which files `init` has compared with the lock file, by their identity.
const COMPARED: &str = "compared";

type Files = Vec<(PathBuf, Metadata)>;

/// By their paths below the prepared folder, which has another name while it is being made.
fn providers_of(prepared: &Path) -> Result<Files, EngineError> {
    let folder = prepared.join(DATA_FOLDER).join("providers");
    let mut files = Files::new();
    files_below(&folder, &mut files).map_err(|e| failed(&folder, e))?;
    files.sort_by(|(one, _), (other, _)| one.cmp(other));
    let below = |path: PathBuf| path.strip_prefix(prepared).map(Path::to_owned).unwrap_or(path);
    Ok(files.into_iter().map(|(path, found)| (below(path), found)).collect())
}

/// Behind links too: that is how `init` puts providers of a mirror there.
fn files_below(folder: &Path, files: &mut Files) -> std::io::Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        let found = std::fs::metadata(&path)?;
        if found.is_dir() {
            files_below(&path, files)?;
        } else {
            files.push((path, found));
        }
    }
    Ok(())
}

/// Changes with any change of a file: nobody can set the time of the last one.
fn identity(files: &Files) -> Vec<u8> {
    let line = |(path, found): &(PathBuf, Metadata)| {
        let changed = (found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec());
        format!("{path:?} {} {} {changed:?}\n", found.ino(), found.len())
    };
    files.iter().map(line).collect::<String>().into_bytes()
}

fn without_hashes(lock: &[u8]) -> Vec<u8> {
    let Some(mut body) = std::str::from_utf8(lock).ok().and_then(|text| text.parse::<Body>().ok()) else {
        return lock.to_vec();
    };
    for provider in body.get_blocks_mut("provider") {
        provider.body.remove_attribute("hashes");
    }
    body.to_string().into_bytes()
}

impl PreparedFolders {
    /// `cache` belongs to one process at a time: what an earlier one did not finish, or nobody has used for long, is
    /// removed.
    pub fn open(cache: &Path) -> Result<PreparedFolders, EngineError> {
        landform_base::file::private_folder(cache).map_err(|e| failed(cache, e))?;
        for entry in std::fs::read_dir(cache).map_err(|e| failed(cache, e))?.flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(UNFINISHED.as_bytes()) {
                std::fs::remove_dir_all(entry.path()).map_err(|e| failed(&entry.path(), e))?;
            }
        }
        landform_base::file::remove_unused(cache, KEPT_UNUSED).map_err(|e| failed(cache, e))?;
        Ok(PreparedFolders { cache: cache.to_owned(), making: Default::default() })
    }

    /// The prepared folder for this content. A state can hold objects of providers that the configuration no longer
    /// names; where that is so, a folder of its own is prepared with them.
    pub async fn get<'a>(
        &self,
        context: &str,
        folder: &Folder,
        in_state: &BTreeSet<String>,
        invocation: impl Fn(&Path) -> Invocation<'a>,
        stop: &Stop,
    ) -> Result<Prepared, EngineError> {
        let key = sha256(format!("{context}\n{}", folder.digest).as_bytes());
        let usual = self.get_or_make(&key, folder, &BTreeSet::new(), &invocation, stop).await?;
        let more: BTreeSet<String> = in_state.difference(&usual.providers()).cloned().collect();
        if more.is_empty() {
            return Ok(usual);
        }
        let key = sha256(format!("{key}\n{}", Vec::from_iter(more.iter().map(String::as_str)).join("\n")).as_bytes());
        self.get_or_make(&key, folder, &more, &invocation, stop).await
    }

    async fn get_or_make<'a>(
        &self,
        key: &str,
        folder: &Folder,
        more_providers: &BTreeSet<String>,
        invocation: &impl Fn(&Path) -> Invocation<'a>,
        stop: &Stop,
    ) -> Result<Prepared, EngineError> {
        let place = self.cache.join(key);
        if let Some(ready) = Prepared::open(place.clone())?.filter(|ready| ready.as_compared) {
            return Ok(ready);
        }
        let shared_lock = key.bytes().next().map_or(0, |byte| byte as usize % self.making.len());
        let _making = self.making[shared_lock].lock().await;
        let there = Prepared::open(place.clone())?;
        if let Some(ready) = there {
            return match ready.as_compared {
                true => Ok(ready),
                false => self.compare_again(ready, folder, more_providers, invocation, stop).await,
            };
        }
        let new = self.lay_out(folder, more_providers)?;
        init(invocation(new.path()), new.path(), stop).await?;
        let compared = new.path().join(COMPARED);
        std::fs::write(&compared, identity(&providers_of(new.path())?)).map_err(|e| failed(&compared, e))?;
        std::fs::rename(new.path(), &place).map_err(|e| failed(&place, e))?;
        Prepared::open(place.clone())?.ok_or_else(|| failed(&place, std::io::ErrorKind::NotFound.into()))
    }

    fn lay_out(&self, folder: &Folder, more_providers: &BTreeSet<String>) -> Result<tempfile::TempDir, EngineError> {
        let new = temporary_folder(&self.cache)?;
        folder.write(new.path())?;
        if !more_providers.is_empty() {
            let path = new.path().join(STATE);
            std::fs::write(&path, state_that_needs(more_providers)).map_err(|e| failed(&path, e))?;
        }
        Ok(new)
    }

    /// A provider's file is not as it was, were it only that it got another name. `init` compares it with the lock file once
    /// more. To leave that to the run would give it another lock file than its plan had, and OpenTofu refuses that.
    async fn compare_again<'a>(
        &self,
        ready: Prepared,
        folder: &Folder,
        more_providers: &BTreeSet<String>,
        invocation: &impl Fn(&Path) -> Invocation<'a>,
        stop: &Stop,
    ) -> Result<Prepared, EngineError> {
        let Ok(providers) = providers_of(&ready.folder) else { return Ok(ready) };
        let new = self.lay_out(folder, more_providers)?;
        if !ready.lock.is_empty() {
            let path = new.path().join(LOCK_FILE);
            std::fs::write(&path, &ready.lock).map_err(|e| failed(&path, e))?;
        }
        init(invocation(new.path()), new.path(), stop).await?;
        let (half, compared) = (ready.folder.join(".compared"), ready.folder.join(COMPARED));
        std::fs::write(&half, identity(&providers)).map_err(|e| failed(&half, e))?;
        std::fs::rename(&half, &compared).map_err(|e| failed(&compared, e))?;
        Ok(Prepared { as_compared: true, ..ready })
    }
}

const UNFINISHED: &str = ".new-";

/// What no run has needed for so long is removed at the next start, and made again if one needs it after all.
const KEPT_UNUSED: Duration = Duration::from_secs(30 * 24 * 3600);

pub(super) fn temporary_folder(cache: &Path) -> Result<tempfile::TempDir, EngineError> {
    tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(cache).map_err(|e| failed(cache, e))
}

async fn init(mut invocation: Invocation<'_>, folder: &Path, stop: &Stop) -> Result<(), EngineError> {
    invocation.args = ["init", "-json", "-input=false", "-lock=false"].map(Into::into).to_vec();
    let mut heard = Heard::default();
    let ended = invocation
        .run(stop, |line| {
            heard.line(line);
        })
        .await?;
    if ended.asked_to_stop {
        return Err(EngineError::Stopped);
    }
    if !ended.status.success() {
        return Err(super::refusal("init", heard, &ended));
    }
    // A configuration without providers and modules leaves no data folder; its presence says that `init` was run.
    let data = folder.join(DATA_FOLDER);
    std::fs::create_dir_all(&data).map_err(|e| failed(&data, e))?;
    let path = data.join("terraform.tfstate");
    let backend: serde_json::Value =
        std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    if backend["backend"]["type"] != "local" {
        return Err(EngineError::Diagnostics(vec![Diagnostic::error(
            "The configuration insists on a backend of its own",
            "Landform keeps the state itself. Remove the backend block from the template's override files.",
        )]));
    }
    Ok(())
}

/// `init` installs providers for what is in the state, too; it looks at nothing but their names.
fn state_that_needs(providers: &BTreeSet<String>) -> Vec<u8> {
    let resources: Vec<_> = providers
        .iter()
        .enumerate()
        .map(|(number, provider)| {
            json!({
                "mode": "managed", "type": "landform_placeholder", "name": format!("provider_{number}"),
                "provider": format!("provider[\"{provider}\"]"),
                "instances": [{"schema_version": 0, "attributes": {}}],
            })
        })
        .collect();
    let state = json!({"version": 4, "terraform_version": "1.0.0", "serial": 1, "lineage": "landform-placeholder",
        "outputs": {}, "resources": resources});
    state.to_string().into_bytes()
}
