//! The ledger provider under the real OpenTofu and under our own processes.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use landform_cty::{Type, Value};
use landform_plugin::{Binary, Launch, Process, Schemas};
use landform_protocol::wire::{MAGIC_COOKIE, Version};
use landform_protocol::*;
use landform_testkit::ledger::{self, Operation};
use landform_testkit::tofu::Tofu;

fn configuration(ledger: &Path, objects: &str) -> String {
    format!(
        "terraform {{\n required_providers {{\n ledger = {{ source = \"landform/ledger\" }}\n }}\n}}\n\
         provider \"ledger\" {{\n ledger = {:?}\n}}\n{objects}",
        ledger.display().to_string()
    )
}

fn succeeded(output: Output) -> String {
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}");
    text
}

#[test]
fn works_under_the_real_tofu() {
    let folder = tempfile::tempdir().unwrap();
    let mirror = folder.path().join("mirror");
    ledger::install(&mirror).unwrap();
    let tofu = Tofu::new(&folder.path().join("work"), &mirror).unwrap();
    let path = folder.path().join("ledger");
    let apply = |objects: &str| {
        tofu.write("main.tf", &configuration(&path, objects)).unwrap();
        succeeded(tofu.run(["init", "-input=false", "-no-color"]).unwrap());
        succeeded(tofu.run(["apply", "-auto-approve", "-input=false", "-no-color"]).unwrap());
        let plan = tofu.run(["plan", "-detailed-exitcode", "-input=false", "-no-color"]).unwrap();
        assert_eq!(plan.status.code(), Some(0), "{}", String::from_utf8_lossy(&plan.stdout));
        ledger::read(&path).unwrap()
    };

    let created = apply("resource \"ledger_object\" \"a\" {\n name = \"a\"\n size = 1.5\n}\n");
    assert_eq!(created.objects.len(), 1);
    let first = created.named("a")[0].clone();
    assert_eq!(first.size.as_deref(), Some("1.5"));

    let updated = apply("resource \"ledger_object\" \"a\" {\n name = \"a\"\n size = 2\n}\n");
    assert_eq!(updated.objects[&first.id].size.as_deref(), Some("2"));

    let replaced = apply("resource \"ledger_object\" \"a\" {\n name = \"a\"\n kind = \"k\"\n}\n");
    assert_eq!(replaced.objects.len(), 1);
    assert_ne!(replaced.named("a")[0].id, first.id);

    let id = replaced.named("a")[0].id.clone();
    succeeded(tofu.run(["state", "rm", "ledger_object.a"]).unwrap());
    succeeded(tofu.run(["import", "-input=false", "-no-color", "ledger_object.a", &id]).unwrap());
    let missing = tofu.run(["import", "-input=false", "-no-color", "ledger_object.a", "nobody"]).unwrap();
    assert!(!missing.status.success());

    succeeded(tofu.run(["destroy", "-auto-approve", "-input=false", "-no-color"]).unwrap());
    let destroyed = ledger::read(&path).unwrap();
    assert!(destroyed.objects.is_empty() && destroyed.torn == 0);
    let kinds: Vec<&str> = destroyed
        .operations
        .iter()
        .map(|operation| match operation {
            Operation::Create(_) => "create",
            Operation::Update(_) => "update",
            Operation::Delete(_) => "delete",
        })
        .collect();
    assert_eq!(kinds, ["create", "update", "delete", "create", "delete"]);
}

#[tokio::test]
async fn works_under_our_own_processes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let binary = Binary::at(Path::new(env!("CARGO_BIN_EXE_terraform-provider-ledger"))).unwrap();
    let launch = Launch::new(&binary.path);
    let process = Process::start(binary, launch, Arc::new(Schemas::in_memory())).await.unwrap();
    assert_eq!(process.version(), Version::V6);

    let ty = process.schema().await.unwrap().resources["ledger_object"].block.implied_type();
    let null = Value::null(ty);
    let object = |id| {
        Value::object([
            ("id", id),
            ("name", Value::string("a")),
            ("size", Value::null(Type::Number)),
            ("kind", Value::null(Type::String)),
            ("delay_ms", Value::null(Type::Number)),
            ("key", Value::null(Type::String)),
        ])
    };
    let config = object(Value::null(Type::String));
    let apply = ApplyResourceChange {
        type_name: "ledger_object".into(),
        prior: null.clone(),
        planned: object(Value::unknown(Type::String)),
        config: config.clone(),
        planned_private: b"kept".to_vec(),
        planned_identity: None,
    };
    let early = process.apply_resource_change(apply.clone()).await.unwrap();
    assert_eq!(early.diagnostics[0].summary, "Provider not configured");

    let relative = Value::object([("ledger", Value::string("relative"))]);
    let other = Process::start(process.binary().clone(), Launch::new(&process.binary().path), Default::default());
    let refused = other.await.unwrap();
    let refused = refused.configure(Configure { terraform_version: "1.12.6".into(), config: relative }).await.unwrap();
    assert_eq!(refused[0].attribute, Some(vec![Step::Attribute("ledger".into())]));

    let ledger = Value::object([("ledger", Value::string(path.display().to_string()))]);
    let diagnostics = process.configure(Configure { terraform_version: "1.12.6".into(), config: ledger }).await;
    assert_eq!(diagnostics.unwrap(), []);
    let plan = PlanResourceChange {
        type_name: "ledger_object".into(),
        prior: null.clone(),
        proposed: object(Value::null(Type::String)),
        config: config.clone(),
        prior_private: Vec::new(),
        prior_identity: None,
    };
    let planned = process.plan_resource_change(plan).await.unwrap().planned;
    assert_eq!(planned, object(Value::unknown(Type::String)));
    let mut ids = Vec::new();
    for _ in 0..2 {
        let answer = process.apply_resource_change(apply.clone()).await.unwrap();
        assert_eq!(answer.diagnostics, []);
        assert_eq!(answer.private, b"kept");
        ids.push(answer.new_state.get("id").and_then(Value::as_str).unwrap().to_owned());
    }
    assert_ne!(ids[0], ids[1], "creating twice makes two");
    assert_eq!(ledger::read(&path).unwrap().named("a").len(), 2);
    process.retire().await;
}

#[test]
fn says_what_it_is_when_a_person_starts_it() {
    let output = Command::new(env!("CARGO_BIN_EXE_terraform-provider-ledger")).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("this program is a provider"));
}

/// A caller that is killed can tell nobody to end.
#[test]
fn ends_when_its_caller_is_gone() {
    use std::io::{BufRead, BufReader};
    let mut provider = Command::new(env!("CARGO_BIN_EXE_terraform-provider-ledger"))
        .env(MAGIC_COOKIE.0, MAGIC_COOKIE.1)
        .env("PLUGIN_PROTOCOL_VERSIONS", "5,6")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(provider.stdout.take().unwrap());
    let mut greeting = String::new();
    output.read_line(&mut greeting).unwrap();
    assert!(greeting.starts_with("1|6|unix|/") && greeting.ends_with("|grpc|\n"), "{greeting}");
    assert!(provider.try_wait().unwrap().is_none());
    drop(output);
    assert!(provider.wait().unwrap().success());
}

#[test]
fn refuses_a_caller_that_speaks_another_protocol() {
    let output = Command::new(env!("CARGO_BIN_EXE_terraform-provider-ledger"))
        .env(MAGIC_COOKIE.0, MAGIC_COOKIE.1)
        .env("PLUGIN_PROTOCOL_VERSIONS", "4,5")
        .output()
        .unwrap();
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("the caller speaks protocols 4,5, this provider speaks 6")
    );
}
