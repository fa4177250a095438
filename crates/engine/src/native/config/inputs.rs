//! The values of input variables.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use landform_cty::{Type, Value};
use landform_lang::{InputSource, Module, Origin, VariableFlag, variable_value};

use super::translate;
use crate::native::object::{Outcome, bare};
use crate::{Diagnostic, EngineError, Severity, Workspace};

/// What a workspace gives for the variables of its module.
pub fn of_workspace(
    module: &Module,
    workspace: &Workspace,
    warnings: &mut Vec<Diagnostic>,
) -> Outcome<(BTreeMap<String, Value>, Wrong)> {
    let mut warn = |summary: &str, detail: String| {
        warnings.push(Diagnostic { severity: Severity::Warning, ..Diagnostic::error(summary, detail) });
    };
    let undeclared: Vec<&String> =
        workspace.variables.keys().filter(|name| !module.variables.contains_key(*name)).collect();
    for name in undeclared.iter().take(2) {
        let detail = match &workspace.variables[*name].origin {
            Origin::File(place) => format!(
                "The root module does not declare a variable named {name:?} but a value was found in file {:?}. If you meant to \
                 use this value, add a \"variable\" block to the configuration.\n\nTo silence these warnings, use TF_VAR_... \
                 environment variables to provide certain \"global\" settings to all configurations in your organization. To \
                 reduce the verbosity of these warnings, use the -compact-warnings option.",
                place.file
            ),
            _ => format!("The configuration does not declare a variable named {name:?}; its value is not used."),
        };
        warn("Value for undeclared variable", detail);
    }
    if let Some(more) = undeclared.len().checked_sub(2).filter(|more| *more > 0) {
        let detail = format!(
            "In addition to the other similar warnings shown, {more} other variable(s) defined without being declared."
        );
        warn("Values for undeclared variables", detail);
    }
    let (mut values, mut found, mut wrong) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
    for (name, variable) in &module.variables {
        let given =
            workspace.variables.get(name).map(|given| (InputSource::Json(given.value.clone()), given.origin.clone()));
        if let Some(why) = variable.deprecated.as_ref().filter(|_| given.is_some()) {
            let detail = format!("The root variable {name:?} is deprecated with the following message: {why}");
            let warning = Diagnostic::error("Deprecated variable used from the root module", detail);
            let at = Some(super::range(variable.range.clone()));
            warnings.push(Diagnostic { severity: Severity::Warning, range: at, ..warning });
        }
        match variable_value(variable, given.as_ref()) {
            Ok(value) => drop(values.insert(name.clone(), value)),
            Err(diagnostics) if given.is_none() => found.extend(translate(diagnostics)),
            Err(diagnostics) => drop(wrong.insert(name.clone(), translate(diagnostics))),
        }
    }
    if found.is_empty() { Ok((values, wrong)) } else { Err(found) }
}

/// What is wrong with the values of variables. OpenTofu finds it where a variable is evaluated, beside all else that it does.
pub type Wrong = BTreeMap<String, Vec<Diagnostic>>;

/// The variables whose values no plan keeps: ephemeral ones, and what is given without being declared.
pub fn unkept(folder: &Path, given: &BTreeMap<String, crate::Variable>) -> Result<BTreeSet<String>, EngineError> {
    let module = landform_lang::load(folder).map_err(|found| EngineError::Diagnostics(translate(found)))?;
    let ephemeral = module.variables.values().filter(|variable| variable.ephemeral).map(|variable| &variable.name);
    let undeclared = given.keys().filter(|name| !module.variables.contains_key(*name));
    Ok(ephemeral.chain(undeclared).cloned().collect())
}

/// A variable that nothing gives a value.
pub struct Missing {
    pub name: String,
    pub description: String,
    pub ephemeral: bool,
}

/// The variables that somebody would have to be asked for, by name. What is wrong with the others is said elsewhere.
pub fn missing(folder: &Path, flags: &[VariableFlag]) -> Result<Vec<Missing>, EngineError> {
    let Ok(module) = landform_lang::load(folder) else { return Ok(Vec::new()) };
    let Ok(files) = landform_lang::read_variable_files(folder, flags) else { return Ok(Vec::new()) };
    let Ok(given) = landform_lang::collect_inputs(&module, files, flags, std::env::vars()) else {
        return Ok(Vec::new());
    };
    let unset = module.variables.values().filter(|one| one.default.is_none() && !given.contains_key(&one.name));
    let told = |one: &landform_lang::Variable| Missing {
        name: one.name.clone(),
        description: one.description.clone(),
        ephemeral: one.ephemeral,
    };
    Ok(unset.map(told).collect())
}

/// Variables of a folder, as `landform tf` collects them: from the environment, from files, and from flags.
pub fn collect(folder: &Path, flags: &[VariableFlag]) -> Result<BTreeMap<String, crate::Variable>, EngineError> {
    read_root(folder, flags, &mut |_| {})
}

/// What OpenTofu reads of a folder before it does anything, also for commands that need nothing but the state: the files
/// with values, and all others, but not what is between them.
pub fn check_files(folder: &Path) -> Result<(), EngineError> {
    check_variable_files(folder)?;
    landform_lang::check_files(folder).map_err(|found| EngineError::Diagnostics(translate(found)))
}

/// The first part of it: whatever is wrong with the configuration, what is wrong here is said first.
pub fn check_variable_files(folder: &Path) -> Result<(), EngineError> {
    let read = landform_lang::read_variable_files(folder, &[]).map(drop);
    read.map_err(|found| EngineError::Diagnostics(translate(found)))
}

/// The same; what reading the folder's own files warns of is told at once. OpenTofu tells it again with the plan.
pub fn read_root(
    folder: &Path,
    flags: &[VariableFlag],
    tell: &mut dyn FnMut(Vec<Diagnostic>),
) -> Result<BTreeMap<String, crate::Variable>, EngineError> {
    let failed = |diagnostics| EngineError::Diagnostics(translate(diagnostics));
    let files = landform_lang::read_variable_files(folder, flags).map_err(failed)?;
    let module = landform_lang::load(folder).map_err(failed)?;
    let read = module.warnings.iter().cloned().map(super::warned::warn);
    tell(read.chain(super::removals::undecided(&module)).collect());
    let given = landform_lang::collect_inputs(&module, files, flags, std::env::vars()).map_err(failed)?;
    let (mut variables, mut found) = (BTreeMap::new(), Vec::new());
    for (name, source) in &given {
        let origin = source.1.clone();
        let Some(variable) = module.variables.get(name) else {
            // Files may have values for other configurations, too: whoever gives them is told.
            let value = serde_json::Value::Null;
            variables.insert(name.clone(), crate::Variable { value, sensitive: false, origin });
            continue;
        };
        // What was given is handed on as it is; the engine converts it, and a plan shows it as it was.
        let typed = variable.typed && !variable.ty.is_primitive();
        let unconverted = landform_lang::Variable {
            ty: Type::Dynamic,
            typed,
            defaults: landform_lang::Defaults::default(),
            ..variable.clone()
        };
        let value = match variable_value(&unconverted, Some(source)) {
            Ok(value) => bare(&value),
            Err(diagnostics) => {
                found.extend(translate(diagnostics));
                // What cannot be read is not there.
                found.extend(variable_value(variable, None).err().map(translate).into_iter().flatten());
                continue;
            }
        };
        let value = value.to_plain_json().map_err(|error| {
            EngineError::Diagnostics(vec![Diagnostic::error("Invalid value for input variable", error.to_string())])
        })?;
        variables.insert(name.clone(), crate::Variable { value, sensitive: variable.sensitive, origin });
    }
    if found.is_empty() { Ok(variables) } else { Err(EngineError::Diagnostics(found)) }
}
