//! Folders whose state is not the file beside their configuration: at a backend, or of another workspace than the default
//! one, or encrypted. They are for `tofu`. To take the local file for the state there would be to make everything a second
//! time.

use std::path::{Path, PathBuf};

use landform_engine::{Unsupported, native};

use super::reason;

pub fn reasons(folder: &Path) -> Vec<Unsupported> {
    let data = std::env::var_os("TF_DATA_DIR").filter(|folder| !folder.is_empty());
    let data = folder.join(data.map_or_else(|| PathBuf::from(".terraform"), PathBuf::from));
    let mut reasons: Vec<Unsupported> = environment().map(|name| reason(&format!("the variable {name}"))).collect();
    if mentions_a_backend(folder) {
        reasons.extend(native::backends(folder));
    }
    reasons.extend(initialised_backend(&data).map(|kind| reason(&format!("the folder's backend {kind:?}"))));
    reasons.extend(workspace(&data).map(|name| reason(&format!("workspace {name:?}"))));
    reasons
}

/// What changes OpenTofu's commands from outside: flags that nobody has typed, and a state that is not to be written in clear.
fn environment() -> impl Iterator<Item = String> {
    let set = std::env::vars_os().filter(|(_, value)| !value.is_empty());
    set.filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| name == "TF_ENCRYPTION" || name == "TF_CLI_ARGS" || name.starts_with("TF_CLI_ARGS_"))
}

/// The files of a configuration. A folder without any would be one that wants nothing to exist.
pub fn configuration(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        [".tf", ".tofu", ".tf.json", ".tofu.json"].iter().any(|end| name.ends_with(end))
    })
}

/// A look that costs little: nearly no folder has one, and what has none is not read twice.
fn mentions_a_backend(folder: &Path) -> bool {
    configuration(folder).any(|file| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        ["backend", "cloud"].iter().any(|word| text.contains(word))
    })
}

/// What `tofu init` has connected the folder with, which lasts when the block is taken out.
fn initialised_backend(data: &Path) -> Option<String> {
    let text = std::fs::read_to_string(data.join("terraform.tfstate")).ok()?;
    let known: serde_json::Value = serde_json::from_str(&text).ok()?;
    known["backend"]["type"].as_str().map(str::to_owned)
}

fn workspace(data: &Path) -> Option<String> {
    let named = std::env::var("TF_WORKSPACE").ok().filter(|name| !name.is_empty());
    let selected = || std::fs::read_to_string(data.join("environment")).ok().map(|name| name.trim().to_owned());
    named.or_else(selected).filter(|name| !name.is_empty() && name != "default")
}
