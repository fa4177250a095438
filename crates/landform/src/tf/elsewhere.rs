//! Folders whose state is not the file beside their configuration: at a backend, or of another workspace than the default
//! one. They are for `tofu`. To take the local file for the state there would be to make everything a second time.

use std::path::{Path, PathBuf};

use landform_engine::{Unsupported, native};

use super::reason;

pub fn reasons(folder: &Path) -> Vec<Unsupported> {
    let data = std::env::var_os("TF_DATA_DIR").filter(|folder| !folder.is_empty());
    let data = folder.join(data.map_or_else(|| PathBuf::from(".terraform"), PathBuf::from));
    let mut reasons = Vec::new();
    if mentions_a_backend(folder) {
        reasons.extend(native::backends(folder));
    }
    reasons.extend(initialised_backend(&data).map(|kind| reason(&format!("the folder's backend {kind:?}"))));
    reasons.extend(workspace(&data).map(|name| reason(&format!("workspace {name:?}"))));
    reasons
}

/// A look that costs little: nearly no folder has one, and what has none is not read twice.
fn mentions_a_backend(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let configuration = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        [".tf", ".tofu", ".tf.json", ".tofu.json"].iter().any(|end| name.ends_with(end))
    };
    let mut files = entries.map(|entry| entry.path()).filter(configuration);
    files.any(|file| {
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
