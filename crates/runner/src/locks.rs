//! The lock file of a template that brings none: which packages of the mirror its providers are.

use std::collections::BTreeMap;
use std::path::Path;

use landform_domain::template::LOCK_FILE;
use landform_lang::Tree;
use landform_registry::{Constraints, LockFile, Locked, Places, Source};

use crate::templates::hides_variables;

/// Chooses the newest versions that the template allows, and writes their checksums down. `None`: it needs no providers,
/// or not all that it needs can be known or found here; then its runs choose.
pub(crate) fn made_for(folder: &Path, places: &Places) -> Option<Vec<u8>> {
    let tree = Tree::load(folder).ok()?;
    if tree.unsupported().iter().any(|item| hides_variables(&item.construct)) {
        return None;
    }
    let mut lock = LockFile::default();
    let mut needed = false;
    for (source, constraints) in requirements(&tree)? {
        let found = places.find(&source, &constraints, None);
        let found = found.inspect_err(|error| tracing::info!(%error, "a template is not locked at its push")).ok()?;
        let hashes = found.package.as_ref()?.known_hashes().ok()?.list();
        needed |=
            lock.choose(source, Locked { version: found.version?, constraints: constraints.normalised(), hashes });
    }
    if !needed {
        return None;
    }
    lock.write(folder).ok()?;
    std::fs::read(folder.join(LOCK_FILE)).ok()
}

/// What all modules together want of each provider. `None`: a module is somewhere else.
fn requirements(tree: &Tree) -> Option<BTreeMap<Source, Constraints>> {
    let mut wanted: BTreeMap<Source, Constraints> = BTreeMap::new();
    for Tree { module, children, .. } in tree.all() {
        if children.len() != module.calls.len() {
            return None;
        }
        for (name, required) in &module.required_providers {
            let source = required.source.as_deref().map_or_else(|| Source::implied(name), str::parse).ok()?;
            let constraints: Constraints = required.version.as_deref().unwrap_or_default().parse().ok()?;
            let all = wanted.remove(&source).unwrap_or_default().and(constraints);
            wanted.insert(source, all);
        }
        let used = module.resources.iter().map(|resource| resource.provider_name());
        let configured = module.providers.iter().map(|provider| provider.name.as_str());
        for name in used.chain(configured).filter(|name| !module.required_providers.contains_key(*name)) {
            wanted.entry(Source::implied(name).ok()?).or_default();
        }
    }
    wanted.retain(|source, _| !source.is_builtin());
    Some(wanted)
}
