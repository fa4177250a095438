//! What somebody stumbles over who has only the docs: nothing is silent, and nothing looks like something else.

use std::path::Path;
use std::process::Command;

use landform_testkit::landform::Landform;
use landform_testkit::parts;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{Door, Memory, binary, plain_setup};

fn folder(door: &Door, name: &str, text: &str) -> String {
    let folder = door.data.path().join("templates").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("main.tf"), text).unwrap();
    folder.display().to_string()
}

/// A server whose mirror is empty.
async fn without_providers() -> Door {
    let data = tempfile::tempdir().unwrap();
    let mirror = data.path().join("empty-mirror");
    std::fs::create_dir(&mirror).unwrap();
    let mut setup = plain_setup(data.path());
    setup.providers = mirror;
    let landform = Landform::start(&setup).await.unwrap();
    Door { landform, setup, data, _postgres: None }
}

const SLEEP: &str = r#"
terraform {
  required_providers {
    time = { source = "hashicorp/time" }
  }
}
resource "time_sleep" "slow" { create_duration = "11s" }
"#;

#[tokio::test]
async fn a_push_says_what_was_not_locked_and_locks_it_later() {
    let door = without_providers().await;
    let path = folder(&door, "sleep", SLEEP);
    let push = ["template", "push", path.as_str()];
    let said = door.done(&push).await;
    assert!(said.stdout.starts_with("sleep@1 "), "{}", said.stdout);
    assert!(said.stderr.contains("not locked") && said.stderr.contains("hashicorp/time"), "{}", said.stderr);
    let again = door.done(&[&push[..], &["--json"]].concat()).await.json();
    assert_eq!(again["version"], 1);
    assert!(again["not_locked"].as_str().unwrap().contains("hashicorp/time"), "{again}");
    let provider = parts::provider("hashicorp/time").display().to_string();
    let mirror = door.setup.providers.display().to_string();
    let add = ["provider", "add", &provider, "--source", "hashicorp/time", "--version", "0.14.2"];
    door.done(&[&add[..], &["--providers", &mirror]].concat()).await;
    // The same files once more are enough.
    let said = door.done(&push).await;
    assert!(said.stdout.starts_with("sleep@2 ") && said.stderr.is_empty(), "{}{}", said.stdout, said.stderr);
    let again = door.done(&[&push[..], &["--json"]].concat()).await.json();
    assert_eq!((&again["version"], &again["not_locked"]), (&json!(2), &Value::Null));
    let shown = door.done(&["template", "show", "sleep"]).await.stdout;
    assert!(shown.contains(".terraform.lock.hcl"), "{shown}");
    let plain = folder(&door, "plain", "output \"x\" {\n  value = 1\n}\n");
    assert!(door.done(&["template", "push", &plain]).await.stderr.is_empty(), "it needs no providers");
}

#[tokio::test]
async fn a_create_that_takes_long_gives_a_sign_of_life() {
    let door = Door::open(Memory::Sqlite).await;
    let path = folder(&door, "sleep", SLEEP);
    door.done(&["tenant", "put", "acme"]).await;
    door.done(&["template", "push", &path]).await;
    let said = door.done(&["deploy", "acme/site", "--template", "sleep", "--engine", "native", "--wait"]).await;
    assert!(said.stderr.contains("time_sleep.slow: still at work after 10 s"), "{}", said.stderr);
    assert!(!said.stderr.contains("after 20 s"), "{}", said.stderr);
}

#[tokio::test]
async fn a_plan_shows_what_is_not_known_yet_inside_of_a_list() {
    let door = Door::open(Memory::Sqlite).await;
    let text = r#"
resource "terraform_data" "a" {}
resource "terraform_data" "b" { input = ["known", terraform_data.a.id] }
output "ids" { value = { a = terraform_data.a.id, b = 1 } }
"#;
    let path = folder(&door, "list", text);
    door.done(&["tenant", "put", "acme"]).await;
    door.done(&["template", "push", &path]).await;
    for engine in ["native", "cli"] {
        let deploy =
            ["deploy", "acme/site", "--template", "list", "--approval", "--wait", "--json", "--engine", engine];
        let waits = door.type_in(&deploy).await;
        assert_eq!(waits.exit, 5, "{}", waits.stderr);
        let id = waits.json()["run"]["id"].as_str().unwrap().to_owned();
        let plan = door.done(&["run", "plan", &id]).await.stdout;
        assert!(plan.contains("input = [\"known\",(known after apply)]"), "{engine}: {plan}");
        assert!(plan.contains("output ids: null -> {\"a\":(known after apply),\"b\":1}"), "{engine}: {plan}");
    }
}

/// The wish is in the way of the destroy; without it the destroy, which is what the deployment shall be now, goes on.
#[tokio::test]
async fn a_destroy_that_a_wrong_adoption_stopped_is_finished_without_it() {
    let door = Door::open(Memory::Sqlite).await;
    let path = folder(&door, "one", "resource \"terraform_data\" \"it\" {}\n");
    door.done(&["tenant", "put", "acme"]).await;
    door.done(&["template", "push", &path]).await;
    for engine in ["native", "cli"] {
        door.done(&["deploy", "acme/site", "--template", "one", "--engine", engine, "--wait"]).await;
        let said = door.type_in(&["again", "acme/site", "--adopt", "terraform_data.typo=x", "--wait"]).await;
        assert!(said.exit == 1 && said.stderr.contains("(adoption_failed)"), "{engine}: {}", said.stderr);
        let hint = said.stderr.lines().find(|line| line.starts_with("hint: ")).unwrap();
        assert!(hint.contains("landform again TENANT/NAME --absent ADDRESS"), "{hint}");
        let said = door.type_in(&["destroy", "acme/site", "--wait"]).await;
        assert!(said.exit == 1 && said.stderr.contains("(adoption_pending)"), "{engine}: {}", said.stderr);
        let run =
            door.done(&["again", "acme/site", "--absent", "terraform_data.typo", "--wait", "--json"]).await.json();
        assert_eq!((&run["run"]["kind"], &run["run"]["status"]), (&json!("destroy"), &json!("succeeded")));
        assert_eq!(door.type_in(&["output", "acme/site"]).await.exit, 3, "it is gone");
    }
}

fn serve(data: &Path, database: &str) -> (i32, String) {
    let output = Command::new(binary())
        .args(["serve", "--listen", "127.0.0.1:0", "--database", database, "--data"])
        .arg(data)
        .output()
        .unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_database_that_is_not_there_is_named_with_the_reason() {
    let data = tempfile::tempdir().unwrap();
    for wrong in ["mysql://eve:geheim@127.0.0.1/x", "eve:geheim@127.0.0.1", "://eve:geheim@127.0.0.1", "/a/geheim/file"]
    {
        let (exit, said) = serve(data.path(), wrong);
        assert!(exit == 2 && said.contains("postgres://") && !said.contains("geheim"), "{wrong}: {exit} {said}");
    }
    assert!(!data.path().join("admin.token").exists());
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (exit, said) = serve(data.path(), &format!("postgres://eve:geheim@127.0.0.1:{free}/x"));
    assert_eq!(exit, 6, "{said}");
    let first = said.lines().next().unwrap();
    assert!(first.contains("waited for") && first.contains("refused"), "a word before the wait: {said}");
    let error = said.lines().find(|line| line.starts_with("error: ")).unwrap();
    assert!(error.contains("cannot reach PostgreSQL") && error.contains("refused"), "{error}");
    assert!(said.contains("hint: ") && !said.contains("geheim") && !said.contains("pool"), "{said}");
}

#[tokio::test]
async fn an_empty_list_is_of_something_that_is_there() {
    let door = Door::open(Memory::Sqlite).await;
    door.done(&["tenant", "put", "acme"]).await;
    let path = folder(&door, "one", "output \"x\" {\n  value = 1\n}\n");
    door.done(&["template", "push", &path]).await;
    for (line, code) in [
        (&["run", "list", "--tenant", "nobody"][..], "tenant_unknown"),
        (&["run", "list", "--deployment", "nobody/site"], "tenant_unknown"),
        (&["run", "list", "--deployment", "acme/nothing"], "deployment_unknown"),
        (&["run", "list", "--template", "none"], "template_unknown"),
        (&["run", "list", "--code", "bad_luck"], "code_unknown"),
        (&["run", "failures", "--tenant", "nobody"], "tenant_unknown"),
        (&["run", "retry-all", "bad_luck"], "code_unknown"),
        (&["run", "retry-all", "plan_failed", "--tenant", "nobody"], "tenant_unknown"),
        (&["resources", "--tenant", "nobody"], "tenant_unknown"),
        (&["resources", "--deployment", "acme/nothing"], "deployment_unknown"),
        (&["drift", "list", "--tenant", "nobody"], "tenant_unknown"),
        (&["drift", "list", "--template", "none"], "template_unknown"),
        (&["deployments", "nobody"], "tenant_unknown"),
        (&["connection", "list", "nobody"], "tenant_unknown"),
        (&["audit", "--tenant", "nobody"], "tenant_unknown"),
    ] {
        let said = door.type_in(&[line, &["--json"]].concat()).await;
        let problem: Value =
            serde_json::from_str(&said.stderr).unwrap_or_else(|e| panic!("{line:?}: {e} {}", said.stdout));
        assert_eq!((said.exit, &problem["code"]), (3, &json!(code)), "{line:?}");
    }
    // What is there and has nothing is an empty list, also when the deployment is gone.
    let deploy = ["deploy", "acme/site", "--template", "one", "--wait"];
    door.done(&deploy).await;
    assert_eq!(door.done(&["resources", "--deployment", "acme/site", "--json"]).await.json(), json!([]));
    door.done(&["destroy", "acme/site", "--wait"]).await;
    for line in [
        &["run", "list", "--tenant", "acme", "--code", "plan_failed"][..],
        &["run", "list", "--deployment", "acme/site", "--status", "failed"],
        &["drift", "list", "--tenant", "acme", "--template", "one"],
    ] {
        door.done(line).await;
    }
    let runs = door.done(&["run", "list", "--deployment", "acme/site", "--json"]).await.json();
    assert_eq!(runs.as_array().unwrap().len(), 2, "{runs}");
}

#[tokio::test]
async fn variables_come_from_a_tfvars_file_too() {
    let door = Door::open(Memory::Sqlite).await;
    let text = r#"
variable "name" { type = string }
variable "vlans" { type = list(number) }
variable "site" { type = object({ up = bool }) }
output "all" { value = jsonencode([var.name, var.vlans, var.site]) }
"#;
    let path = folder(&door, "net", text);
    let file = door.data.path().join("site.tfvars");
    std::fs::write(&file, "name = \"berlin\"\nvlans = [\n  10, # voice\n  20,\n]\nsite = { up = true }\n").unwrap();
    door.done(&["tenant", "put", "acme"]).await;
    door.done(&["template", "push", &path]).await;
    let file = file.display().to_string();
    let deploy = ["deploy", "acme/site", "--template", "net", "--wait", "--json", "--var-file", &file];
    let made = door.done(&[&deploy[..], &["--var", "name=paris"]].concat()).await.json();
    assert_eq!(made["outputs"]["all"]["value"], "[\"paris\",[10,20],{\"up\":true}]", "{made}");
    std::fs::write(&file, "name = upper(\"x\")\n").unwrap();
    let said = door.type_in(&deploy).await;
    assert_eq!(said.exit, 2, "{}", said.stderr);
    assert!(said.stderr.contains("Function calls not allowed") && said.stderr.contains("line 1"), "{}", said.stderr);
}

async fn a_tenant_goes_when_it_has_nothing(memory: Memory) {
    let door = Door::open(memory).await;
    let path = folder(&door, "one", "output \"x\" {\n  value = 1\n}\n");
    door.done(&["template", "push", &path]).await;
    door.done(&["tenant", "put", "acme", "--slots", "3"]).await;
    door.done(&["deploy", "acme/site", "--template", "one", "--wait"]).await;
    let token = json!({"name": "ci", "role": "operator", "tenant": "acme"});
    let token = door.landform.call("POST", "/v1/tokens", Some(token)).await.unwrap();
    let said = door.type_in(&["tenant", "delete", "acme"]).await;
    assert_eq!(said.exit, 3, "{}", said.stderr);
    assert!(said.stderr.contains("(tenant_in_use)"), "{}", said.stderr);
    assert!(said.stderr.contains("1 deployment, 1 token"), "what is in the way is named: {}", said.stderr);
    door.done(&["destroy", "acme/site", "--wait"]).await;
    door.done(&["token", "revoke", token["token"]["id"].as_str().unwrap()]).await;
    let deleted = door.landform.request(Method::DELETE, "/v1/tenants/acme").send().await.unwrap();
    assert_eq!(deleted.status(), 204);
    for line in [
        &["tenant", "get", "acme"][..],
        &["tenant", "delete", "acme"],
        &["deploy", "acme/site", "--template", "one"],
        &["pause", "acme"],
    ] {
        let said = door.type_in(line).await;
        assert!(said.exit == 3 && said.stderr.contains("(tenant_unknown)"), "{line:?}: {}", said.stderr);
    }
    assert_eq!(door.done(&["tenant", "list", "--json"]).await.json(), json!([]));
    // What it did stays, and its name can be given again.
    let runs = door.done(&["run", "list", "--tenant", "acme", "--json"]).await.json();
    assert_eq!(runs.as_array().unwrap().len(), 2, "{runs}");
    let log = door.done(&["audit", "--tenant", "acme", "--json"]).await.json();
    assert_eq!(log[0]["action"], "tenant.delete", "{log}");
    let back = door.done(&["tenant", "put", "acme", "--json"]).await.json();
    assert_eq!(back["slots"], Value::Null, "it is a new one: {back}");
    door.done(&["deploy", "acme/site", "--template", "one", "--wait"]).await;
}

#[tokio::test]
async fn a_tenant_goes_when_it_has_nothing_on_sqlite() {
    a_tenant_goes_when_it_has_nothing(Memory::Sqlite).await;
}

#[tokio::test]
async fn a_tenant_goes_when_it_has_nothing_on_postgres() {
    a_tenant_goes_when_it_has_nothing(Memory::Postgres).await;
}

fn alone(data: &Path, args: &[&str]) -> (i32, String, String) {
    let output = Command::new(binary()).args(args).arg("--data").arg(data).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Whoever mistypes the folder would believe that the key is another one now.
#[test]
fn a_key_is_rotated_where_there_is_a_store() {
    let nothing = tempfile::tempdir().unwrap();
    let data = nothing.path().join("typo");
    let (exit, _, said) = alone(&data, &["key", "rotate"]);
    assert!(exit == 6 && said.contains("landform.db") && said.contains("--data"), "{exit}: {said}");
    assert!(!data.exists(), "nothing is made");
}

#[test]
fn what_is_empty_or_mistyped_is_said_so() {
    let nothing = tempfile::tempdir().unwrap();
    let (exit, said, _) = alone(nothing.path(), &["provider", "list"]);
    assert!(exit == 0 && said.contains("none") && said.contains("landform provider add"), "{said}");
    for line in [&["run", "list", "--limit", "0"][..], &["resources", "--limit", "0"]] {
        assert_eq!(alone(nothing.path(), line).0, 2, "{line:?}");
    }
    let (exit, _, said) = alone(nothing.path(), &["tenant", "list", "--token", "x", "--server", "127.0.0.1:7040"]);
    assert!(exit == 2 && said.contains("such as http://127.0.0.1:7040"), "{exit}: {said}");
    for line in [
        &["serve", "--listen", "localhost:7040"][..],
        &["serve", "--metrics-listen", ":1"],
        &["sim", "cato", "--listen", "x"],
    ] {
        let (exit, _, said) = alone(nothing.path(), line);
        assert!(exit == 2 && said.contains("such as 127.0.0.1:7040"), "{line:?}: {said}");
    }
}

#[tokio::test]
async fn hints_are_about_what_was_wrong() {
    let door = Door::open(Memory::Sqlite).await;
    let path = folder(&door, "one", "output \"x\" {\n  value = 1\n}\n");
    door.done(&["template", "push", &path]).await;
    door.done(&["tenant", "put", "acme"]).await;
    let said = door.type_in(&["webhook", "create", "acme", "http://example.org", "--event", "bogus"]).await;
    let hint = said.stderr.lines().find(|line| line.starts_with("hint: ")).unwrap();
    assert!(said.exit == 3 && hint.contains("drift_resolved"), "{}", said.stderr);
    // A line of a batch has one line: where in it is a column.
    let lines = door.data.path().join("lines");
    std::fs::write(&lines, "\n{\"method\": 1}\n").unwrap();
    let said = door.type_in(&["batch", &lines.display().to_string()]).await;
    let answer: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((said.exit, &answer["line"]), (3, &json!(2)));
    let detail = answer["problem"]["detail"].as_str().unwrap();
    assert!(detail.ends_with("at column 12") && !detail.contains("line 1"), "{detail}");
    // A run of another deployment is none to go back to.
    for name in ["acme/a", "acme/b"] {
        door.done(&["deploy", name, "--template", "one", "--wait"]).await;
    }
    // An engine says nothing of an address that is not there.
    let said = door.done(&["again", "acme/a", "--replace", "terraform_data.typo", "--wait"]).await;
    assert!(said.stderr.contains("the state has no object at terraform_data.typo"), "{}", said.stderr);
    let runs = door.done(&["run", "list", "--deployment", "acme/b", "--json"]).await.json();
    let said = door.type_in(&["rollback", "acme/a", "--to", runs[0]["id"].as_str().unwrap()]).await;
    assert!(said.exit == 3 && said.stderr.contains("of deployment `acme/a`"), "{}", said.stderr);
}

/// The log of the run that did it would look as if it was done once more.
#[tokio::test]
async fn asking_for_what_there_is_says_so() {
    let door = Door::open(Memory::Sqlite).await;
    let path = folder(&door, "one", "resource \"terraform_data\" \"it\" {}\noutput \"x\" {\n  value = 1\n}\n");
    door.done(&["template", "push", &path]).await;
    door.done(&["tenant", "put", "acme"]).await;
    let deploy = ["deploy", "acme/site", "--template", "one"];
    let first = door.done(&[&deploy[..], &["--wait"]].concat()).await;
    assert!(first.stderr.contains("created terraform_data.it"), "{}", first.stderr);
    let again = door.done(&[&deploy[..], &["--wait"]].concat()).await;
    assert_eq!(again.stdout, first.stdout, "the same run and the same outputs");
    assert!(again.stderr.contains("landform again acme/site") && !again.stderr.contains("created"), "{}", again.stderr);
    let accepted = door.done(&deploy).await;
    assert!(accepted.stderr.contains("landform again acme/site"), "{}", accepted.stderr);
    let runs = door.done(&["run", "list", "--json"]).await.json();
    assert_eq!(runs.as_array().unwrap().len(), 1, "{runs}");
}

/// Once where it happens, and once at the end, with the hint.
#[tokio::test]
async fn a_failure_is_not_told_again_and_again() {
    let door = without_providers().await;
    let path = folder(&door, "sleep", SLEEP);
    door.done(&["template", "push", &path]).await;
    door.done(&["tenant", "put", "acme"]).await;
    let said = door.type_in(&["deploy", "acme/site", "--template", "sleep", "--wait"]).await;
    assert_eq!(said.exit, 1, "{}", said.stderr);
    assert_eq!(said.stderr.matches("is not installed here").count(), 2, "{}", said.stderr);
    assert!(said.stderr.contains("\nfailed\n") && said.stderr.contains("(plan_failed)\nhint: "), "{}", said.stderr);
}
