//! Values for the root module's input variables: from a request, from files, from the command line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hcl_edit::structure::Structure;
use landform_cty::{Mark, Type, Value};

use crate::reference::{ConstructKind, inspect};
use crate::source::Source;
use crate::{Budget, Diagnostic, Diagnostics, Expr, Module, NoReferences, Scope, SourceRange, Variable, evaluate};

/// A value that somebody gave for a variable, in the form they gave it. It may be a secret, so it cannot be printed.
#[derive(Clone)]
pub enum InputSource {
    /// Data: no string in it is ever read as a template.
    Json(serde_json::Value),
    /// Text of a command line or an environment: the variable's type decides how it is read.
    Text(String),
    /// An expression of a `.tfvars` file.
    Expression(Expr),
}

impl std::fmt::Debug for InputSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(a value)")
    }
}

/// Where a value comes from, for the message about one that does not fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// From whoever runs this, by a way that has no name.
    #[default]
    Outside,
    Flag,
    Environment,
    File(SourceRange),
}

impl Origin {
    fn words(&self, name: &str) -> Option<String> {
        match self {
            Origin::Outside => Some("set from outside of the configuration".to_owned()),
            Origin::Flag => Some(format!("set using -var=\"{name}=...\"")),
            Origin::Environment => Some(format!("set using the TF_VAR_{name} environment variable")),
            Origin::File(_) => None,
        }
    }
}

pub type Inputs = BTreeMap<String, (InputSource, Origin)>;

/// A `-var` or `-var-file` argument.
#[derive(Clone)]
pub enum VariableFlag {
    Var { name: String, value: String },
    File(PathBuf),
}

/// Gathers inputs as OpenTofu does. Later sources win: `TF_VAR_*`, `terraform.tfvars`, `terraform.tfvars.json`,
/// `*.auto.tfvars` and `*.auto.tfvars.json` by name, then the flags in their order. Files may have values for variables that the
/// module does not declare.
pub fn collect_inputs(
    module: &Module,
    files: VariableFiles,
    flags: &[VariableFlag],
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<Inputs, Diagnostics> {
    let mut inputs = Inputs::new();
    for (key, value) in environment {
        // Unlike a flag, an environment variable may be meant for another configuration.
        if let Some(name) = key.strip_prefix("TF_VAR_")
            && module.variables.contains_key(name)
        {
            inputs.insert(name.to_owned(), (InputSource::Text(value), Origin::Environment));
        }
    }
    inputs.extend(files.automatic);
    let mut named = files.named.into_iter();
    for flag in flags {
        match flag {
            VariableFlag::File(_) => inputs.extend(named.next().unwrap_or_default()),
            VariableFlag::Var { name, value } if module.variables.contains_key(name) => {
                inputs.insert(name.clone(), (InputSource::Text(value.clone()), Origin::Flag));
            }
            VariableFlag::Var { name, .. } => {
                let detail = format!(
                    "A variable named {name:?} was assigned on the command line, but the root module does not declare \
                     a variable of that name. To use this value, add a \"variable\" block to the configuration."
                );
                return Err(Diagnostic::new("Value for undeclared variable", detail).into());
            }
        }
    }
    Ok(inputs)
}

/// The values in files: those that a folder has for all its commands, and those that flags name, in their order.
#[derive(Default)]
pub struct VariableFiles {
    automatic: Inputs,
    named: Vec<Inputs>,
}

/// Reads the files with values, whatever the configuration is like.
pub fn read_variable_files(folder: &Path, flags: &[VariableFlag]) -> Result<VariableFiles, Diagnostics> {
    let mut files = VariableFiles::default();
    for file in automatic_files(folder) {
        files.automatic.extend(read_file(&folder.join(&file), &file)?);
    }
    for flag in flags {
        if let VariableFlag::File(path) = flag {
            files.named.push(read_file(path, &path.display().to_string())?);
        }
    }
    Ok(files)
}

fn automatic_files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".auto.tfvars") || name.ends_with(".auto.tfvars.json"))
        .collect();
    names.sort();
    let named = ["terraform.tfvars", "terraform.tfvars.json"].into_iter().map(str::to_owned);
    named.filter(|name| folder.join(name).exists()).chain(names).collect()
}

fn read_file(path: &Path, name: &str) -> Result<Inputs, Diagnostics> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Diagnostics::from(Diagnostic::new(
            "Failed to read variables file",
            format!("Given variables file {name} cannot be read: {error}."),
        ))
    };
    let text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            let detail = format!("Given variables file {name} does not exist.");
            Diagnostics::from(Diagnostic::new("Failed to read variables file", detail))
        }
        _ => unreadable(&error),
    })?;
    if name.ends_with(".json") {
        let values: BTreeMap<String, serde_json::Value> =
            serde_json::from_str(&text).map_err(|error| unreadable(&error))?;
        let origin = Origin::File(SourceRange { file: name.to_owned(), line: 1, column: 1, end: (1, 1) });
        return Ok(values
            .into_iter()
            .map(|(name, value)| (name, (InputSource::Json(value), origin.clone())))
            .collect());
    }
    let body = Source::new(name, text).parse_body()?;
    let mut inputs = Inputs::new();
    let mut found = Vec::new();
    for structure in &body.node {
        match structure {
            Structure::Attribute(attribute) => {
                let expr = body.expr(&attribute.value);
                let origin = Origin::File(expr.range());
                inputs.insert(attribute.key.as_str().to_owned(), (InputSource::Expression(expr), origin));
            }
            Structure::Block(block) => {
                let declared = block.labels.first().filter(|_| block.ident.as_str() == "variable");
                let (summary, detail) = match declared.map(|label| label.as_str()) {
                    Some(variable) => (
                        "Variable declaration in .tfvars file".to_owned(),
                        format!(
                            "A .tfvars file is used to assign values to variables that have already been declared in .tf files, \
                             not to declare new variables. To declare variable {variable:?}, place this block in one of your .tf \
                             files, such as variables.tf.\n\nTo set a value for this variable in {name}, use the definition \
                             syntax instead:\n    {variable} = <value>"
                        ),
                    ),
                    None => (
                        format!("Unexpected {:?} block", block.ident.as_str()),
                        "Blocks are not allowed here.".to_owned(),
                    ),
                };
                found.push(Diagnostic::new(summary, detail).at(body.place(&block.ident)));
            }
        }
    }
    Diagnostics::check(found)?;
    Ok(inputs)
}

/// The value of a variable: what was given, or its default; of its type, and marked as its block says.
pub fn variable_value(variable: &Variable, given: Option<&(InputSource, Origin)>) -> Result<Value, Diagnostics> {
    let value = given.map(|(source, _)| read_source(variable, source)).transpose()?;
    value_from(variable, value, given.map(|(_, origin)| origin))
}

/// The same for a value that is one already: what a module's caller gives.
pub fn module_variable_value(variable: &Variable, given: Option<Value>) -> Result<Value, Diagnostics> {
    value_from(variable, given, None)
}

fn value_from(variable: &Variable, given: Option<Value>, origin: Option<&Origin>) -> Result<Value, Diagnostics> {
    let name = &variable.name;
    let from = origin.and_then(|origin| origin.words(name));
    let refused = given.as_ref().is_some_and(Value::is_null) && !variable.nullable && variable.default.is_none();
    if refused {
        let why = "required variable may not be set to null";
        let detail = match &from {
            Some(from) => format!("Unsuitable value for var.{name} {from}: {why}."),
            None => format!("The given value is not suitable for var.{name} defined at {}: {why}.", variable.range),
        };
        return Err(Diagnostic::new("Required variable not set", detail).at(variable.range.clone()).into());
    }
    // A null stands for the default only where null is no value of its own.
    let given = given.filter(|value| variable.nullable || !value.is_null());
    let Some(value) = given.or_else(|| variable.default.clone()) else {
        let detail = format!(
            "The root module input variable {name:?} is not set, and has no default value. Use a -var or -var-file \
             command line argument to provide a value for this variable."
        );
        return Err(Diagnostic::new("No value for required variable", detail).at(variable.range.clone()).into());
    };
    let mut value = variable.defaults.apply(&value).convert(&variable.ty).map_err(|error| {
        let kind = match (variable.ephemeral, variable.sensitive) {
            (true, _) => Some("ephemeral"),
            (false, true) => Some("sensitive"),
            (false, false) => None,
        };
        let detail = match (&from, kind, origin) {
            (Some(from), _, _) => format!("Unsuitable value for var.{name} {from}: {error}."),
            (None, Some(kind), Some(Origin::File(place))) => format!(
                "The given value is not suitable for var.{name}, which is {kind}: {error}. Invalid value defined at {place}."
            ),
            _ => format!("The given value is not suitable for var.{name} declared at {}: {error}.", variable.range),
        };
        Diagnostic::new("Invalid value for input variable", detail).at(variable.range.clone())
    })?;
    if variable.sensitive {
        value = value.with_mark(Mark::Sensitive);
    }
    if variable.ephemeral {
        value = value.with_mark(Mark::Ephemeral);
    }
    Ok(value)
}

fn read_source(variable: &Variable, source: &InputSource) -> Result<Value, Diagnostics> {
    match source {
        InputSource::Json(json) => Value::from_plain_json(json).map_err(|error| {
            let detail = format!("The value for var.{} cannot be read: {error}.", variable.name);
            Diagnostic::new("Invalid value for input variable", detail).at(variable.range.clone()).into()
        }),
        InputSource::Text(text) if !variable.typed || variable.ty.is_primitive() => Ok(Value::string(text)),
        InputSource::Text(text) => constant(&Expr::parse(&format!("<value for var.{}>", variable.name), text)?),
        InputSource::Expression(expr) => constant(expr),
    }
}

/// Evaluates an expression in which nothing can be referred to and no function called.
fn constant(expr: &Expr) -> Result<Value, Diagnostics> {
    let mut found = Vec::new();
    inspect(expr, &[], &mut |construct| {
        if let ConstructKind::Function(_) = construct.kind {
            let problem = Diagnostic::new("Function calls not allowed", "Functions may not be called here.");
            found.push(problem.at(expr.source.range(construct.span)));
        }
    });
    Diagnostics::check(found)?;
    without_references(expr)
}

/// Evaluates an expression in which nothing can be referred to, not even by half a name.
pub(crate) fn without_references(expr: &Expr) -> Result<Value, Diagnostics> {
    evaluate(expr, &NoReferences, &mut Budget::default()).map_err(|mut found| {
        for problem in found.0.iter_mut().filter(|problem| problem.summary == "Invalid reference") {
            problem.summary = "Variables not allowed".to_owned();
            problem.detail = "Variables may not be used here.".to_owned();
        }
        found
    })
}

/// Checks a variable's `validation` blocks. The scope must know the variable itself. A condition that is not known yet
/// is not held against the value.
pub fn check_validations(variable: &Variable, scope: &dyn Scope, budget: &mut Budget) -> Result<(), Diagnostics> {
    let mut found = Vec::new();
    for validation in &variable.validations {
        let condition = evaluate(&validation.condition, scope, budget)?;
        let place = validation.condition.range();
        if condition.is_null() {
            let detail = "Validation condition expression must return either true or false, not null.";
            found.push(Diagnostic::new("Invalid variable validation result", detail).at(place));
            continue;
        }
        let condition = condition.convert(&Type::Bool).map_err(|error| {
            let detail = format!("Invalid validation condition result value: {error}.");
            Diagnostic::new("Invalid variable validation result", detail).at(place.clone())
        })?;
        if condition.as_bool() != Some(false) {
            continue;
        }
        let message = evaluate(&validation.error_message, scope, budget)?;
        let message = match message.as_str() {
            Some(message_text) if message.marks.is_empty() => message_text,
            _ => "The error message included a sensitive or ephemeral value, so it will not be displayed.",
        };
        let detail = format!("{message}\n\nThis was checked by the validation rule at {}.", validation.range);
        found.push(Diagnostic::new("Invalid value for variable", detail).at(variable.range.clone()));
    }
    Diagnostics::check(found)
}

#[cfg(test)]
mod tests;
