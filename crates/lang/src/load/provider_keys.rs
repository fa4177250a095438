//! `provider` blocks with `for_each`, and who chooses one of the configurations that they make.

use super::Loader;
use super::references::ProviderName;
use crate::constant::is_constant;
use crate::{Diagnostic, Expr, Module, ProviderConfig, Repetition, SourceRange};

/// A reference to a provider: what kind of block it stands in, the name, the key, and where it is.
pub(super) type Chosen = (&'static str, ProviderName, Option<Expr>, SourceRange);

impl Loader {
    pub(super) fn check_provider_keys(&mut self) {
        for block in self.module.providers.clone() {
            let Some(for_each) = &block.for_each else { continue };
            if !self.prefix.is_empty() {
                self.unsupported("provider for_each in a module", for_each.range());
            } else if !is_constant(&self.module, for_each) {
                // It has to be known before anything is evaluated.
                self.unsupported("provider for_each by what is not constant", for_each.range());
            }
        }
        for (kind, name, key, range) in std::mem::take(&mut self.chosen) {
            let block = self.module.providers.iter().find(|block| (&block.name, &block.alias) == (&name.0, &name.1));
            if let Some((detail, range)) = unsuitable(&name, key.as_ref(), block, range) {
                let problem = Diagnostic::new(format!("Invalid {kind} provider configuration"), detail);
                self.found.push(problem.at(range));
            }
        }
        self.check_imports();
    }

    /// Where an import names a provider, it is to be that of its resource. The mistake comes with words about the lock file
    /// in OpenTofu.
    fn check_imports(&mut self) {
        for import in self.module.imports.clone() {
            let (Some(named), [(local, _)]) = (&import.provider, &import.to[..]) else { continue };
            let target = self.module.resources.iter().find(|resource| resource.address() == *local);
            if target.is_some_and(|resource| resource.provider.as_ref() != Some(named)) {
                self.unsupported("import by another provider than its resource's", import.range);
            }
        }
    }
}

/// Warnings about providers that are repeated over what their resources are repeated over: who takes an element out of that has no
/// provider left to end the object. OpenTofu looks for this when it has read all modules, and not with the rest of one.
pub fn repeated_alike(module: &Module) -> Vec<Diagnostic> {
    let repeated = |name: &ProviderName| {
        let block = module.providers.iter().find(|block| (&block.name, &block.alias) == (&name.0, &name.1));
        block.and_then(|block| block.for_each.clone())
    };
    let mut warnings = Vec::new();
    for call in module.calls.values() {
        let Repetition::ForEach(own) = &call.repetition else { continue };
        let passed = call.providers.iter().filter(|(name, _)| call.provider_keys.contains_key(*name));
        if passed.filter_map(|(_, theirs)| repeated(theirs)).any(|theirs| alike(own, &theirs)) {
            warnings.push(same_keys("module", &format!("module.{}", call.name), own));
        }
    }
    for resource in module.resources.iter().filter(|resource| !resource.data) {
        let (Repetition::ForEach(own), Some(_)) = (&resource.repetition, &resource.provider_key) else { continue };
        if resource.provider.as_ref().and_then(repeated).is_some_and(|theirs| alike(own, &theirs)) {
            warnings.push(same_keys("resource", &resource.address(), own));
        }
    }
    warnings
}

/// What is wrong with a key, or without one.
fn unsuitable(
    (name, alias): &ProviderName,
    key: Option<&Expr>,
    block: Option<&ProviderConfig>,
    range: SourceRange,
) -> Option<(String, SourceRange)> {
    let repeated = block.is_some_and(|block| block.for_each.is_some());
    Some(match (key, alias) {
        (None, _) if repeated => (
            "A reference to a provider configuration which uses for_each requires an instance key. Passing a collection of \
             provider instances into a child module is not allowed."
                .to_owned(),
            range,
        ),
        (Some(key), Some(alias)) if !repeated => match block.filter(|block| !block.is_empty()) {
            Some(_) => (
                "An instance key can be specified only for a provider configuration that uses for_each.".to_owned(),
                key.range(),
            ),
            None => (
                format!(
                    "This module doesn't declare a provider {name:?} block with alias = {alias:?}, which is required for use \
                     with for_each."
                ),
                range,
            ),
        },
        _ => return None,
    })
}

/// Whether two expressions that refer to something are written the same way.
fn alike(one: &Expr, other: &Expr) -> bool {
    let text =
        |expr: &Expr| expr.node.to_string().chars().filter(|character| !character.is_whitespace()).collect::<String>();
    !crate::references(one).is_empty() && text(one) == text(other)
}

fn same_keys(kind: &str, address: &str, for_each: &Expr) -> Diagnostic {
    let detail = format!(
        "This provider configuration uses the same for_each expression as a {kind}, which means that subsequent removal of \
         elements from this collection would cause a planning error.\n\nOpenTofu relies on a provider instance to destroy \
         resource instances that are associated with it, and so the provider instance must outlive all of its resource \
         instances by at least one plan/apply round. For removal of instances to succeed in future you must structure the \
         configuration so that the provider block's for_each expression can produce a superset of the instances of the \
         resources associated with the provider configuration. Refer to the OpenTofu documentation for specific \
         suggestions.\n\nTo destroy this object before removing the provider configuration, consider first performing a \
         targeted destroy:\n    tofu apply -destroy -target={address}"
    );
    Diagnostic::new(format!("Provider configuration for_each matches {kind}"), detail).at(for_each.range())
}
