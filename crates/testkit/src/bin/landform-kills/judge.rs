//! What exists (the ledger) against what Landform says exists (states and doubts).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use landform_testkit::landform::Landform;
use landform_testkit::{ledger, parts};
use serde_json::Value;

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

/// Every object of a deployment's state: its name and id.
pub async fn objects_in_state(landform: &Landform, deployment: &str) -> Result<BTreeMap<String, String>> {
    let path = format!("/v1/tenants/kills/deployments/{deployment}/state");
    let response = landform.request(reqwest::Method::GET, &path).send().await?;
    let status = response.status();
    let state: Value = serde_json::from_str(&response.text().await?)?;
    // A first apply that was killed early has left no state; a deployment that vanished is something else.
    if state["code"] == "state_unknown" {
        return Ok(BTreeMap::new());
    }
    ensure!(status.is_success(), "GET {path}: {status}: {state}");
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
