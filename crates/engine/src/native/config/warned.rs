use std::collections::BTreeMap;

use landform_lang::ProviderConfig;

use super::{Config, ModuleNode, range};
use crate::native::object::short;
use crate::{Diagnostic, Severity};

impl Config {
    /// What is warned of whenever the configuration is read, also for the apply of a saved plan.
    pub fn read_warnings(&self) -> Vec<Diagnostic> {
        let read = self.modules.iter().flat_map(|node| read(&node.module));
        let undeclared = self.warnings.iter().filter(|warning| warning.summary.contains("for undeclared variable"));
        let idle = self.modules.iter().flat_map(|node| [ignored_backends(node), empty_blocks(node)].concat());
        read.chain(self.undecided()).chain(idle).chain(undeclared.cloned()).collect()
    }
}

/// What can be told from a module's text alone.
fn read(module: &landform_lang::Module) -> Vec<Diagnostic> {
    module.warnings.iter().cloned().chain(landform_lang::repeated_alike(module)).map(warn).collect()
}

pub fn warn(warning: landform_lang::Diagnostic) -> Diagnostic {
    Diagnostic {
        severity: Severity::Warning,
        range: warning.range.map(range),
        ..Diagnostic::error(warning.summary, warning.detail)
    }
}

/// What a module is warned of that can be told from its text, and from who calls it.
pub fn module_warnings(node: &ModuleNode, modules: &[ModuleNode]) -> Vec<Diagnostic> {
    let mut warnings = read(&node.module);
    if let Some((parent, name)) = &node.parent {
        for (input, expr) in &modules[*parent].module.calls[name].inputs {
            let variable = node.module.variables.get(input);
            for lost in variable.into_iter().flat_map(|variable| landform_lang::discarded(expr, &variable.ty)) {
                let nested = if lost.path.is_empty() { "" } else { " nested value " };
                let detail = format!(
                    "The object type for input variable {input:?}{nested}{} does not include an attribute named {:?}, so this \
                     definition is unused.{}",
                    lost.path, lost.name, lost.hint
                );
                let warning = landform_lang::Diagnostic::new("Object attribute is ignored", detail);
                warnings.push(warn(warning.at(lost.range)));
            }
            if let Some(why) = variable.and_then(|variable| variable.deprecated.as_ref()).filter(|_| !is_null(expr)) {
                let detail = format!("Variable {input:?} is marked as deprecated with the following message:\n{why}");
                let warning =
                    landform_lang::Diagnostic::new("Variable marked as deprecated by the module author", detail);
                warnings.push(warn(warning.at(expr.range())));
            }
        }
    }
    warnings
}

/// The state is kept where the root module says, whatever another one does.
pub fn ignored_backends(node: &ModuleNode) -> Vec<Diagnostic> {
    let detail = "Any selected backend applies to the entire configuration, so OpenTofu expects provider configurations only in \
                  the root module.\n\nThis is a warning rather than an error because it's sometimes convenient to temporarily \
                  call a root module as a child module for testing purposes, but this backend configuration block will have no \
                  effect.";
    let ignored =
        node.module.ignored.iter().filter(|ignored| node.parent.is_some() && ignored.construct == "backend block");
    let warned = ignored.map(|ignored| {
        let warning = landform_lang::Diagnostic::new("Backend configuration ignored", detail);
        warn(warning.at(ignored.range.clone()))
    });
    warned.collect()
}

/// `provider` blocks in modules that say nothing, one warning for each provider.
pub fn empty_blocks(node: &ModuleNode) -> Vec<Diagnostic> {
    let mut by_name: BTreeMap<&str, Vec<&ProviderConfig>> = BTreeMap::new();
    let blocks = node.module.providers.iter().chain(&node.proxies);
    for block in blocks.filter(|block| node.parent.is_some() && block.is_empty()) {
        by_name.entry(&block.name).or_default().push(block);
    }
    let warned = by_name.into_iter().map(|(name, mut blocks)| {
        blocks.sort_by_key(|block| block.range.to_string());
        // One with an alias alone is looked for by the name with the alias, in vain.
        let source = match blocks.iter().any(|block| block.alias.is_none()) {
            true => short(&node.sources.address(name, None)),
            false => format!("hashicorp/{name}"),
        };
        let mut detail = format!(
            "Earlier versions of OpenTofu used empty provider blocks (\"proxy provider configurations\") for child modules to \
             declare their need to be passed a provider configuration by their callers. That approach was ambiguous and is now \
             deprecated.\n\nIf you control this module, you can migrate to the new declaration syntax by removing all of the \
             empty provider {name:?} blocks and then adding or updating an entry like the following to the required_providers \
             block of {}:\n    {name} = {{\n      source = {source:?}\n",
            node.path
        );
        if blocks.iter().any(|block| block.alias.is_some()) {
            let alias = |block: &&ProviderConfig| {
                let alias = block.alias.as_ref().map(|alias| format!(".{alias}")).unwrap_or_default();
                format!("        {name}{alias},\n")
            };
            let mut aliases: Vec<String> = blocks.iter().map(alias).collect();
            aliases.sort();
            detail += &format!("      configuration_aliases = [\n{}      ]\n", aliases.concat());
        }
        detail.push_str("    }");
        let warning = landform_lang::Diagnostic::new("Redundant empty provider block", detail);
        warn(warning.at(blocks[0].range.clone()))
    });
    warned.collect()
}

/// Whether nothing is given by this expression after all.
fn is_null(expr: &landform_lang::Expr) -> bool {
    let value = landform_lang::evaluate(expr, &landform_lang::NoReferences, &mut landform_lang::Budget::default());
    value.is_ok_and(|value| value.is_null())
}
