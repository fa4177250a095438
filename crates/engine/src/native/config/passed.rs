//! Whether the providers that a module is given are those that it asks for.

use std::collections::{BTreeMap, BTreeSet};

use landform_lang::{ModuleCall, ProviderConfig, Repetition};

use super::{Config, ModuleId, ModuleNode, provider_address, range};
use crate::native::object::short;
use crate::native::show::source_of;
use crate::{Diagnostic, Severity, SourceRange};

type Name = (String, Option<String>);

impl Config {
    /// Errors and warnings.
    pub(super) fn check_passed(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for node in &self.modules {
            found.extend(self.check_calls_of(node));
            if let Some((parent, name)) = &node.parent {
                let parent = &self.modules[*parent];
                let call = &parent.module.calls[name];
                found.extend(self.check_own(node, parent, call));
                call.providers.iter().for_each(|passed| found.extend(check_pair(node, parent, call, passed)));
            }
        }
        found
    }

    /// Whether what a module passes on by a plain name is known to it by that name, and will be there.
    fn check_calls_of(&self, node: &ModuleNode) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        let around = self.around(node);
        let plain = |call: &ModuleCall| {
            let unnamed = call.providers.iter().filter(|(_, (_, alias))| alias.is_none());
            unnamed.map(|(inner, (name, _))| (name.clone(), range(call.provider_places[inner][1].clone()))).collect()
        };
        let passed: Vec<(String, SourceRange)> =
            node.module.calls.values().flat_map(|call| -> Vec<_> { plain(call) }).collect();
        for (name, at) in passed {
            let configured = configured(node).any(|block| block.name == name && block.alias.is_none());
            let usual = short(&provider_address(&format!("registry.opentofu.org/hashicorp/{name}")));
            if !configured && !node.module.required_providers.contains_key(&name) {
                let detail = format!(
                    "There is no explicit declaration for local provider name {name:?} in {}, so OpenTofu is assuming you mean to \
                     pass a configuration for provider {usual:?}.\n\nTo clarify your intent and silence this warning, add to \
                     {around} a required_providers entry named {name:?} with source = {usual:?}, or a different source address if \
                     appropriate.",
                    node.name()
                );
                found.push(note(Severity::Warning, "Reference to undefined provider", detail, at));
                continue;
            }
            let Some((parent, call_name)) = &node.parent else { continue };
            let call = &self.modules[*parent].module.calls[call_name];
            if !configured && !call.providers.contains_key(&(name.clone(), None)) {
                let detail = format!(
                    "The configuration for {} expects to inherit a configuration for provider {usual} with local name {name:?}, but \
                     {around} doesn't pass a configuration under that name.\n\nTo satisfy this requirement, add an entry for \
                     {name:?} to the \"providers\" argument in the module {call_name:?} block.",
                    node.name()
                );
                let at = range(call.range.clone());
                found.push(note(Severity::Warning, "Missing required provider configuration", detail, at));
            }
        }
        found
    }

    /// What a module that configures providers itself may not be asked, and what it has to be given.
    fn check_own(&self, node: &ModuleNode, parent: &ModuleNode, call: &ModuleCall) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        if let Some(at) = self.repeated_at(node).filter(|_| configured(node).next().is_some()) {
            let detail = format!(
                "The module at {} is a legacy module which contains its own local provider configurations, and so calls to it may \
                 not use the count, for_each, enabled or depends_on arguments.\n\nIf you also control the module {:?}, consider \
                 updating this module to instead expect provider configurations to be passed by its caller.",
                node.path, call.source
            );
            let summary = "Module is incompatible with count, for_each, enabled and depends_on";
            found.push(note(Severity::Error, summary, detail, at));
        }
        for block in configured(node) {
            let own = (block.name.clone(), block.alias.clone());
            if let Some([inner, _]) = call.provider_places.get(&own) {
                let detail = format!(
                    "The configuration of {} has its own local configuration for {}, and so it cannot accept an overridden \
                     configuration provided by {}.",
                    node.path,
                    written(&own),
                    parent.name()
                );
                let at = range(inner.clone());
                found.push(note(Severity::Error, "Cannot override provider configuration", detail, at));
            }
        }
        for (inner, required) in &node.module.required_providers {
            for alias in required.aliases.keys() {
                let own = (inner.clone(), Some(alias.clone()));
                let there = configured(node).any(|block| (&block.name, &block.alias) == (&own.0, &own.1));
                if there || call.providers.contains_key(&own) {
                    continue;
                }
                let (named, source) = (written(&own), short(&node.sources.address(inner, None)));
                let detail = format!(
                    "The child module requires an additional configuration for provider {source}, with the local name \
                     {named:?}.\n\nRefer to the module's documentation to understand the intended purpose of this additional \
                     provider configuration, and then add an entry for {named} in the \"providers\" meta-argument in the \
                     module block to choose which provider configuration the module should use for that purpose."
                );
                let at = range(call.range.clone());
                found.push(note(Severity::Error, "Missing required provider configuration", detail, at));
            }
        }
        found
    }

    /// Where a call says something for which there can be no providers inside: the nearest one around a module.
    fn repeated_at(&self, node: &ModuleNode) -> Option<SourceRange> {
        let (parent, name) = node.parent.as_ref()?;
        let call = &self.modules[*parent].module.calls[name];
        let repeated = match &call.repetition {
            Repetition::Once => call.depends_on.first().map(|dependency| dependency.range.clone()),
            repetition => repetition.expr().map(|expr| expr.range()),
        };
        repeated.map(range).or_else(|| self.repeated_at(&self.modules[*parent]))
    }

    /// Who calls a module, as messages name it.
    fn around(&self, node: &ModuleNode) -> &str {
        node.parent.as_ref().map_or("the root module", |(parent, _)| self.modules[*parent].name())
    }

    /// A provider that is passed to a module, and is not there: nothing is looked at then.
    pub fn missing_passed(&self) -> Option<Diagnostic> {
        let mut there: BTreeSet<String> = BTreeSet::new();
        let root = &self.modules[0];
        for (name, required) in &root.module.required_providers {
            let aliases = required.aliases.keys().map(|alias| root.sources.address(name, Some(alias)));
            there.extend(aliases.chain([root.sources.address(name, None)]));
        }
        self.missing_below(0, &mut there)
    }

    fn missing_below(&self, id: ModuleId, there: &mut BTreeSet<String>) -> Option<Diagnostic> {
        let node = &self.modules[id];
        let blocks = node.module.providers.iter().chain(&node.proxies);
        there.extend(blocks.map(|block| self.provider_block(id, block)));
        if let Some((parent, name)) = &node.parent {
            for ((inner, alias), (_, outer)) in &self.modules[*parent].module.calls[name].providers {
                let passed = self.absolute(*parent, &node.sources.address(inner, outer.as_deref()));
                if !there.contains(&passed) {
                    return Some(Diagnostic::error(format!("missing provider {passed}"), ""));
                }
                there.insert(self.absolute(id, &node.sources.address(inner, alias.as_deref())));
            }
        }
        node.children.values().find_map(|child| self.missing_below(*child, there))
    }
}

/// Whether one provider that is passed is the one that is asked for.
fn check_pair(
    node: &ModuleNode,
    parent: &ModuleNode,
    call: &ModuleCall,
    (own, theirs): (&Name, &Name),
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let [inside, outside] = call.provider_places[own].clone().map(range);
    let required = node.module.required_providers.get(&own.0);
    let named = match &own.1 {
        None => required.is_some(),
        Some(alias) => required.is_some_and(|required| required.aliases.contains_key(alias)),
    };
    let empty = |block: &ProviderConfig| block.is_empty() && (&block.name, &block.alias) == (&own.0, &own.1);
    let mut blocks = node.module.providers.iter().chain(&node.proxies);
    let wanted = node.sources.address(&own.0, None);
    let (name, source) = (written(own), short(&wanted));
    if !named && !blocks.any(empty) {
        let usual = source_of(&wanted).starts_with("registry.opentofu.org/hashicorp/");
        let (severity, detail) = match usual {
            true => (
                Severity::Warning,
                format!(
                    "There is no explicit declaration for local provider name {name:?} in {}, so OpenTofu is assuming you mean to \
                     pass a configuration for {source:?}.\n\nIf you also control the child module, add a required_providers entry \
                     named {name:?} with the source address {source:?}.",
                    node.path
                ),
            ),
            false => (
                Severity::Error,
                format!(
                    "The child module does not declare any provider requirement with the local name {name:?}.\n\nIf you also \
                     control the child module, you can add a required_providers entry named {name:?} with the source address \
                     {source:?} to accept this provider configuration."
                ),
            ),
        };
        found.push(note(severity, "Reference to undefined provider", detail, inside.clone()));
    }
    // What the caller requires by the module's own name counts, if there is such a thing.
    let meant =
        if own.1.is_none() && parent.module.required_providers.contains_key(&own.0) { &own.0 } else { &theirs.0 };
    let given = parent.sources.address(meant, None);
    if wanted != given {
        let mut others: BTreeMap<String, &String> = BTreeMap::new();
        for other in node.module.required_providers.keys() {
            others.entry(node.sources.address(other, None)).or_insert(other);
        }
        let (detail, at) = match others.get(&given) {
            Some(other) => (
                format!(
                    "The assigned configuration is for provider {source:?}, but local name {:?} in {} represents {:?}.\n\nTo pass \
                     this configuration to the child module, use the local name {other:?} instead.",
                    own.0,
                    parent.name(),
                    short(&given)
                ),
                inside,
            ),
            None => (
                format!(
                    "The local name {:?} in {} represents provider {:?}, but {name:?} in {} represents {source:?}.\n\nEach provider \
                     has its own distinct configuration schema and provider types, so this module's {name:?} can be assigned only \
                     a configuration for {source}, which is not required by {}.",
                    written(theirs),
                    parent.name(),
                    short(&given),
                    node.path,
                    node.path
                ),
                outside,
            ),
        };
        found.push(note(Severity::Error, "Provider type mismatch", detail, at));
    }
    found
}

/// The blocks of a module that say something to a provider.
fn configured(node: &ModuleNode) -> impl Iterator<Item = &ProviderConfig> {
    node.module.providers.iter().filter(|block| !block.is_empty())
}

fn written((name, alias): &Name) -> String {
    alias.as_ref().map_or_else(|| name.clone(), |alias| format!("{name}.{alias}"))
}

fn note(severity: Severity, summary: &str, detail: String, at: SourceRange) -> Diagnostic {
    Diagnostic { severity, range: Some(at), ..Diagnostic::error(summary, detail) }
}
