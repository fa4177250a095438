//! What exists (the ledger) against what Landform says exists (states and doubts).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::{ledger, parts};

/// Puts the ledger provider where a filesystem mirror has it.
pub fn install_ledger_provider(binary: &Path, mirror: &Path) -> Result<()> {
    let folder =
        mirror.join("registry.opentofu.org").join(ledger::SOURCE).join(ledger::VERSION).join(parts::platform());
    std::fs::create_dir_all(&folder)?;
    std::fs::copy(binary, folder.join("terraform-provider-ledger"))
        .with_context(|| format!("{} (build the workspace's binaries first)", binary.display()))?;
    Ok(())
}

/// The ids of all objects that exist under a name.
pub fn ids_by_name(ledger: &Path) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for object in ledger::read(ledger)?.objects.into_values() {
        names.entry(object.name).or_default().insert(object.id);
    }
    Ok(names)
}

/// Every object of a deployment's state as the API gives it: its name and id. A first apply that was killed early has
/// left no state; a deployment that vanished is something else.
pub fn objects_of(deployment: &str, state: &Value) -> Result<BTreeMap<String, String>> {
    if state["code"] == "state_unknown" {
        return Ok(BTreeMap::new());
    }
    ensure!(state["version"] == 4, "the state of {deployment}: {state}");
    let mut objects = BTreeMap::new();
    for resource in state["resources"].as_array().into_iter().flatten() {
        for instance in resource["instances"].as_array().into_iter().flatten() {
            let name = text(&instance["attributes"]["name"])?;
            let id = text(&instance["attributes"]["id"])?;
            if let Some(other) = objects.insert(name.clone(), id.clone()) {
                bail!("the state of {deployment} has {name} twice: {other} and {id}");
            }
        }
    }
    Ok(objects)
}

/// The name that the template of the kill tests gives to the object at this address.
pub fn name_of(deployment: &str, address: &str) -> Result<String> {
    if address == "ledger_object.first" {
        return Ok(format!("{deployment}-first"));
    }
    let index = address.strip_prefix("ledger_object.more[").and_then(|rest| rest.strip_suffix(']'));
    Ok(format!("{deployment}-{}", index.with_context(|| format!("an unknown address: {address}"))?))
}

/// The ledger and the state agree about this deployment: the same objects, each exactly once.
pub fn agree(deployment: &str, state: &BTreeMap<String, String>, ledger: &Path) -> Result<()> {
    let prefix = format!("{deployment}-");
    let existing: BTreeMap<String, BTreeSet<String>> =
        ids_by_name(ledger)?.into_iter().filter(|(name, _)| name.starts_with(&prefix)).collect();
    let known: BTreeMap<String, BTreeSet<String>> =
        state.iter().map(|(name, id)| (name.clone(), BTreeSet::from([id.clone()]))).collect();
    ensure!(existing == known, "{deployment}: the ledger has {existing:?}, the state has {known:?}");
    Ok(())
}

#[derive(Debug)]
pub struct Process {
    pub pid: String,
    pub program: PathBuf,
}

/// Processes that run a program of this folder, or work in it. Everything that a Landform of a test starts does.
pub fn processes_below(folder: &Path) -> Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let link = |name: &str| std::fs::read_link(entry.path().join(name)).unwrap_or_default();
        let program = link("exe");
        if program.starts_with(folder) || (link("cwd").starts_with(folder) && !program.as_os_str().is_empty()) {
            found.push(Process { pid: entry.file_name().to_string_lossy().into_owned(), program });
        }
    }
    Ok(found)
}

/// Whoever is told to die by the kernel when its parent is gone does so when it is next given a core, not before.
const DYING: Duration = Duration::from_secs(10);

/// Once the servers have ended, none of their children is there any more.
pub async fn nobody_is_left(folder: &Path) -> Result<()> {
    let begin = Instant::now();
    loop {
        let left = processes_below(folder)?;
        if left.is_empty() {
            return Ok(());
        }
        ensure!(begin.elapsed() < DYING, "processes are left behind: {left:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn text(value: &Value) -> Result<String> {
    Ok(value.as_str().with_context(|| format!("{value} is not a string"))?.to_owned())
}
