//! Names: which can be given, and what is said where one is given twice.

use hcl_edit::structure::Block;

use super::Loader;
use crate::{Body, Diagnostic, SourceRange};

const RULE: &str =
    "A name must start with a letter or underscore and may contain only letters, digits, underscores, and dashes.";

/// What a `module` block means by these is not a variable of the module.
const RESERVED: [&str; 8] =
    ["source", "version", "providers", "count", "for_each", "lifecycle", "depends_on", "locals"];

impl Loader {
    /// Whether the labels of a block can be names of what it declares.
    pub(super) fn check_labels(&mut self, body: &Body, block: &Block) {
        let kinds: &[&str] = match (block.ident.as_str(), block.labels.len()) {
            ("variable", 1) => &["variable name"],
            ("output", 1) => &["output name"],
            ("module", 1) => &["module instance name"],
            ("check", 1) => &["check block name"],
            ("resource", 2) => &["resource type name", "resource name"],
            ("data", 2) => &["data source name", "data resource name"],
            _ => return,
        };
        for (what, label) in kinds.iter().zip(&block.labels) {
            if hcl_edit::Ident::try_new(label.as_str()).is_err() {
                self.found.push(Diagnostic::new(format!("Invalid {what}"), RULE).at(body.place(label)));
            }
            if *what == "variable name" && RESERVED.contains(&label.as_str()) {
                let detail = format!(
                    "The variable name {:?} is reserved due to its special meaning inside module blocks.",
                    label.as_str()
                );
                self.found.push(Diagnostic::new("Invalid variable name", detail).at(body.place(label)));
            }
        }
    }

    /// What cannot be read as an alias is no valid one either. OpenTofu does not say where it stands.
    pub(super) fn check_alias(&mut self, alias: Option<&str>) {
        if alias.is_none_or(|alias| hcl_edit::Ident::try_new(alias).is_err()) {
            let detail = format!("An alias must be a valid name. {RULE}");
            self.found.push(Diagnostic::new("Invalid provider configuration alias", detail));
        }
    }

    pub(super) fn duplicate(&mut self, summary: impl Into<String>, detail: String, range: SourceRange) {
        self.doubles.insert(self.found.len());
        self.found.push(Diagnostic::new(summary, detail).at(range));
    }
}
