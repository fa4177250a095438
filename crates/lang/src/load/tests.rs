use std::fs;

use landform_cty::{Type, Value};

use super::*;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn load_text(text: &str) -> Result<Module, Diagnostics> {
    load(folder(&[("main.tf", text)]).path())
}

#[test]
fn a_folder_becomes_a_module() {
    let folder = folder(&[
        (
            "main.tf",
            r#"
terraform {
  required_version = ">= 1.6"
  required_providers {
    time = { source = "hashicorp/time", version = "~> 0.9" }
  }
  backend "http" {}
}

provider "time" {}

resource "time_static" "now" {
  count    = var.number
  triggers = { index = count.index, name = local.name }
}

resource "time_static" "after" {
  provider   = time.other
  depends_on = [time_static.now]
}
"#,
        ),
        (
            "variables.tf",
            r#"
variable "number" {
  type    = number
  default = "2"
  validation {
    condition     = var.number > 0
    error_message = "Too few."
  }
}
variable "token" {
  type      = string
  sensitive = true
  ephemeral = true
  nullable  = false
}
locals { name = "a-${var.number}" }
output "all" {
  value     = time_static.now[*].rfc3339
  sensitive = true
}
"#,
        ),
        ("notes.txt", "not read"),
        (".hidden.tf", "not read either"),
    ]);
    let module = load(folder.path()).unwrap();
    assert!(module.unsupported.is_empty(), "{:?}", module.unsupported);
    assert_eq!(module.variables["number"].default, Some(Value::number(2).convert(&Type::Number).unwrap()));
    assert_eq!(module.variables["number"].validations.len(), 1);
    assert!(module.variables["token"].sensitive && module.variables["token"].ephemeral);
    assert!(!module.variables["token"].nullable);
    let addresses: Vec<String> = module.resources.iter().map(crate::Resource::address).collect();
    assert_eq!(addresses, ["time_static.after", "time_static.now"]);
    assert_eq!(module.resources[0].provider, Some(("time".into(), Some("other".into()))));
    assert_eq!(module.resources[0].depends_on.len(), 1);
    assert!(module.resources[1].count.is_some());
    assert_eq!(module.resources[1].provider_name(), "time");
    assert_eq!(module.required_providers["time"].source.as_deref(), Some("hashicorp/time"));
    assert_eq!(module.required_versions, [">= 1.6"]);
    assert_eq!(module.ignored[0].construct, "backend block");
    assert!(module.outputs["all"].sensitive);
}

#[test]
fn what_is_outside_of_the_subset_is_listed_with_its_place() {
    let folder = folder(&[
        (
            "main.tf",
            r#"data "time_x" "y" {}
module "m" { source = "./m" }
resource "time_static" "a" {
  for_each = toset(["a"])
  lifecycle { create_before_destroy = true }
  provisioner "local-exec" { command = "true" }
  block {
    dynamic "x" {}
  }
  name = cidrsubnet("10.0.0.0/8", 8, 1)
  other = each.key
  text = "%{ if true }a%{ endif }${~ 1 ~}"
}
moved {
  from = a.b
  to   = a.c
}
variable "v" { type = list }
"#,
        ),
        ("main_override.tf", ""),
        ("more.tf.json", "{}"),
        ("other.tofu", ""),
    ]);
    let module = load(folder.path()).unwrap();
    let found: Vec<String> = module
        .unsupported
        .iter()
        .map(|found| format!("{}:{} {}", found.range.file, found.range.line, found.construct))
        .collect();
    assert_eq!(
        found,
        [
            "main.tf:1 data block",
            "main.tf:2 module block",
            "main.tf:4 for_each",
            "main.tf:5 lifecycle block",
            "main.tf:6 provisioner block",
            "main.tf:8 dynamic block",
            "main.tf:10 function cidrsubnet",
            "main.tf:11 reference to each.key",
            "main.tf:12 template directive",
            "main.tf:12 template strip marker",
            "main.tf:14 moved block",
            "main.tf:18 the old type \"list\"",
            "main_override.tf:1 file main_override.tf",
            "more.tf.json:1 file more.tf.json",
            "other.tofu:1 file other.tofu",
        ]
    );
}

#[test]
fn a_heredoc_without_lines_is_not_misread() {
    let module = load_text("locals {\n  a = <<-EOT\n  EOT\n  b = <<EOT\nEOT\n}\n").unwrap();
    assert_eq!(module.unsupported[0].construct, "empty heredoc");
}

#[test]
fn limits_of_the_parser_are_no_mistakes_of_the_configuration() {
    let deep = format!("locals {{\n  a = {}1{}\n}}", "[".repeat(70), "]".repeat(70));
    let long = format!("locals {{\n  a = 1{}\n}}", "+1".repeat(200));
    for text in [deep.as_str(), long.as_str(), "locals {\n  a = { b = 1, b = 2 }\n}"] {
        assert_eq!(load_text(text).unwrap().unsupported.len(), 1, "{text}");
    }
}

#[test]
fn mistakes_are_errors_with_their_place() {
    for (text, message) in [
        (
            "output \"a\" {\n  value = var.b\n}",
            "main.tf:2,11: Reference to undeclared input variable: An input variable with the name \"b\" has not been declared. This variable can be declared with a variable \"b\" {} block.",
        ),
        (
            "locals { a = time_static.b.id }",
            "main.tf:1,14: Reference to undeclared resource: A managed resource \"time_static\" \"b\" has not been declared in the root module.",
        ),
        (
            "locals { a = count.index }",
            "main.tf:1,14: Reference to \"count\" in non-counted context: The \"count\" object can only be used in \"module\", \"resource\", and \"data\" blocks, and only when the \"count\" argument is set.",
        ),
        (
            "output \"a\" {}",
            "main.tf:1,1: Missing required argument: The argument \"value\" is required, but no definition was found.",
        ),
        (
            "variable \"a\" {}\nvariable \"a\" {}",
            "main.tf:2,1: Duplicate variable: A variable named \"a\" was already declared. Names must be unique within a module.",
        ),
        (
            "variable \"a\" {\n  type = number\n  default = \"x\"\n}",
            "main.tf:3,13: Invalid default value for variable: This default value is not compatible with the variable's type constraint: a number is required.",
        ),
        (
            "resorce \"a\" \"b\" {}",
            "main.tf:1,1: Unsupported block type: Blocks of type \"resorce\" are not expected here.",
        ),
    ] {
        assert_eq!(load_text(text).unwrap_err().to_string(), message);
    }
    assert!(load_text("resource \"a\" {").unwrap_err().to_string().starts_with("main.tf:1,"));
    assert!(load(std::path::Path::new("/nowhere/at/all")).is_err());
}
