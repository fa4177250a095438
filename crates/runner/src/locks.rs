//! The lock file of a template that brings none: which packages of the mirror its providers are.

use std::collections::BTreeMap;
use std::path::Path;

use landform_domain::template::LOCK_FILE;
use landform_lang::Tree;
use landform_registry::{Constraints, LockFile, Locked, Places, Source};
use landform_store::Lock;

use crate::templates::hides_variables;

/// Chooses the newest versions that the template allows, and writes their checksums down.
pub(crate) fn made_for(folder: &Path, places: &Places) -> Lock {
    match choose(folder, places) {
        Ok(Some(file)) => Lock::Chosen(file),
        Ok(None) => Lock::NotNeeded,
        Err(why) => {
            tracing::info!(why, "a template is not locked at its push");
            Lock::Open(why)
        }
    }
}

/// `None`: it needs no providers. An error says why not all that it needs can be known or found here.
fn choose(folder: &Path, places: &Places) -> Result<Option<Vec<u8>>, String> {
    let tree = Tree::load(folder).map_err(|found| found.to_string())?;
    if let Some(item) = tree.unsupported().iter().find(|item| hides_variables(&item.construct)) {
        return Err(format!("{} cannot be read here: {}", item.range, item.construct));
    }
    let mut lock = LockFile::default();
    let mut needed = false;
    for (source, constraints) in requirements(&tree)? {
        let found = places.find(&source, &constraints, None).map_err(|error| error.to_string())?;
        let (Some(package), Some(version)) = (&found.package, found.version) else {
            return Err(format!("provider {source} is a developer's own build, which has no version"));
        };
        let hashes = package.known_hashes().map_err(|error| error.to_string())?.list();
        needed |= lock.choose(source, Locked { version, constraints: constraints.normalised(), hashes });
    }
    if !needed {
        return Ok(None);
    }
    let written = lock.write(folder).map_err(|error| error.to_string());
    written.and_then(|_| std::fs::read(folder.join(LOCK_FILE)).map_err(|error| error.to_string())).map(Some)
}

/// What all modules together want of each provider.
fn requirements(tree: &Tree) -> Result<BTreeMap<Source, Constraints>, String> {
    let mut wanted: BTreeMap<Source, Constraints> = BTreeMap::new();
    for Tree { module, children, .. } in tree.all() {
        if children.len() != module.calls.len() {
            return Err("a module is not in the template's folder, and what it needs is not known".to_owned());
        }
        for (name, required) in &module.required_providers {
            let source = required.source.as_deref().map_or_else(|| Source::implied(name), str::parse);
            let source = source.map_err(|error| error.to_string())?;
            let constraints = required.version.as_deref().unwrap_or_default().parse::<Constraints>();
            let constraints = constraints.map_err(|error| error.to_string())?;
            let all = wanted.remove(&source).unwrap_or_default().and(constraints);
            wanted.insert(source, all);
        }
        let used = module.resources.iter().map(|resource| resource.provider_name());
        let configured = module.providers.iter().map(|provider| provider.name.as_str());
        for name in used.chain(configured).filter(|name| !module.required_providers.contains_key(*name)) {
            wanted.entry(Source::implied(name).map_err(|error| error.to_string())?).or_default();
        }
    }
    wanted.retain(|source, _| !source.is_builtin());
    Ok(wanted)
}
