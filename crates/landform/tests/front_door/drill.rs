//! The drill: back it up while it works, lose everything, bring it back, and go on. With both stores, and with a new
//! master key in between.

use std::path::Path;
use std::process::Command;

use landform_testkit::landform::{Landform, Setup, answer};
use landform_testkit::{parts, postgres};
use serde_json::{Value, json};

use crate::binary;

const TEMPLATE: &str = r#"
variable "size" { type = number }

resource "terraform_data" "thing" {
  input = var.size
}

output "size" { value = terraform_data.thing.output }
output "id" { value = terraform_data.thing.id }
"#;

/// A command beside the server; what it says if it works.
fn landform(data: &Path, database: Option<&str>, args: &[&str]) -> Result<Value, String> {
    let mut command = Command::new(binary());
    command.args(args).arg("--data").arg(data).arg("--json").env_clear();
    if let Some(url) = database {
        command.args(["--database", url]);
    }
    let output = command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).output().unwrap();
    match output.status.success() {
        true => Ok(serde_json::from_slice(&output.stdout).unwrap()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

fn setup(data: &Path, database: Option<&str>) -> Setup {
    Setup {
        binary: binary(),
        data: data.to_owned(),
        database: database.map(str::to_owned),
        providers: parts::mirror(),
        tofu: None,
        workers: 1,
        more: Vec::new(),
    }
}

async fn apply(landform: &Landform, size: u32) -> Value {
    let body = json!({"template": "thing", "engine": "native", "inputs": {"size": size}});
    let path = "/v1/tenants/acme/deployments/site";
    let ended =
        answer(landform.request(reqwest::Method::PUT, path).header("prefer", "wait=60").json(&body)).await.unwrap();
    assert_eq!(ended["run"]["status"], "succeeded", "{ended}");
    ended["outputs"].clone()
}

async fn drill(database: Option<&str>, empty_database: Option<&str>) {
    let folder = tempfile::tempdir().unwrap();
    let (first, second, backup) =
        (folder.path().join("first"), folder.path().join("second"), folder.path().join("copy"));
    std::fs::create_dir(&first).unwrap();
    let server = Landform::start(&setup(&first, database)).await.unwrap();
    server.call("PUT", "/v1/tenants/acme", Some(json!({}))).await.unwrap();
    server.push_template("thing", &[("main.tf", TEMPLATE)]).await.unwrap();
    let before = apply(&server, 1).await;

    // The master key changes only while nobody works, and the server finds everything afterwards.
    let at_work = landform(&first, database, &["key", "rotate"]).unwrap_err();
    assert!(at_work.contains("another server works on"), "{at_work}");
    server.stop().await.unwrap();
    let old_key = std::fs::read(first.join("master.key")).unwrap();
    if database.is_none() {
        std::fs::rename(first.join("master.key"), first.join("aside")).unwrap();
        let refused = landform(&first, database, &["key", "rotate"]).unwrap_err();
        assert!(refused.contains("no master key beside it"), "{refused}");
        assert!(!first.join("master.key").exists(), "a new one would be taken for the right one");
        std::fs::rename(first.join("aside"), first.join("master.key")).unwrap();
    }
    let rotated = landform(&first, database, &["key", "rotate"]).unwrap();
    assert_eq!(rotated["tenants"], 1);
    assert_eq!(std::fs::read(rotated["old_key_file"].as_str().unwrap()).unwrap(), old_key, "for older backups");
    assert_ne!(std::fs::read(first.join("master.key")).unwrap(), old_key);
    let server = Landform::start(&setup(&first, database)).await.unwrap();
    apply(&server, 2).await;

    landform(&first, database, &["backup", backup.to_str().unwrap()]).unwrap();
    assert!(!backup.join("master.key").exists(), "the key is in it only when asked for");
    assert!(landform(&first, database, &["backup", backup.to_str().unwrap()]).is_err(), "never over another");
    server.kill().unwrap();

    let nowhere = landform(&second, empty_database, &["restore", "no-such-folder"]).unwrap_err();
    assert!(nowhere.contains("there is no backup in") && nowhere.contains("usage"), "{nowhere}");
    let back = ["restore", backup.to_str().unwrap()];
    let refused = landform(&second, empty_database, &back).unwrap_err();
    assert!(refused.contains("no master key"), "{refused}");
    std::fs::copy(first.join("master.key"), second.join("master.key")).unwrap();
    assert_eq!(landform(&second, empty_database, &back).unwrap()["paused"], true);
    assert!(landform(&second, empty_database, &back).is_err(), "never over another");
    // The first folder is lost, and the admin token with it.
    std::fs::remove_dir_all(&first).unwrap();
    landform(&second, empty_database, &["token", "admin"]).unwrap();
    let server = Landform::start(&setup(&second, empty_database)).await.unwrap();
    server.call("POST", "/v1/resume", None).await.unwrap();
    let after = apply(&server, 3).await;
    assert_eq!(after["id"], before["id"], "the object is the same, so its state came through");
    assert_eq!(after["size"]["value"], 3);
}

#[tokio::test]
async fn a_backup_of_sqlite_brings_everything_back() {
    drill(None, None).await;
}

#[tokio::test]
async fn a_backup_of_postgresql_brings_everything_back() {
    let server = postgres::Server::start().unwrap();
    let (first, second) = (server.database("first").await.unwrap(), server.database("second").await.unwrap());
    drill(Some(&first), Some(&second)).await;
}
