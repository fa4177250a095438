use std::collections::BTreeMap;

use landform_lang::Module;

use crate::native::builtin;

/// Where providers that name no host come from.
const DEFAULT_HOST: &str = "registry.opentofu.org";

/// Which provider a local name stands for.
pub struct Sources {
    by_name: BTreeMap<String, String>,
    versions: BTreeMap<String, String>,
}

impl Sources {
    pub fn new(module: &Module) -> Sources {
        let mut sources = Sources { by_name: BTreeMap::new(), versions: BTreeMap::new() };
        for (name, required) in &module.required_providers {
            let source = full_source(required.source.as_deref().unwrap_or(name));
            sources.versions.insert(source.clone(), required.version.clone().unwrap_or_default());
            sources.by_name.insert(name.clone(), source);
        }
        for block in &module.providers {
            if let Some(version) = &block.version {
                add(sources.versions.entry(sources.source(&block.name)).or_default(), version);
            }
        }
        sources
    }

    /// The providers that the module names in `required_providers`.
    pub fn required(&self) -> impl Iterator<Item = String> + '_ {
        self.by_name.values().cloned()
    }

    fn source(&self, name: &str) -> String {
        match self.by_name.get(name) {
            Some(source) => source.clone(),
            None if name == "terraform" => builtin::SOURCE.to_owned(),
            None => full_source(name),
        }
    }

    /// The address of a provider configuration, as a state names it.
    pub fn address(&self, name: &str, alias: Option<&str>) -> String {
        let address = provider_address(&self.source(name));
        alias.map_or(address.clone(), |alias| format!("{address}.{alias}"))
    }

    /// Adds what this module wants of versions, by source address. Where several modules want something, all must hold.
    pub fn collect_versions(&self, versions: &mut BTreeMap<String, String>) {
        for (source, version) in self.versions.iter().filter(|(_, version)| !version.is_empty()) {
            add(versions.entry(source.clone()).or_default(), version);
        }
    }

    /// What this module wants of a provider's version.
    pub fn version(&self, name: &str) -> String {
        self.versions.get(&self.source(name)).cloned().unwrap_or_default()
    }
}

/// All constraints must hold.
fn add(wanted: &mut String, version: &str) {
    if !wanted.is_empty() {
        wanted.push_str(", ");
    }
    wanted.push_str(version);
}

pub fn provider_address(source: &str) -> String {
    format!("provider[\"{source}\"]")
}

fn full_source(source: &str) -> String {
    let source = source.to_lowercase();
    match source.split('/').count() {
        1 => format!("{DEFAULT_HOST}/hashicorp/{source}"),
        2 => format!("{DEFAULT_HOST}/{source}"),
        _ => source,
    }
}

#[cfg(test)]
mod tests {
    use super::full_source;

    #[test]
    fn sources_get_their_host_and_namespace() {
        assert_eq!(full_source("time"), "registry.opentofu.org/hashicorp/time");
        assert_eq!(full_source("Coder/coder"), "registry.opentofu.org/coder/coder");
        assert_eq!(full_source("example.com/a/b"), "example.com/a/b");
    }
}
