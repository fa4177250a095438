//! Several processes on one PostgreSQL.

use std::process::{Child, Command, Stdio};

use landform_testkit::landform::answer;
use serde_json::{Value, json};

use crate::{Door, Memory, binary};

const TEMPLATE: &str = "variable \"word\" {}\nresource \"terraform_data\" \"a\" {\n  input = var.word\n}\noutput \"said\" {\n  value = terraform_data.a.output\n}\n";

/// A door that does no work, and a worker without a door: what one accepts the other carries out, and it ends in order
/// when it is asked to.
#[tokio::test]
async fn a_worker_carries_out_what_another_process_accepts() {
    let door = Door::open_as(Memory::Postgres, &["--role", "api"]).await;
    let landform = &door.landform;
    landform.call("PUT", "/v1/tenants/acme", Some(json!({}))).await.unwrap();
    landform.push_template("echo", &[("main.tf", TEMPLATE)]).await.unwrap();
    let body = |word: &str| json!({"template": "echo", "inputs": {"word": word}});
    let first = landform.call("PUT", "/v1/tenants/acme/deployments/one", Some(body("first"))).await.unwrap();
    assert_eq!(first["run"]["status"], "queued", "{first}");

    let data = tempfile::tempdir().unwrap();
    std::fs::copy(door.data.path().join("master.key"), data.path().join("master.key")).unwrap();
    let mut worker = Process(
        Command::new(binary())
            .args(["serve", "--role", "worker", "--database", door.setup.database.as_deref().unwrap(), "--data"])
            .arg(data.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(data.path().join("log")).unwrap())
            .spawn()
            .unwrap(),
    );
    // Both may be carried out at the same time, so each is waited for; the same PUT again is the same run.
    for (name, word) in [("two", "second"), ("one", "first")] {
        let request = landform.request(reqwest::Method::PUT, &format!("/v1/tenants/acme/deployments/{name}"));
        let ended: Value = answer(request.header("prefer", "wait=60").json(&body(word))).await.unwrap();
        assert_eq!(ended["outputs"]["said"]["value"], word, "{ended}");
    }

    Command::new("kill").args(["-TERM", &worker.0.id().to_string()]).status().unwrap();
    assert!(worker.0.wait().unwrap().success(), "{}", std::fs::read_to_string(data.path().join("log")).unwrap());
}

/// Ends with the test, however that ends.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn sqlite_has_one_process_that_does_everything() {
    let data = tempfile::tempdir().unwrap();
    let output =
        Command::new(binary()).args(["serve", "--role", "worker", "--data"]).arg(data.path()).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("SQLite is for one process"), "{output:?}");
}
