//! The judge of expressions is the real thing: every line here is evaluated by `tofu console`, too, and must come out
//! the same, with its type, or fail with the same words.

mod render;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use landform_cty::{Type, Value};
use landform_lang::{Budget, Diagnostic, Diagnostics, Expr, Module, Reference, Scope, evaluate, load, variable_value};
use landform_testkit::parts;

const CONFIG: &str = include_str!("console/main.tf");
const VALUES: &str = include_str!("console/values.txt");
const MISTAKES: &str = include_str!("console/mistakes.txt");

/// The console knows no state, so every resource is unknown, and one with `count` even in its type.
struct Console<'a>(&'a Module);

impl Scope for Console<'_> {
    fn resolve(&self, reference: &Reference) -> Result<Value, Diagnostic> {
        let one = |diagnostics: Diagnostics| diagnostics.0.into_iter().next().expect("never empty");
        match reference {
            Reference::Variable(name) => variable_value(&self.0.variables[name], None).map_err(one),
            Reference::Local(name) => evaluate(&self.0.locals[name].value, self, &mut Budget::default()).map_err(one),
            Reference::Resource { name, .. } if name == "many" => Ok(Value::unknown(Type::Dynamic)),
            Reference::Resource { .. } => {
                let dynamic = ["input", "output", "triggers_replace"].map(|name| (name, Type::Dynamic));
                Ok(Value::unknown(Type::object(dynamic.into_iter().chain([("id", Type::String)]))))
            }
            Reference::Path(_) => Ok(Value::from(".")),
            Reference::Workspace => Ok(Value::from("default")),
            other => Err(Diagnostic::new("Invalid reference", format!("{other} means nothing here."))),
        }
    }
}

fn folder() -> (tempfile::TempDir, Module) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("main.tf"), CONFIG).unwrap();
    let module = load(folder.path()).unwrap();
    assert!(module.unsupported.is_empty(), "{:?}", module.unsupported);
    (folder, module)
}

/// Runs the console over lines; its output and what it complained about.
fn console(folder: &Path, lines: &[&str]) -> (String, String) {
    let mut child = Command::new(parts::tofu())
        .args(["console", "-no-color"])
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tofu can be started");
    let input = lines.join("\n") + "\n";
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn eval(module: &Module, line: &str) -> Result<Value, Diagnostics> {
    evaluate(&Expr::parse("console", line)?, &Console(module), &mut Budget::default())
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).collect()
}

#[test]
fn values_are_those_of_the_console() {
    let (folder, module) = folder();
    let expressions = lines(VALUES);
    // Between any two answers stands one that cannot be mistaken for anything else.
    const MARK: &str = "\"~~~~\"";
    let asked: Vec<&str> = expressions.iter().flat_map(|expression| [*expression, MARK]).collect();
    let (output, complaints) = console(folder.path(), &asked);
    let answers: Vec<&str> = output.split(&format!("{MARK}\n")).collect();
    assert_eq!(answers.len(), expressions.len() + 1, "tofu gave up after {:?}: {complaints}", answers.last());
    let mut different = Vec::new();
    for (expression, answer) in expressions.iter().zip(&answers) {
        let ours = match eval(&module, expression) {
            Ok(value) => render::value(&value),
            Err(diagnostics) => diagnostics.to_string(),
        };
        if ours != answer.trim_end_matches('\n') {
            different.push(format!("{expression}\n  ours: {ours}\n  tofu: {answer}"));
        }
    }
    assert!(different.is_empty(), "{} of {} differ:\n{}", different.len(), expressions.len(), different.join("\n"));
}

#[test]
fn mistakes_are_called_what_the_console_calls_them() {
    let (folder, module) = folder();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut different = Vec::new();
    for expression in lines(MISTAKES) {
        let (output, complaint) = console(folder.path(), &[expression]);
        let complaint = words(&complaint);
        let ours = match eval(&module, expression) {
            Ok(value) => format!("no error but {}", render::value(&value)),
            Err(diagnostics) => {
                let diagnostic = &diagnostics.0[0];
                let summary = format!("Error: {}", diagnostic.summary);
                if complaint.starts_with(&summary) && complaint.contains(&words(&diagnostic.detail)) {
                    continue;
                }
                diagnostics.to_string()
            }
        };
        different.push(format!("{expression}\n  ours: {ours}\n  tofu: {complaint}{output}"));
    }
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
}
