//! What `removed` blocks say.

use landform_lang::{Module, Removed};

use super::{Config, config_address, module_path, range};
use crate::native::eval::warning;
use crate::{Address, Diagnostic};

impl Config {
    /// What a `removed` block says about an object that the configuration does not have: whether it is to be destroyed.
    /// The last block about it counts.
    pub fn removal(&self, address: &Address) -> Option<bool> {
        let wanted = config_address(address);
        let module = module_path(&address.module);
        let about = |from: &str| wanted == from || module == from || module.starts_with(&format!("{from}."));
        let said = self.removals().filter(|(from, _)| about(from)).last();
        said.map(|(_, removed)| removed.destroy == Some(true))
    }

    /// What is said to be removed, and is declared all the same.
    pub fn still_declared(&self) -> Vec<Diagnostic> {
        let problem = |(from, removed): (String, &Removed)| {
            let noun = if self.by_address.contains_key(&from) {
                "resource"
            } else if self.modules.iter().any(|node| node.path == from) {
                "module"
            } else {
                return None;
            };
            let detail = format!(
                "This statement declares a removal of the {noun} {from}, but this {noun} block still exists in the \
                 configuration. Please remove the {noun} block."
            );
            let problem = Diagnostic::error(format!("Removed {noun} block still exists"), detail);
            Some(Diagnostic { range: Some(range(removed.range.clone())), ..problem })
        };
        self.removals().filter_map(problem).collect()
    }

    /// All `removed` blocks, with the whole addresses that they are about.
    fn removals(&self) -> impl Iterator<Item = (String, &Removed)> {
        self.modules.iter().enumerate().flat_map(move |(id, node)| {
            node.module.removed.iter().map(move |removed| (self.absolute(id, &removed.from), removed))
        })
    }

    /// Blocks that leave open what becomes of the object.
    pub fn undecided(&self) -> Vec<Diagnostic> {
        self.modules.iter().flat_map(|node| undecided(&node.module)).collect()
    }
}

/// The same of one module.
pub fn undecided(module: &Module) -> Vec<Diagnostic> {
    let detail = "It is recommended for each 'removed' block configured to have also the 'lifecycle' block defined. By \
                      not specifying if the resource should be destroyed or not, could lead to unwanted behavior.";
    let warn = |removed: &Removed| Diagnostic {
        range: Some(range(removed.range.clone())),
        ..warning(Diagnostic::error("Missing lifecycle from the removed block", detail))
    };
    module.removed.iter().filter(|removed| removed.destroy.is_none()).map(warn).collect()
}
