//! The walk by the binary's own commands, as somebody types them.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::{Door, Memory, binary};

pub(crate) struct Said {
    pub(crate) exit: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Said {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {} {}", self.stdout, self.stderr))
    }
}

impl Door {
    /// A command with nothing but the data folder to find the token by.
    fn command(&self, line: &[&str]) -> tokio::process::Command {
        let server = self.landform.request(reqwest::Method::GET, "").build().unwrap().url().to_string();
        let mut command = tokio::process::Command::new(binary());
        command.args(line).env("LANDFORM_SERVER", server).env("LANDFORM_DATA", self.data.path());
        command.env_remove("LANDFORM_TOKEN").stdin(Stdio::null());
        command
    }

    pub(crate) async fn type_in(&self, line: &[&str]) -> Said {
        let output = self.command(line).output().await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Said { exit: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    pub(crate) async fn done(&self, line: &[&str]) -> Said {
        let said = self.type_in(line).await;
        assert_eq!(said.exit, 0, "{line:?}: {}{}", said.stdout, said.stderr);
        said
    }
}

fn template(folder: &Path, text: &str) -> String {
    std::fs::create_dir_all(folder.join(".terraform")).unwrap();
    std::fs::write(folder.join("main.tf"), text).unwrap();
    std::fs::write(folder.join(".terraform/left-out"), "x").unwrap();
    folder.display().to_string()
}

const TEMPLATE: &str = r#"
variable "text" { type = string }
variable "list" {
  type    = list(number)
  default = []
}
resource "terraform_data" "it" { input = var.text }
output "text" { value = terraform_data.it.output }
output "sum" { value = sum(concat([0], var.list)) }
"#;

#[tokio::test]
async fn the_walk() {
    let door = Door::open(Memory::Sqlite).await;
    let folder = door.data.path().join("templates/net");
    let path = template(&folder, TEMPLATE);
    door.done(&["tenant", "put", "acme"]).await;
    assert!(door.done(&["tenant", "list"]).await.stdout.contains("acme"));
    let pushed = door.done(&["template", "push", &path, "--json"]).await.json();
    assert_eq!((&pushed["name"], &pushed["version"]), (&json!("net"), &json!(1)));

    let deploy = ["deploy", "acme/site", "--template", "net", "--engine", "cli", "--wait"];
    let deploy = |more: &[&'static str]| [&deploy, more].concat();
    let said = door.done(&deploy(&["--var", "text=12", "--var", "list:=[1,2,3]"])).await;
    assert!(said.stdout.contains("text = \"12\"") && said.stdout.contains("sum = 6"), "{}", said.stdout);
    assert!(said.stderr.contains("created terraform_data.it"), "{}", said.stderr);
    let again = door.done(&deploy(&["--var", "text=13", "--json"])).await.json();
    assert_eq!(again["run"]["status"], "succeeded");
    assert_eq!(again["outputs"]["text"]["value"], "13");

    assert_eq!(door.done(&["output", "acme/site", "--json"]).await.json()["text"]["value"], "13");
    assert!(door.done(&["deployments"]).await.stdout.contains("acme/site"));
    let state = door.done(&["state", "pull", "acme/site"]).await.json();
    assert_eq!(state["version"], 4);
    let runs = door.done(&["run", "list", "--tenant", "acme", "--json"]).await.json();
    assert_eq!(runs.as_array().unwrap().len(), 2);
    let id = runs[0]["id"].as_str().unwrap();
    assert!(door.done(&["run", "watch", id]).await.stdout.contains("updated terraform_data.it"));
    assert!(door.done(&["run", "show", id]).await.stdout.contains("succeeded"));
    let gone = door.done(&["destroy", "acme/site", "--wait", "--json"]).await.json();
    assert_eq!(gone["run"]["status"], "succeeded");
    assert_eq!(door.type_in(&["output", "acme/site"]).await.exit, 3);
}

#[tokio::test]
async fn approval_and_failure_have_exit_codes_of_their_own() {
    let door = Door::open(Memory::Sqlite).await;
    let failing = r#"resource "terraform_data" "it" {
        provisioner "local-exec" { command = "exit 9" }
    }"#;
    let path = template(&door.data.path().join("bad"), failing);
    door.done(&["tenant", "put", "acme"]).await;
    door.done(&["template", "push", &path]).await;
    let deploy = ["deploy", "acme/site", "--template", "bad@1", "--engine", "cli", "--wait"];
    let waits = door.type_in(&[deploy.as_slice(), &["--approval", "--json"]].concat()).await;
    assert_eq!(waits.exit, 5, "{}", waits.stderr);
    let id = waits.json()["run"]["id"].as_str().unwrap().to_owned();
    for words in [["run", "approve", &id, "--wait"].as_slice(), &["run", "watch", &id]] {
        let failed = door.type_in(words).await;
        assert_eq!(failed.exit, 1, "{}", failed.stderr);
        assert!(failed.stderr.contains("apply_failed") && failed.stderr.contains("hint: "), "{}", failed.stderr);
        let shown = failed.stdout + &failed.stderr;
        assert!(shown.contains("exit status 9"), "the diagnostics are shown: {shown}");
    }
}

#[tokio::test]
async fn whoever_stops_watching_leaves_the_run_alone() {
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
    let door = Door::open(Memory::Sqlite).await;
    let slow = r#"resource "terraform_data" "slow" {
        provisioner "local-exec" { command = "sleep 3" }
    }"#;
    let path = template(&door.data.path().join("slow"), slow);
    door.done(&["tenant", "put", "acme"]).await;
    door.done(&["template", "push", &path]).await;
    let mut watching = door
        .command(&["deploy", "acme/site", "--template", "slow", "--engine", "cli", "--wait"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watching.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("creating terraform_data.slow") {
        line.clear();
        assert_ne!(lines.read_line(&mut line).await.unwrap(), 0, "it ended too early");
    }
    let interrupt = std::process::Command::new("kill").args(["-INT", &watching.id().unwrap().to_string()]).status();
    assert!(interrupt.unwrap().success());
    assert_eq!(watching.wait().await.unwrap().code(), Some(130));
    let mut rest = String::new();
    lines.read_to_string(&mut rest).await.unwrap();
    assert!(rest.contains("goes on"), "{rest}");
    let runs = door.done(&["run", "list", "--json"]).await.json();
    door.done(&["run", "watch", runs[0]["id"].as_str().unwrap()]).await;
}

#[tokio::test]
async fn wrong_usage_is_explained() {
    let door = Door::open(Memory::Sqlite).await;
    assert_eq!(door.type_in(&["tenant", "put", "NO"]).await.exit, 2);
    assert_eq!(door.type_in(&["deploy", "acme", "--template", "x"]).await.exit, 2);
    let unknown = door.type_in(&["deploy", "acme/site", "--template", "x", "--json"]).await;
    assert_eq!(unknown.exit, 3);
    let problem: Value = serde_json::from_str(&unknown.stderr).unwrap();
    assert_eq!(problem["code"], "tenant_unknown");
    assert_eq!(door.type_in(&["tenant", "list", "--token", "lf_admin_wrong"]).await.exit, 3);
    let nobody = door.type_in(&["tenant", "list", "--server", "http://127.0.0.1:9"]).await;
    assert_eq!(nobody.exit, 4, "{}", nobody.stderr);
    assert!(nobody.stderr.contains("landform serve"), "{}", nobody.stderr);
    let help = door.done(&["--help"]).await;
    assert!(help.stdout.contains("Exit codes"));
}

/// A wish to adopt what is nowhere is said to be one, and can be taken back: it would be in the way of everything.
#[tokio::test]
async fn a_wrong_adoption_is_refused_and_taken_back() {
    let door = Door::open(Memory::Sqlite).await;
    let folder = template(&door.data.path().join("template"), TEMPLATE);
    door.done(&["tenant", "put", "acme"]).await;
    door.done(&["template", "push", &folder, "--name", "one"]).await;
    door.done(&["deploy", "acme/site", "--template", "one", "--var", "text=hi", "--wait"]).await;
    for engine in ["native", "cli"] {
        door.done(&["deploy", "acme/site", "--template", "one", "--var", "text=hi", "--engine", engine, "--wait"])
            .await;
        let said = door.type_in(&["again", "acme/site", "--adopt", "terraform_data.typo=x", "--wait"]).await;
        assert_eq!(said.exit, 1, "{}{}", said.stdout, said.stderr);
        assert!(said.stderr.contains("Configuration for import target does not exist"), "{engine}: {}", said.stderr);
        assert!(said.stderr.contains("--absent ADDRESS"), "the hint is about adoptions: {}", said.stderr);
        let said = door.type_in(&["--json", "again", "acme/site", "--absent", "terraform_data.it"]).await;
        assert_eq!(said.exit, 3);
        assert_eq!(serde_json::from_str::<Value>(&said.stderr).unwrap()["code"], "adoption_unknown");
        door.done(&["again", "acme/site", "--absent", "terraform_data.typo", "--wait"]).await;
    }
    door.done(&["destroy", "acme/site", "--wait"]).await;
}

#[tokio::test]
async fn wrong_usage_is_json_too_where_that_is_asked_for() {
    let door = Door::open(Memory::Sqlite).await;
    for line in [&["--json", "bogus"][..], &["run", "show", "--json"], &["--json", "deploy", "acme/site"]] {
        let said = door.type_in(line).await;
        let problem: Value =
            serde_json::from_str(&said.stderr).unwrap_or_else(|e| panic!("{line:?}: {e}: {}", said.stderr));
        assert_eq!((said.exit, &problem["code"]), (2, &json!("usage")), "{line:?}");
    }
}
