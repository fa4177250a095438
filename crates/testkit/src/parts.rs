//! Where the real parts are. `cargo xtask parts` puts them there; an environment variable names another place.
//!
//! A missing part is a panic that says what to run: a test that skips itself would look like one that passed.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// The versions that tests are written against; `cargo xtask parts` reads the same file.
const PARTS: &str = include_str!("../../../parts.json");

/// The real `tofu` binary.
pub fn tofu() -> PathBuf {
    found("LANDFORM_TEST_TOFU", cache().join(format!("opentofu-{}", tofu_version())).join("tofu"))
}

pub fn tofu_version() -> String {
    listed()["opentofu"]["version"].as_str().expect("parts.json names a version").to_owned()
}

/// A filesystem mirror with the providers that tests use, unpacked.
pub fn mirror() -> PathBuf {
    found("LANDFORM_TEST_MIRROR", cache().join("mirror"))
}

/// The version of a provider in the mirror, by source address such as `hashicorp/time`.
pub fn provider_version(source: &str) -> String {
    let listed = listed();
    let providers = listed["providers"].as_array().expect("parts.json lists providers");
    let provider = providers.iter().find(|p| p["source"] == source).expect("a provider of parts.json");
    provider["version"].as_str().expect("a version").to_owned()
}

/// The provider's executable inside the mirror.
pub fn provider(source: &str) -> PathBuf {
    let name = source.rsplit('/').next().expect("a source has a name");
    let folder = mirror().join("registry.opentofu.org").join(source).join(provider_version(source)).join(platform());
    let path = folder.join(format!("terraform-provider-{name}"));
    assert!(path.exists(), "{} is missing: run `cargo xtask parts`", path.display());
    path
}

/// The folder name that mirrors use for this machine.
pub fn platform() -> &'static str {
    "linux_amd64"
}

/// hashicorp/aws, an optional part.
pub struct Aws {
    /// A filesystem mirror, unpacked.
    pub mirror: PathBuf,
    /// With its registry, as the mirror has it.
    pub source: String,
    pub version: String,
}

/// The provider hashicorp/aws, if `LANDFORM_TEST_AWS_MIRROR` names a mirror that has it for this machine.
pub fn aws() -> Option<Aws> {
    let mirror = PathBuf::from(std::env::var_os("LANDFORM_TEST_AWS_MIRROR")?);
    let names = |folder: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    };
    names(&mirror).into_iter().find_map(|host| {
        let source = format!("{host}/hashicorp/aws");
        let folder = mirror.join(&source);
        let mut versions = names(&folder).into_iter();
        let version = versions.find(|version| folder.join(version).join(platform()).is_dir())?;
        Some(Aws { mirror: mirror.clone(), source, version })
    })
}

/// The folder with the program `check`, which checks a simulator with the vendor's own client.
pub fn vendor_check(vendor: &str) -> PathBuf {
    let folder = cache().join("vendor-check").join(vendor);
    assert!(folder.join("check").exists(), "{} is missing: run `cargo xtask parts`", folder.display());
    folder
}

/// The vendor's own provider for Cato, an optional part: no registry that this project may use has it.
pub fn cato_provider() -> Option<PathBuf> {
    std::env::var_os("LANDFORM_TEST_CATO_PROVIDER").map(PathBuf::from)
}

/// The folder with `initdb` and `postgres`.
pub fn postgres() -> PathBuf {
    if let Some(named) = std::env::var_os("LANDFORM_TEST_POSTGRES") {
        return PathBuf::from(named);
    }
    let version = listed()["postgres"]["version"].as_str().expect("a version").to_owned();
    let mut places: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    let mut packaged: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|entries| entries.flatten().map(|entry| entry.path().join("bin")).collect())
        .unwrap_or_default();
    packaged.sort();
    places.extend(packaged.into_iter().rev());
    for root in [cache(), PathBuf::from("/var/cache/landform/parts")] {
        places.push(root.join(format!("postgres-{version}/package/native/bin")));
    }
    let here = |folder: &PathBuf| folder.join("initdb").exists() && folder.join("postgres").exists();
    places.into_iter().find(here).unwrap_or_else(|| panic!("no PostgreSQL server found: run `cargo xtask parts`"))
}

fn found(variable: &str, usual: PathBuf) -> PathBuf {
    let path = std::env::var_os(variable).map_or(usual, PathBuf::from);
    assert!(path.exists(), "{} is missing: run `cargo xtask parts`, or set {variable}", path.display());
    path
}

fn cache() -> PathBuf {
    if let Some(named) = std::env::var_os("LANDFORM_PARTS") {
        return PathBuf::from(named);
    }
    let home = std::env::var_os("HOME").expect("HOME is set");
    std::env::var_os("XDG_CACHE_HOME").map_or(Path::new(&home).join(".cache"), PathBuf::from).join("landform/parts")
}

fn listed() -> Value {
    serde_json::from_str(PARTS).expect("parts.json is JSON")
}
