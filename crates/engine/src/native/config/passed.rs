//! Whether the providers that a module is given are those that it asks for.

use super::{Config, ModuleId, ModuleNode, range};
use crate::native::object::short;
use crate::{Diagnostic, Severity};

impl Config {
    /// Errors and warnings.
    pub(super) fn check_passed(&self) -> Vec<Diagnostic> {
        let mut found: Vec<Diagnostic> = self.modules.iter().flat_map(|node| self.check_passed_to(node)).collect();
        let passed_on: Vec<_> =
            self.modules.iter().enumerate().flat_map(|(id, node)| self.passed_on(id, node)).collect();
        if !found.iter().any(Diagnostic::is_error) {
            // The first one that is looked for and not there is the end of it.
            found.extend(
                passed_on.first().map(|(provider, _)| Diagnostic::error(format!("missing provider {provider}"), "")),
            );
        }
        found.extend(passed_on.into_iter().map(|(_, warning)| warning));
        found
    }

    /// Providers that a module passes on, but has neither configured nor been passed: whose configuration that is to be, nobody
    /// can say, even where the module itself would inherit one.
    fn passed_on(&self, id: ModuleId, node: &ModuleNode) -> Vec<(String, Diagnostic)> {
        let Some((parent, name)) = &node.parent else { return Vec::new() };
        let parent = &self.modules[*parent];
        let call = &parent.module.calls[name];
        let mut found = Vec::new();
        for (outer, alias) in node.module.calls.values().flat_map(|call| call.providers.values()) {
            let mut blocks = node.module.providers.iter().chain(&node.proxies);
            let has = call.providers.contains_key(&(outer.clone(), None))
                || blocks.any(|block| block.name == *outer && block.alias.is_none())
                || !node.module.required_providers.contains_key(outer);
            if alias.is_some() || has {
                continue;
            }
            let detail = format!(
                "The configuration for {} expects to inherit a configuration for provider hashicorp/{outer} with local name \
                 {outer:?}, but {} doesn't pass a configuration under that name.\n\nTo satisfy this requirement, add an entry \
                 for {outer:?} to the \"providers\" argument in the module {name:?} block.",
                node.path,
                parent.name()
            );
            let warning = Diagnostic {
                severity: Severity::Warning,
                range: Some(range(call.range.clone())),
                ..Diagnostic::error("Missing required provider configuration", detail)
            };
            found.push((self.absolute(id, &node.sources.address(outer, None)), warning));
        }
        found
    }

    fn check_passed_to(&self, node: &ModuleNode) -> Vec<Diagnostic> {
        let Some((parent, name)) = &node.parent else { return Vec::new() };
        let parent = &self.modules[*parent];
        let call = &parent.module.calls[name];
        let mut found = Vec::new();
        let mut note = |severity: Severity, summary: &str, detail: String| {
            let at = range(call.range.clone());
            found.push(Diagnostic { severity, range: Some(at), ..Diagnostic::error(summary, detail) });
        };
        for ((inner, alias), (outer, _)) in &call.providers {
            let required = node.module.required_providers.get(inner);
            let mut blocks = node.module.providers.iter().chain(&node.proxies);
            let configured = blocks.any(|block| block.name == *inner && block.alias == *alias);
            let (ours, theirs) =
                (short(&parent.sources.address(outer, None)), short(&node.sources.address(inner, None)));
            match alias {
                Some(alias) if !configured && required.is_none_or(|required| !required.aliases.contains_key(alias)) => {
                    let named = format!("{inner}.{alias}");
                    let detail = format!(
                        "The child module does not declare any provider requirement with the local name {named:?}.\n\nIf you \
                         also control the child module, you can add a required_providers entry named {named:?} with the \
                         source address {ours:?} to accept this provider configuration."
                    );
                    note(Severity::Error, "Reference to undefined provider", detail);
                    continue;
                }
                None if required.is_none() && !configured => {
                    let detail = format!(
                        "There is no explicit declaration for local provider name {inner:?} in {}, so OpenTofu is assuming you \
                         mean to pass a configuration for {theirs:?}.\n\nIf you also control the child module, add a \
                         required_providers entry named {inner:?} with the source address {theirs:?}.",
                        node.path
                    );
                    note(Severity::Warning, "Reference to undefined provider", detail);
                }
                _ => {}
            }
            if ours != theirs {
                let detail = format!(
                    "The local name {outer:?} in {} represents provider {ours:?}, but {inner:?} in {} represents {theirs:?}.\n\n\
                     Each provider has its own distinct configuration schema and provider types, so this module's {inner:?} can \
                     be assigned only a configuration for {theirs}, which is not required by {}.",
                    parent.name(),
                    node.path,
                    node.path
                );
                note(Severity::Error, "Provider type mismatch", detail);
            }
        }
        for (inner, required) in &node.module.required_providers {
            for alias in required.aliases.keys() {
                if call.providers.contains_key(&(inner.clone(), Some(alias.clone()))) {
                    continue;
                }
                let (named, source) = (format!("{inner}.{alias}"), short(&node.sources.address(inner, None)));
                let detail = format!(
                    "The child module requires an additional configuration for provider {source}, with the local name \
                     {named:?}.\n\nRefer to the module's documentation to understand the intended purpose of this additional \
                     provider configuration, and then add an entry for {named} in the \"providers\" meta-argument in the \
                     module block to choose which provider configuration the module should use for that purpose."
                );
                note(Severity::Error, "Missing required provider configuration", detail);
            }
        }
        found
    }
}
