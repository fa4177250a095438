//! The values of input variables.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use landform_cty::{Type, Value};
use landform_lang::{InputSource, Module, VariableFlag, variable_value};

use super::translate;
use crate::native::object::{Outcome, bare};
use crate::{Diagnostic, EngineError, Severity, Workspace};

/// What a workspace gives for the variables of its module.
pub fn of_workspace(
    module: &Module,
    workspace: &Workspace,
    warnings: &mut Vec<Diagnostic>,
) -> Outcome<BTreeMap<String, Value>> {
    for name in workspace.variables.keys().filter(|name| !module.variables.contains_key(*name)) {
        let detail = format!("The configuration does not declare a variable named {name:?}; its value is not used.");
        let warning = Diagnostic::error("Value for undeclared variable", detail);
        warnings.push(Diagnostic { severity: Severity::Warning, ..warning });
    }
    let mut values = BTreeMap::new();
    let mut found = Vec::new();
    for (name, variable) in &module.variables {
        let given = workspace.variables.get(name).map(|given| InputSource::Json(given.value.clone()));
        match variable_value(variable, given.as_ref()) {
            Ok(value) => drop(values.insert(name.clone(), value)),
            Err(diagnostics) => found.extend(translate(diagnostics)),
        }
    }
    if found.is_empty() { Ok(values) } else { Err(found) }
}

/// The variables of a folder whose values are never kept.
pub fn ephemeral(folder: &Path) -> Result<BTreeSet<String>, EngineError> {
    let module = landform_lang::load(folder).map_err(|found| EngineError::Diagnostics(translate(found)))?;
    Ok(module.variables.values().filter(|variable| variable.ephemeral).map(|variable| variable.name.clone()).collect())
}

/// Variables of a folder, as `landform tf` collects them: from the environment, from files, and from flags.
pub fn collect(folder: &Path, flags: &[VariableFlag]) -> Result<BTreeMap<String, crate::Variable>, EngineError> {
    let failed = |diagnostics| EngineError::Diagnostics(translate(diagnostics));
    let module = landform_lang::load(folder).map_err(failed)?;
    let given = landform_lang::collect_inputs(&module, flags, std::env::vars()).map_err(failed)?;
    let mut variables = BTreeMap::new();
    for (name, source) in &given {
        let variable = &module.variables[name];
        // What was given is handed on as it is; the engine converts it, and a plan shows it as it was.
        let typed = variable.typed && !variable.ty.is_primitive();
        let unconverted = landform_lang::Variable {
            ty: Type::Dynamic,
            typed,
            defaults: landform_lang::Defaults::default(),
            ..variable.clone()
        };
        let value = bare(&variable_value(&unconverted, Some(source)).map_err(failed)?);
        let value = value.to_plain_json().map_err(|error| {
            EngineError::Diagnostics(vec![Diagnostic::error("Invalid value for input variable", error.to_string())])
        })?;
        variables.insert(name.clone(), crate::Variable { value, sensitive: variable.sensitive });
    }
    Ok(variables)
}
