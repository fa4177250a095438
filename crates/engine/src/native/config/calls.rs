//! What a module may not do, and its caller not ask of it.

use super::{Config, ModuleId, range};
use crate::Diagnostic;
use crate::native::object::Outcome;

impl Config {
    /// What a call gives to a module must be what the module asks for.
    pub(super) fn check_calls(&self) -> Outcome<()> {
        let mut found = Vec::new();
        for node in &self.modules {
            let Some((parent, name)) = &node.parent else { continue };
            let call = &self.modules[*parent].module.calls[name];
            let mut note = |summary: &str, detail: String, at: &landform_lang::SourceRange| {
                found.push(Diagnostic { range: Some(range(at.clone())), ..Diagnostic::error(summary, detail) });
            };
            for (input, expr) in &call.inputs {
                if !node.module.variables.contains_key(input) {
                    let detail = format!("An argument named {input:?} is not expected here.");
                    note("Unsupported argument", detail, &expr.range());
                }
            }
            for variable in node.module.variables.values() {
                if variable.default.is_none() && !call.inputs.contains_key(&variable.name) {
                    let detail = format!("The argument {:?} is required, but no definition was found.", variable.name);
                    note("Missing required argument", detail, &brace_behind(&call.range));
                }
            }
        }
        found.extend((1..self.modules.len()).flat_map(|id| self.check_inner(id)));
        if found.is_empty() { Ok(()) } else { Err(found) }
    }

    /// What only the root module may do.
    fn check_inner(&self, id: ModuleId) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        let mut note = |summary: &str, detail: String, at: &landform_lang::SourceRange| {
            found.push(Diagnostic { range: Some(range(at.clone())), ..Diagnostic::error(summary, detail) });
        };
        let node = &self.modules[id];
        for import in &node.module.imports {
            let detail = format!(
                "An import block was detected in {:?}. Import blocks are only allowed in the root module.",
                node.path
            );
            note("Invalid import configuration", detail, &import.range);
        }
        found
    }
}

/// Where a block begins whose header this is, as it is usually written.
pub fn brace_behind(header: &landform_lang::SourceRange) -> landform_lang::SourceRange {
    let (line, column) = (header.end.0, header.end.1 + 1);
    landform_lang::SourceRange { line: line as usize, column: column as usize, end: (line, column), ..header.clone() }
}
