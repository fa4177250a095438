use super::{Config, ModuleNode, range};
use crate::{Diagnostic, Severity};

impl Config {
    /// What is warned of whenever the configuration is read, also for the apply of a saved plan.
    pub fn read_warnings(&self) -> Vec<Diagnostic> {
        let read = self.modules.iter().flat_map(|node| node.module.warnings.iter().cloned().map(warn));
        let undeclared = self.warnings.iter().filter(|warning| warning.summary.contains("for undeclared variable"));
        read.chain(self.undecided()).chain(undeclared.cloned()).collect()
    }
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
    let mut warnings: Vec<Diagnostic> = node.module.warnings.iter().cloned().map(warn).collect();
    if let Some((parent, name)) = &node.parent {
        for (input, expr) in &modules[*parent].module.calls[name].inputs {
            let variable = node.module.variables.get(input);
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

/// Whether nothing is given by this expression after all.
fn is_null(expr: &landform_lang::Expr) -> bool {
    let value = landform_lang::evaluate(expr, &landform_lang::NoReferences, &mut landform_lang::Budget::default());
    value.is_ok_and(|value| value.is_null())
}
