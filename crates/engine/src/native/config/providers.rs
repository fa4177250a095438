//! Which configuration of a provider is in charge of what.

use std::collections::BTreeSet;

use landform_lang::{Expr, ProviderConfig, Resource};
use landform_registry::Constraints;

use super::{Config, ModuleId, provider_address};
use crate::native::show::source_of;
use crate::state::split_provider;

/// Who says which of the configurations that a `provider` block with `for_each` makes is in charge of a resource.
pub struct ProviderKey {
    pub expr: Expr,
    /// The module in whose call it stands; otherwise the resource says it itself.
    pub called: Option<ModuleId>,
}

impl Config {
    /// The address of the provider that a block configures.
    pub fn provider_block(&self, id: ModuleId, provider: &ProviderConfig) -> String {
        self.absolute(id, &self.modules[id].sources.address(&provider.name, provider.alias.as_deref()))
    }

    /// All blocks that configure providers, with the module that each stands in.
    fn provider_blocks(&self) -> impl Iterator<Item = (ModuleId, &ProviderConfig)> {
        let modules = self.modules.iter().enumerate();
        modules.flat_map(|(id, node)| node.module.providers.iter().map(move |block| (id, block)))
    }

    /// What a module means by a provider's name, as a state names it.
    pub fn provider_source(&self, id: ModuleId, name: &str) -> String {
        self.modules[id].sources.address(name, None)
    }

    /// What a module wants of a provider's version, in the form of a lock file.
    pub fn constraint(&self, id: ModuleId, name: &str) -> String {
        let written = self.modules[id].sources.version(name);
        written.parse().map_or(written, |constraints: Constraints| constraints.normalised())
    }

    /// The provider that is in charge of a resource: found by name in its module, or passed from the outside.
    pub fn provider_of(&self, id: ModuleId, resource: &Resource) -> String {
        self.charged(id, resource).0
    }

    /// The same, with who says which of several it is.
    pub(super) fn charged(&self, id: ModuleId, resource: &Resource) -> (String, Option<ProviderKey>) {
        let alias = resource.provider.as_ref().and_then(|(_, alias)| alias.clone());
        let key = resource.provider_key.clone().map(|expr| ProviderKey { expr, called: None });
        self.provider_named(id, (resource.provider_name().to_owned(), alias), key)
    }

    fn provider_named(
        &self,
        id: ModuleId,
        named: (String, Option<String>),
        key: Option<ProviderKey>,
    ) -> (String, Option<ProviderKey>) {
        let node = &self.modules[id];
        let address = node.sources.address(&named.0, named.1.as_deref());
        let Some((parent, call)) = &node.parent else { return (address, key) };
        let own = |block: &ProviderConfig| (&block.name, &block.alias) == (&named.0, &named.1);
        if node.module.providers.iter().any(own) {
            return (self.absolute(id, &address), key);
        }
        match self.modules[*parent].module.calls[call].providers.get(&named) {
            Some(passed) => self.provider_named(*parent, passed.clone(), self.passed_key(id, &named)),
            // Only the usual one comes without being passed.
            None if named.1.is_some() => (self.absolute(id, &address), key),
            None => self.inherited(*parent, &node.sources.address(&named.0, None)),
        }
    }

    /// Which of several providers a module is given by this name of its own.
    fn passed_key(&self, id: ModuleId, named: &(String, Option<String>)) -> Option<ProviderKey> {
        let (parent, call) = self.modules[id].parent.as_ref()?;
        let expr = self.modules[*parent].module.calls[call].provider_keys.get(named)?.clone();
        Some(ProviderKey { expr, called: Some(id) })
    }

    /// A provider that is not passed is that of the nearest module around which has it, whatever it is called there.
    fn inherited(&self, id: ModuleId, address: &str) -> (String, Option<ProviderKey>) {
        let node = &self.modules[id];
        let Some((parent, call)) = &node.parent else { return (address.to_owned(), None) };
        let meant = |name: &str, alias: &Option<String>| alias.is_none() && node.sources.address(name, None) == address;
        if node.module.providers.iter().any(|block| meant(&block.name, &block.alias)) {
            return (self.absolute(id, address), None);
        }
        let mut passed = self.modules[*parent].module.calls[call].providers.iter();
        match passed.find(|((name, alias), _)| meant(name, alias)) {
            Some((own, theirs)) => self.provider_named(*parent, theirs.clone(), self.passed_key(id, own)),
            None => self.inherited(*parent, address),
        }
    }

    /// The addresses of the providers that have a block in the configuration and something to do.
    pub fn configured_providers(&self) -> BTreeSet<String> {
        let used: BTreeSet<&String> = self.resources.iter().map(|resource| &resource.provider).collect();
        let blocks = self.provider_blocks().map(|(id, block)| self.provider_block(id, block));
        blocks.filter(|address| used.contains(address)).collect()
    }

    /// The address of one provider of each source that has a block anywhere.
    pub fn provider_addresses(&self) -> BTreeSet<String> {
        let blocks = self.provider_blocks();
        blocks.map(|(id, block)| self.modules[id].sources.address(&block.name, None)).collect()
    }

    /// The block that configures a provider, if there is one.
    pub fn provider_config(&self, address: &str) -> Option<(ModuleId, &ProviderConfig)> {
        let (address, _) = split_provider(address);
        self.provider_blocks().find(|(id, block)| self.provider_block(*id, block) == address)
    }

    /// Whether a provider can be configured: the usual one of the root can be without a block, all others need theirs.
    pub fn can_configure(&self, address: &str) -> bool {
        let usual = split_provider(address).0 == provider_address(source_of(address));
        usual || self.provider_config(address).is_some()
    }
}
