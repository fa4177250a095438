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
    let module = load(folder(&[("main.tf", text)]).path())?;
    Diagnostics::check(module.problems.clone())?;
    Ok(module)
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
    assert!(matches!(module.resources[1].repetition, crate::Repetition::Count(_)));
    assert_eq!(module.resources[1].provider_name(), "time");
    assert_eq!(module.required_providers["time"].source.as_deref(), Some("hashicorp/time"));
    assert_eq!(module.required_versions[0].constraint, ">= 1.6");
    assert!(!module.required_versions[0].binding);
    assert_eq!(module.ignored[0].construct, "backend block");
    assert!(module.outputs["all"].sensitive);
}

#[test]
fn what_is_outside_of_the_subset_is_listed_with_its_place() {
    let folder = folder(&[(
        "main.tf",
        r#"ephemeral "time_x" "y" {}
module "m" { source = "hashicorp/consul/aws" }
resource "time_static" "a" {
  for_each = toset(["a"])
  lifecycle { destroy = false }
  provisioner "local-exec" { command = "true" }
  block {
    dynamic "x" {}
  }
  name = base64gzip("a")
  other = each.key
  text = "%{ if true }a%{ endif }${~ 1 ~}"
}
removed {
  from = a.b
  provisioner "local-exec" { command = "true" }
}
"#,
    )]);
    let module = load(folder.path()).unwrap();
    let found: Vec<String> = module
        .unsupported
        .iter()
        .map(|found| format!("{}:{} {}", found.range.file, found.range.line, found.construct))
        .collect();
    assert_eq!(
        found,
        [
            "main.tf:1 ephemeral block",
            "main.tf:2 remote module source",
            "main.tf:6 provisioner block",
            "main.tf:10 function base64gzip",
            "main.tf:16 provisioner block",
        ]
    );
}

#[test]
fn a_heredoc_without_lines_is_not_misread() {
    let module = load_text("locals {\n  a = <<-EOT\n  EOT\n  b = <<EOT\nEOT\n}\n").unwrap();
    assert_eq!(module.unsupported, []);
    assert_eq!(module.locals.keys().collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn limits_of_the_parser_are_no_mistakes_of_the_configuration() {
    let deep = format!("locals {{\n  a = {}1{}\n}}", "[".repeat(70), "]".repeat(70));
    let long = format!("locals {{\n  a = 1{}\n}}", "+1".repeat(200));
    let same_keys = "locals {\n  a = { \"${1}\" = 1, \"${1}\" = 2 }\n}";
    for text in [deep.as_str(), long.as_str(), same_keys] {
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
            "main.tf:1,14: Reference to undeclared resource: There is no managed resource \"time_static\" \"b\" definition in the root module.",
        ),
        (
            "locals { a = count.index }",
            "main.tf:1,14: Reference to \"count\" in non-counted context: The \"count\" object can only be used in \"module\", \"resource\", and \"data\" blocks, and only when the \"count\" argument is set.",
        ),
        (
            "output \"a\" {}",
            "main.tf:1,12: Missing required argument: The argument \"value\" is required, but no definition was found.",
        ),
        (
            "variable \"a\" {}\nvariable \"a\" {}",
            "main.tf:2,1: Duplicate variable declaration: A variable named \"a\" was already declared at main.tf:1,1-13. Variable names must be unique within a module.",
        ),
        (
            "variable \"a\" {\n  type = number\n  default = \"x\"\n}",
            "main.tf:3,13: Invalid default value for variable: This default value is not compatible with the variable's type constraint: a number is required.",
        ),
        (
            "resorce \"a\" \"b\" {}",
            "main.tf:1,1: Unsupported block type: Blocks of type \"resorce\" are not expected here. Did you mean \"resource\"?",
        ),
    ] {
        assert_eq!(load_text(text).unwrap_err().to_string(), message);
    }
    assert!(load_text("resource \"a\" {").unwrap_err().to_string().starts_with("main.tf:1,"));
    assert!(load(std::path::Path::new("/nowhere/at/all")).is_err());
}

#[test]
fn blocks_about_whole_resources_are_read() {
    let folder = folder(&[(
        "main.tf",
        r#"
data "time_x" "y" {
  for_each = { a = 1 }
  name     = each.value
}
resource "time_static" "a" {
  for_each = toset(["a"])
  other    = "${each.key} ${data.time_x.y["a"].id} ${module.m.out}"
  lifecycle {
    create_before_destroy = true
    ignore_changes        = [tags["x"], rule[0].name]
    replace_triggered_by  = [time_static.b[each.key].id]
    postcondition {
      condition     = self.id != ""
      error_message = "empty"
    }
  }
}
resource "time_static" "b" {}
module "m" {
  source     = "./m"
  count      = 2
  depends_on = [data.time_x.y]
  providers  = { time = time.other }
  name       = count.index
}
moved {
  from = time_static.old[0]
  to   = module.m["k"].time_static.new
}
import {
  to = time_static.a["a"]
  id = "x"
}
removed {
  from = time_static.gone
  lifecycle { destroy = true }
}
check "c" {
  assert {
    condition     = path.root != ""
    error_message = "never"
  }
}
"#,
    )]);
    let module = load(folder.path()).unwrap();
    assert_eq!(module.unsupported, []);
    assert_eq!(
        module.resources.iter().map(crate::Resource::address).collect::<Vec<_>>(),
        ["data.time_x.y", "time_static.a", "time_static.b"]
    );
    let lifecycle = &module.resources[1].lifecycle;
    assert_eq!((lifecycle.create_before_destroy, lifecycle.postconditions.len()), (Some(true), 1));
    assert!(matches!(&lifecycle.ignore_changes, crate::IgnoreChanges::Paths(paths) if paths.len() == 2));
    let call = &module.calls["m"];
    assert_eq!((call.source.as_str(), call.inputs.len(), call.depends_on.len()), ("./m", 1, 1));
    assert_eq!(call.providers[&("time".to_owned(), None)], ("time".to_owned(), Some("other".to_owned())));
    assert_eq!(
        (module.moved[0].from.as_str(), module.moved[0].to.as_str()),
        ("time_static.old[0]", "module.m[\"k\"].time_static.new")
    );
    assert!(
        module.removed[0].destroy == Some(true)
            && module.imports.len() == 1
            && module.checks["c"].assertions.len() == 1
    );
}

/// A plan keeps what it was made from, and whoever edits a file meanwhile changes the next one.
#[test]
fn a_module_keeps_the_files_that_it_was_read_from() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("inner")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("main.tf", "module \"inner\" {\n  source = \"./inner\"\n}\n");
    write("inner/main.tf", "locals {\n  then = 1\n}\n");
    let read = crate::Tree::load(folder.path()).unwrap();
    write("inner/main.tf", "locals {\n  now = 1\n}\n");
    let kept: crate::KeptFiles =
        [&read.module, &read.children["inner"].module].iter().flat_map(|module| (*module.files).clone()).collect();
    assert_eq!(kept.keys().collect::<Vec<_>>(), ["inner/main.tf", "main.tf"]);
    let again = crate::Tree::load_kept(folder.path(), &kept).unwrap();
    assert!(again.children["inner"].module.locals.contains_key("then"));
}
