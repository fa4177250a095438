//! The judge of expressions is the real thing: what OpenTofu made of every expression in `console/cases` is recorded in
//! `console/recorded`, and ours must come out the same, with its type, or fail with the same words.
//!
//! To add cases, write them into a file of `console/cases` and record again:
//! `UPDATE_RECORDINGS=1 cargo test -p landform-lang --test console`, or with the name of the one file in place of the 1.

mod recording;

use std::path::Path;

use landform_cty::{Type, Value};
use landform_lang::{
    Budget, Cause, Diagnostic, Diagnostics, Expr, Impure, LEFT_TO_THE_CLI, Module, Reference, Scope, World,
    check_references, evaluate, function_names, load, render_type, render_value, variable_value,
};
use landform_testkit::parts;
use recording::Answer;

/// Expressions that are left to the CLI on purpose.
const OUTSIDE: &str = "outside";

/// The console knows no state, so every resource is unknown, and one with `count` even in its type.
struct Console<'a> {
    module: &'a Module,
    folder: &'a Path,
}

impl Scope for Console<'_> {
    fn resolve(&self, reference: &Reference) -> Result<Value, Diagnostic> {
        let one = |diagnostics: Diagnostics| diagnostics.0.into_iter().next().expect("never empty");
        match reference {
            Reference::Variable(name) => variable_value(&self.module.variables[name], None).map_err(one),
            Reference::Local(name) => {
                evaluate(&self.module.locals[name].value, self, &mut Budget::default()).map_err(one)
            }
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

    fn world(&self) -> World<'_> {
        World { folder: Some(self.folder), plan_time: None, impure: Impure::Allowed }
    }
}

/// A folder with the configuration that expressions refer to.
fn prepared() -> (tempfile::TempDir, Module) {
    let folder = tempfile::tempdir().unwrap();
    copy(&recording::folder().join("folder"), folder.path());
    let module = load(folder.path()).unwrap();
    assert!(module.unsupported.is_empty(), "{:?}", module.unsupported);
    (folder, module)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// Functions whose complaints are those of a parser, in its own words: there the summary must be the same, and the
/// function that is named.
const OTHER_WORDS: [&str; 9] = [
    "jsondecode",
    "yamldecode",
    "formatdate",
    "timeadd",
    "timecmp",
    "base64gunzip",
    "templatefile",
    "templatestring",
    "textdecodebase64",
];

/// Whether two answers are the same as far as they can be.
fn same(expression: &str, ours: &Answer, theirs: &Answer) -> bool {
    let (Answer::Mistake { summary: our_summary, detail: our_detail }, Answer::Mistake { summary, detail }) =
        (ours, theirs)
    else {
        return ours == theirs;
    };
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let other_words = OTHER_WORDS.iter().any(|name| expression.starts_with(&format!("{name}(")));
    summary == our_summary && (other_words || words(detail) == words(our_detail))
}

/// `None`: outside of the subset.
fn ours(console: &Console<'_>, expression: &str) -> Option<Answer> {
    let answer = |expr: Expr| {
        check_references(&expr, console)?;
        evaluate(&expr, console, &mut Budget::default())
    };
    let result = Expr::parse("console", expression).and_then(answer);
    match result {
        Ok(value) => Some(Answer::Value { value: render_value(&value), ty: render_type(&value.ty) }),
        Err(diagnostics) => {
            let first = diagnostics.0.into_iter().next().expect("never empty");
            (first.cause != Cause::Unsupported)
                .then_some(Answer::Mistake { summary: first.summary, detail: first.detail })
        }
    }
}

#[test]
fn every_expression_comes_out_as_recorded() {
    let version = parts::tofu_version();
    let (folder, module) = prepared();
    let console = Console { module: &module, folder: folder.path() };
    let mut different = Vec::new();
    let mut count = 0;
    for (topic, expressions) in recording::cases() {
        if std::env::var("UPDATE_RECORDINGS").is_ok_and(|which| which == "1" || which == topic) {
            recording::write(&version, &topic, &expressions, &recording::ask(folder.path(), &expressions));
        }
        let recorded = recording::read(&version, &topic);
        for expression in expressions {
            count += 1;
            let Some(theirs) = recorded.get(&expression) else {
                different.push(format!("{topic}: not recorded: {expression}\n"));
                continue;
            };
            match (ours(&console, &expression), topic == OUTSIDE) {
                (None, true) => {}
                (None, false) => different.push(format!("{topic}: {expression}\nours: unsupported\ntofu: {theirs}")),
                (Some(ours), true) => different.push(format!("{topic}: {expression} is inside now: {ours}")),
                (Some(ours), false) if !same(&expression, &ours, theirs) => {
                    different.push(format!("{topic}: {expression}\nours: {ours}tofu: {theirs}"));
                }
                (Some(_), false) => {}
            }
        }
    }
    assert!(different.is_empty(), "{} of {count} differ:\n{}", different.len(), different.join("\n"));
    assert!(count > 1000, "only {count} cases");
}

/// Recordings could be wrong, or of another version: a sample is asked again.
#[test]
fn a_sample_of_the_recordings_is_what_the_real_binary_says() {
    let version = parts::tofu_version();
    let (folder, _) = prepared();
    let mut expected = recording::Recording::new();
    for topic in recording::cases().keys() {
        expected.extend(recording::read(&version, topic).into_iter().step_by(12));
    }
    let expressions: Vec<String> = expected.keys().cloned().collect();
    let answers = recording::ask(folder.path(), &expressions);
    for (expression, answer) in &expected {
        assert!(same(expression, &answers[expression], answer), "{expression}\n{}", answers[expression]);
    }
}

/// Every function that the real binary has is done here or is on the list of those that are not, with a reason.
#[test]
fn every_function_is_done_or_left_to_the_cli() {
    let output = std::process::Command::new(parts::tofu())
        .args(["metadata", "functions", "-json"])
        .env_clear()
        .env("HOME", std::env::temp_dir())
        .output()
        .expect("tofu can be started");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let theirs = json["function_signatures"].as_object().expect("functions").keys();
    let theirs: Vec<&str> = theirs.map(String::as_str).filter(|name| !name.contains("::")).collect();
    let mut ours: Vec<&str> = function_names();
    ours.extend(LEFT_TO_THE_CLI.iter().map(|(name, _)| *name));
    ours.sort_unstable();
    assert_eq!(ours, theirs);
}

/// The page about the language lists the functions, and the list is right.
#[test]
fn the_page_names_every_function() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/language.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    for name in function_names() {
        assert!(page.contains(&format!("`{name}`")), "docs/language.md does not name {name}");
    }
    for (name, reason) in LEFT_TO_THE_CLI {
        assert!(page.contains(&format!("`{name}`: {reason}")), "docs/language.md does not say why {name} is left out");
    }
}
