//! What exists (the ledger) against what Landform says exists (states and doubts).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

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

/// Provider processes that run from the mirror of this test, by reading `/proc`.
pub fn leftovers(mirror: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        if let Ok(program) = std::fs::read_link(entry.path().join("exe"))
            && program.starts_with(mirror)
        {
            found.push(format!("{} {}", entry.file_name().to_string_lossy(), program.display()));
        }
    }
    Ok(found)
}

fn text(value: &Value) -> Result<String> {
    Ok(value.as_str().with_context(|| format!("{value} is not a string"))?.to_owned())
}
