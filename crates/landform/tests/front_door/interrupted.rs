//! Commands that are killed half-way: what they leave is whole, or the same command finishes it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use landform_testkit::landform::{Landform, answer};
use serde_json::json;

use crate::{Door, Memory, binary};

/// Moments at which a process is killed, in milliseconds after its start.
const MOMENTS: [u64; 6] = [1, 5, 10, 20, 40, 80];

fn kill_after(millis: u64, data: &Path, args: &[&str]) {
    let mut command = Command::new(binary());
    command.args(args).arg("--data").arg(data).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(millis));
    let _ = child.kill();
    child.wait().unwrap();
}

fn run(data: &Path, args: &[&str]) -> (bool, String) {
    let output = Command::new(binary()).args(args).arg("--data").arg(data).output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

const SECRET: &str = r#"
variable "password" {
  type      = string
  sensitive = true
}
resource "terraform_data" "it" { input = var.password }
output "length" { value = nonsensitive(length(terraform_data.it.output)) }
"#;

/// A server that has something to lose.
async fn furnished() -> Door {
    let door = Door::open(Memory::Sqlite).await;
    door.landform.call("PUT", "/v1/tenants/acme", None).await.unwrap();
    door.landform.push_template("it", &[("main.tf", SECRET)]).await.unwrap();
    apply(&door.landform, "four").await;
    door
}

async fn apply(landform: &Landform, password: &str) {
    let body = json!({"template": "it", "engine": "native", "inputs": {"password": password}});
    let request = landform.request(reqwest::Method::PUT, "/v1/tenants/acme/deployments/site");
    let ended = answer(request.header("prefer", "wait=60").json(&body)).await.unwrap();
    assert_eq!(ended["outputs"]["length"]["value"], password.len(), "{ended}");
}

#[tokio::test]
async fn a_change_of_the_master_key_can_be_interrupted_anywhere() {
    let door = furnished().await;
    let data = door.data;
    door.landform.stop().await.unwrap();
    let (key, next) = (data.path().join("master.key"), data.path().join("master.key.next"));
    let restart = async |password: &str| {
        let landform = Landform::start(&crate::plain_setup(data.path())).await.unwrap();
        apply(&landform, password).await;
        landform.stop().await.unwrap();
    };
    // Everything is sealed with the new key, but that has not its name yet.
    let before = std::fs::read(&key).unwrap();
    assert!(run(data.path(), &["key", "rotate"]).0);
    std::fs::rename(&key, &next).unwrap();
    landform_base::file::write_private(&key, &before).unwrap();
    let (started, why) = run(data.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert!(!started && why.contains("landform key rotate"), "{why}");
    assert!(run(data.path(), &["key", "rotate"]).0);
    assert!(!next.exists() && std::fs::read(&key).unwrap() != before);
    restart("seven77").await;
    // The new key is there, and nothing is sealed with it yet.
    landform_base::seal::MasterKey::load_or_create(&next).unwrap();
    assert!(run(data.path(), &["key", "rotate"]).0);
    restart("eight888").await;
    for millis in MOMENTS {
        kill_after(millis, data.path(), &["key", "rotate"]);
        let (done, why) = run(data.path(), &["key", "rotate"]);
        assert!(done, "after {millis} ms: {why}");
        restart(&"x".repeat(millis as usize + 10)).await;
    }
}

#[tokio::test]
async fn a_first_start_can_be_interrupted_anywhere() {
    for millis in MOMENTS.into_iter().chain([160, 320]) {
        let data = tempfile::tempdir().unwrap();
        kill_after(millis, data.path(), &["serve", "--listen", "127.0.0.1:0"]);
        let setup = crate::plain_setup(data.path());
        let landform = Landform::start(&setup).await.unwrap();
        let made = landform.call("PUT", "/v1/tenants/acme", None).await;
        assert!(made.is_ok(), "the token on disk does not work after a kill at {millis} ms: {made:?}");
        landform.stop().await.unwrap();
    }
}

#[tokio::test]
async fn a_restore_can_be_interrupted_anywhere() {
    let door = furnished().await;
    let backup = door.data.path().join("copy");
    door.done(&["backup", backup.to_str().unwrap(), "--with-master-key"]).await;
    door.landform.stop().await.unwrap();
    for millis in MOMENTS {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let back = ["restore", backup.to_str().unwrap()];
        kill_after(millis, &data, &back);
        // There is nothing yet, and it can be done again; or there is all of it, and it waits.
        let there = data.join("landform.db").exists();
        let (done, why) = run(&data, &back);
        assert_eq!(done, !there, "after {millis} ms: {why}");
        assert!(run(&data, &["token", "admin"]).0);
        let landform = Landform::start(&crate::plain_setup(&data)).await.unwrap();
        let site = landform.call("GET", "/v1/tenants/acme/deployments/site", None).await.unwrap();
        assert_eq!(site["paused"], true, "after {millis} ms: {site}");
        landform.stop().await.unwrap();
    }
}
