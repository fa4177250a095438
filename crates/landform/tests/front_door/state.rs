//! The `http` state backend, spoken to by the real CLI and by hand.

use std::path::Path;
use std::process::Stdio;

use landform_testkit::parts;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{Door, Memory};

const STATE: &str = "/v1/state/acme/site";

fn own(name: &str) -> Method {
    Method::from_bytes(name.as_bytes()).unwrap()
}

async fn tofu(folder: &Path, args: &[&str]) -> (bool, String) {
    let output = tokio::process::Command::new(parts::tofu())
        .current_dir(folder)
        .args(args)
        .env("TF_IN_AUTOMATION", "1")
        .env("CHECKPOINT_DISABLE", "1")
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.success(), text)
}

async fn must(folder: &Path, args: &[&str]) -> String {
    let (success, text) = tofu(folder, args).await;
    assert!(success, "tofu {args:?}: {text}");
    text
}

impl Door {
    async fn status(&self, method: &str, path: &str, body: Option<Value>) -> StatusCode {
        let mut request = self.landform.request(own(method), path);
        if let Some(body) = body {
            request = request.json(&body);
        }
        request.send().await.unwrap().status()
    }
}

/// A state that the CLI made moves in, is taken over by a deployment, and moves out again.
async fn a_state_moves_in_and_out(memory: Memory) {
    let door = Door::open(memory).await;
    door.landform.call("PUT", "/v1/tenants/acme", None).await.unwrap();
    let folder = door.data.path().join("work");
    std::fs::create_dir_all(&folder).unwrap();
    let main = r#"
variable "text" { default = "by hand" }
resource "terraform_data" "it" { input = var.text }
output "text" { value = terraform_data.it.output }
"#;
    std::fs::write(folder.join("main.tf"), main).unwrap();
    must(&folder, &["init", "-no-color"]).await;
    must(&folder, &["apply", "-auto-approve", "-no-color"]).await;

    let token = std::fs::read_to_string(door.data.path().join("admin.token")).unwrap();
    let address = door.landform.request(Method::GET, STATE).build().unwrap().url().to_string();
    let backend = format!(
        "terraform {{\n  backend \"http\" {{\n    address = {address:?}\n    lock_address = {address:?}\n    \
         unlock_address = {address:?}\n    username = \"token\"\n    password = {:?}\n  }}\n}}\n",
        token.trim()
    );
    std::fs::write(folder.join("backend.tf"), backend).unwrap();
    must(&folder, &["init", "-migrate-state", "-force-copy", "-no-color"]).await;
    let moved = door.landform.call("GET", STATE, None).await.unwrap();
    assert_eq!(moved["outputs"]["text"]["value"], "by hand", "{moved}");
    // The CLI goes on working with it.
    must(&folder, &["apply", "-auto-approve", "-no-color", "-var", "text=by the CLI"]).await;

    // And so does a deployment of the same name.
    door.landform.push_template("it", &[("main.tf", main)]).await.unwrap();
    let put = json!({"template": "it", "inputs": {"text": "by Landform"}});
    let request = door.landform.request(Method::PUT, "/v1/tenants/acme/deployments/site").header("prefer", "wait=60");
    let made = landform_testkit::landform::answer(request.json(&put)).await.unwrap();
    assert_eq!(made["run"]["status"], "succeeded", "{made}");
    let after = door.landform.call("GET", STATE, None).await.unwrap();
    assert_eq!(after["lineage"], moved["lineage"]);
    let id = |state: &Value| state["resources"][0]["instances"][0]["attributes"]["id"].clone();
    assert_eq!(id(&after), id(&moved), "the very same object");

    // Out again: the CLI copies the state back into a file of its own.
    std::fs::remove_file(folder.join("backend.tf")).unwrap();
    std::fs::remove_file(folder.join("terraform.tfstate")).unwrap();
    must(&folder, &["init", "-migrate-state", "-force-copy", "-no-color"]).await;
    let local: Value = serde_json::from_slice(&std::fs::read(folder.join("terraform.tfstate")).unwrap()).unwrap();
    assert_eq!(id(&local), id(&after));
    let plan = must(&folder, &["plan", "-no-color", "-detailed-exitcode", "-var", "text=by Landform"]).await;
    assert!(plan.contains("No changes"), "{plan}");
}

#[tokio::test]
async fn a_state_moves_in_and_out_on_sqlite() {
    a_state_moves_in_and_out(Memory::Sqlite).await;
}

#[tokio::test]
async fn a_state_moves_in_and_out_on_postgres() {
    a_state_moves_in_and_out(Memory::Postgres).await;
}

#[tokio::test]
async fn locks_and_serials_are_respected() {
    let door = Door::open(Memory::Sqlite).await;
    door.landform.call("PUT", "/v1/tenants/acme", None).await.unwrap();
    door.landform.push_template("it", &[("main.tf", r#"resource "terraform_data" "it" {}"#)]).await.unwrap();
    let state = |serial: u64, lineage: &str, mark: &str| {
        let resource = json!({"mode": "managed", "type": "terraform_data", "name": mark, "instances": [],
            "provider": "provider[\"terraform.io/builtin/terraform\"]"});
        Some(json!({"version": 4, "terraform_version": "1.12.6", "serial": serial, "lineage": lineage,
            "outputs": {}, "resources": [resource], "check_results": null}))
    };
    use StatusCode as S;
    assert_eq!(door.status("GET", STATE, None).await, S::NOT_FOUND);
    assert_eq!(door.status("POST", STATE, Some(json!({"version": 3}))).await, S::UNPROCESSABLE_ENTITY);
    assert_eq!(door.status("POST", STATE, state(3, "a", "x")).await, S::OK);
    assert_eq!(door.status("POST", STATE, state(3, "a", "x")).await, S::OK, "clients ask again");
    assert_eq!(door.status("POST", STATE, state(3, "a", "y")).await, S::CONFLICT);
    assert_eq!(door.status("POST", STATE, state(2, "a", "x")).await, S::CONFLICT);
    assert_eq!(door.status("POST", STATE, state(9, "b", "x")).await, S::CONFLICT, "another lineage");
    assert_eq!(door.status("POST", &format!("{STATE}?force=true"), state(1, "b", "x")).await, S::OK);

    // A person's lock keeps others and runs away.
    let torn = door.landform.request(own("LOCK"), STATE).body("{\"ID\"").send().await.unwrap();
    assert_eq!(torn.json::<Value>().await.unwrap()["code"], "request_invalid");
    assert_eq!(door.status("LOCK", STATE, Some(json!({"ID": "l1", "Who": "ann"}))).await, S::OK);
    assert_eq!(door.status("LOCK", STATE, Some(json!({"ID": "l1", "Who": "ann"}))).await, S::OK, "asked again");
    let request = door.landform.request(own("LOCK"), STATE).json(&json!({"ID": "l2", "Who": "bob"}));
    let held = request.send().await.unwrap();
    assert_eq!(held.status(), S::LOCKED);
    assert_eq!(held.json::<Value>().await.unwrap()["Who"], "ann", "who is in the way");
    assert_eq!(door.status("POST", STATE, state(2, "b", "x")).await, S::LOCKED);
    assert_eq!(door.status("POST", &format!("{STATE}?ID=l1"), state(2, "b", "x")).await, S::OK);
    let put = json!({"template": "it"});
    let run = door.landform.call("PUT", "/v1/tenants/acme/deployments/site", Some(put)).await.unwrap();
    let run = format!("/v1/runs/{}", run["run"]["id"].as_str().unwrap());
    assert_eq!(door.status("UNLOCK", STATE, Some(json!({"ID": "l2"}))).await, S::LOCKED);
    assert_eq!(door.landform.call("GET", &run, None).await.unwrap()["status"], "queued", "it waits for the lock");
    assert_eq!(door.status("UNLOCK", STATE, None).await, S::OK, "an admin's force");
    loop {
        let now = door.landform.call("GET", &run, None).await.unwrap();
        if now["finished"] == true {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(door.status("POST", &format!("{STATE}?ID=l1"), state(90, "b", "x")).await, S::CONFLICT, "gone");
    let log = door.landform.call("GET", "/v1/audit?action=state.", None).await.unwrap();
    assert_eq!(log["entries"][0]["detail"], json!({"lock": "l1", "forced": true}), "{log}");
}
