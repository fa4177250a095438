//! Names: which can be given, and what is said where one is given twice.

use super::Loader;
use crate::{Diagnostic, SourceRange};

const RULE: &str =
    "A name must start with a letter or underscore and may contain only letters, digits, underscores, and dashes.";

/// What a `module` block means by these is not a variable of the module.
const RESERVED: [&str; 8] =
    ["source", "version", "providers", "count", "for_each", "lifecycle", "depends_on", "locals"];

impl Loader {
    /// `what` is the kind of name: `variable name`.
    pub(super) fn check_name(&mut self, what: &str, name: &str, range: &SourceRange) {
        if hcl_edit::Ident::try_new(name).is_err() {
            self.found.push(Diagnostic::new(format!("Invalid {what}"), RULE).at(range.clone()));
        }
    }

    pub(super) fn check_variable_name(&mut self, name: &str, range: &SourceRange) {
        self.check_name("variable name", name, range);
        if RESERVED.contains(&name) {
            let detail =
                format!("The variable name {name:?} is reserved due to its special meaning inside module blocks.");
            self.found.push(Diagnostic::new("Invalid variable name", detail).at(range.clone()));
        }
    }

    pub(super) fn check_resource_names(&mut self, data: bool, [kind, name]: [&str; 2], range: &SourceRange) {
        let (what_kind, what_name) = match data {
            true => ("data source name", "data resource name"),
            false => ("resource type name", "resource name"),
        };
        self.check_name(what_kind, kind, range);
        self.check_name(what_name, name, range);
    }

    pub(super) fn check_alias(&mut self, alias: Option<&str>, range: &SourceRange) {
        if alias.is_some_and(|alias| hcl_edit::Ident::try_new(alias).is_err()) {
            let problem = Diagnostic::new(
                "Invalid provider configuration alias",
                format!("An alias must be a valid name. {RULE}"),
            );
            self.found.push(problem.at(range.clone()));
        }
    }

    pub(super) fn duplicate(&mut self, summary: impl Into<String>, detail: String, range: SourceRange) {
        self.found.push(Diagnostic::new(summary, detail).at(range));
    }
}
