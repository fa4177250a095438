use std::fs;

use serde_json::json;

use super::*;
use crate::{Reference, load};

const CONFIG: &str = r#"
variable "text" {}
variable "number" { type = number }
variable "list" {
  type    = list(number)
  default = [1]
}
variable "object" {
  type = object({ a = string, b = optional(bool) })
  default = { a = "x" }
}
variable "secret" {
  type      = string
  sensitive = true
  ephemeral = true
  default   = "d"
}
variable "solid" {
  type     = string
  nullable = false
  default  = "solid"
}
variable "even" {
  type = number
  default = 2
  validation {
    condition     = var.even % 2 == 0
    error_message = "Not even: ${var.even}."
  }
}
"#;

fn module(files: &[(&str, &str)]) -> (tempfile::TempDir, Module) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("main.tf"), CONFIG).unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let module = load(folder.path()).unwrap();
    assert!(module.unsupported.is_empty());
    (folder, module)
}

fn value(name: &str, source: InputSource) -> Result<Value, Diagnostics> {
    variable_value(&module(&[]).1.variables[name], Some(&(source, Origin::Flag)))
}

#[test]
fn json_becomes_the_declared_type() {
    assert_eq!(
        value("number", InputSource::Json(json!("5"))).unwrap(),
        value("number", InputSource::Text("5".into())).unwrap()
    );
    assert_eq!(value("text", InputSource::Json(json!("${x}"))).unwrap(), Value::from("${x}"));
    assert_eq!(
        format!("{:?}", value("object", InputSource::Json(json!({"a": 1}))).unwrap()),
        r#"{"a": "1", "b": null}"#
    );
    let error = value("list", InputSource::Json(json!(["x"]))).unwrap_err();
    assert_eq!(error.0[0].summary, "Invalid value for input variable");
    assert_eq!(error.0[0].detail, "Unsuitable value for var.list set using -var=\"list=...\": a number is required.");
}

#[test]
fn defaults_nulls_and_marks() {
    let (_folder, module) = module(&[]);
    let of = |name: &str, given: Option<InputSource>| {
        let given = given.map(|given| (given, Origin::Outside));
        variable_value(&module.variables[name], given.as_ref())
    };
    assert_eq!(of("number", None).unwrap_err().0[0].summary, "No value for required variable");
    assert_eq!(of("number", Some(InputSource::Json(json!(null)))).unwrap(), Value::null(Type::Number));
    assert_eq!(of("solid", Some(InputSource::Json(json!(null)))).unwrap(), Value::from("solid"));
    let secret = of("secret", None).unwrap();
    assert!(secret.has_mark(Mark::Sensitive) && secret.has_mark(Mark::Ephemeral));
}

#[test]
fn text_is_an_expression_only_for_types_that_need_one() {
    assert_eq!(value("text", InputSource::Text("[1]".into())).unwrap(), Value::from("[1]"));
    assert_eq!(format!("{:?}", value("list", InputSource::Text("[1, 2]".into())).unwrap()), "[1, 2]");
    assert_eq!(
        value("list", InputSource::Text("[upper(1)]".into())).unwrap_err().0[0].summary,
        "Function calls not allowed"
    );
    assert_eq!(value("list", InputSource::Text("var.x".into())).unwrap_err().0[0].summary, "Variables not allowed");
}

#[test]
fn later_sources_win() {
    let (folder, module) = module(&[
        ("terraform.tfvars", "text = \"tfvars\"\nnumber = 1\nlist = [9]\nforeign = 1\n"),
        ("terraform.tfvars.json", r#"{"number": 2}"#),
        ("b.auto.tfvars", "number = 4\n"),
        ("a.auto.tfvars.json", r#"{"number": 3, "solid": "auto"}"#),
        ("given.tfvars", "solid = \"given\"\n"),
    ]);
    let environment = [("TF_VAR_text", "env"), ("TF_VAR_secret", "env"), ("TF_VAR_strange", "x"), ("text", "no")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let flags = [
        VariableFlag::Var { name: "text".into(), value: "flag".into() },
        VariableFlag::File(folder.path().join("given.tfvars")),
        VariableFlag::Var { name: "list".into(), value: "[7]".into() },
    ];
    let files = read_variable_files(&module.folder, &flags).unwrap();
    let inputs = collect_inputs(&module, files, &flags, environment).unwrap();
    let value =
        |name: &str| format!("{:?}", variable_value(&module.variables[name], inputs.get(name)).unwrap().unmark().0);
    assert_eq!(value("text"), "\"flag\"");
    assert_eq!(value("number"), "4");
    assert_eq!(value("list"), "[7]");
    assert_eq!(value("secret"), "\"env\"");
    assert_eq!(value("solid"), "\"given\"");
    // What a file has for another configuration is told of; what an environment has is not.
    assert!(inputs.contains_key("foreign") && !inputs.contains_key("strange"));
    let undeclared = [VariableFlag::Var { name: "nope".into(), value: String::new() }];
    let given = collect_inputs(&module, VariableFiles::default(), &undeclared, []);
    assert_eq!(given.unwrap_err().0[0].summary, "Value for undeclared variable");
}

#[test]
fn validations_hold_or_say_why_not() {
    struct Even(i64);
    impl Scope for Even {
        fn resolve(&self, _: &Reference) -> Result<Value, Diagnostic> {
            Ok(Value::number(self.0))
        }
    }
    let (_folder, module) = module(&[]);
    let check = |number| check_validations(&module.variables["even"], &Even(number), &mut Budget::default());
    assert_eq!(check(4), Ok(()));
    let error = check(3).unwrap_err();
    assert_eq!(error.0[0].summary, "Invalid value for variable");
    assert!(error.0[0].detail.starts_with("Not even: 3.\n\n"), "{error}");
}
