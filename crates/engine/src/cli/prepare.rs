use std::collections::BTreeSet;
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
    pub lock: Vec<u8>,
    /// All its providers together are small programs.
    pub is_small: bool,
}

/// Most providers are below this; those of the large clouds are far above it, and with them memory is what is scarce.
const SMALL: u64 = 100 << 20;

impl Prepared {
    pub fn lock_digest(&self) -> String {
        sha256(&self.lock)
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
        let is_small = size_below(&folder.join(DATA_FOLDER).join("providers")).is_ok_and(|size| size < SMALL);
        Ok(Some(Prepared { folder, lock, is_small }))
    }

    fn providers(&self) -> BTreeSet<String> {
        let body = std::str::from_utf8(&self.lock).ok().and_then(|text| text.parse::<Body>().ok()).unwrap_or_default();
        let blocks = body.iter().filter_map(Structure::as_block).filter(|b| b.ident.as_str() == "provider");
        blocks.filter_map(|b| b.labels.first()).map(|label| label.as_str().to_owned()).collect()
    }
}

/// The bytes of all files below a folder, behind links too: that is how `init` puts providers of a mirror there.
fn size_below(folder: &Path) -> std::io::Result<u64> {
    let entries = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut size = 0;
    for entry in entries {
        let path = entry?.path();
        let found = std::fs::metadata(&path)?;
        size += if found.is_dir() { size_below(&path)? } else { found.len() };
    }
    Ok(size)
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
        if let Some(ready) = Prepared::open(place.clone())? {
            return Ok(ready);
        }
        let shared_lock = key.bytes().next().map_or(0, |byte| byte as usize % self.making.len());
        let _making = self.making[shared_lock].lock().await;
        if let Some(ready) = Prepared::open(place.clone())? {
            return Ok(ready);
        }
        let new = temporary_folder(&self.cache)?;
        folder.write(new.path())?;
        if !more_providers.is_empty() {
            let path = new.path().join(STATE);
            std::fs::write(&path, state_that_needs(more_providers)).map_err(|e| failed(&path, e))?;
        }
        init(invocation(new.path()), new.path(), stop).await?;
        std::fs::rename(new.path(), &place).map_err(|e| failed(&place, e))?;
        Prepared::open(place.clone())?.ok_or_else(|| failed(&place, std::io::ErrorKind::NotFound.into()))
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
