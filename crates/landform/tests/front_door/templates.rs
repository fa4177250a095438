//! Templates: versions that go.

use serde_json::json;

use crate::{Door, Memory};

async fn versions_of_templates_are_deleted(memory: Memory) {
    let door = Door::open(memory).await;
    door.landform.call("PUT", "/v1/tenants/acme", None).await.unwrap();
    let push =
        async |text: &str| door.landform.push_template("it", &[("main.tf", text)]).await.unwrap()["version"].clone();
    for number in 1..=3 {
        assert_eq!(push(&format!("output \"x\" {{\n  value = {number}\n}}\n")).await, number);
    }
    let deploy = ["deploy", "acme/site", "--wait", "--template"];
    door.done(&[&deploy[..], &["it@1"]].concat()).await;
    let first = door.landform.call("GET", "/v1/runs", None).await.unwrap()["runs"][0]["id"].clone();
    let said = door.type_in(&["template", "delete", "it@1"]).await;
    assert!(said.exit == 3 && said.stderr.contains("acme/site"), "{}", said.stderr);
    door.done(&[&deploy[..], &["it@2"]].concat()).await;
    door.done(&["template", "delete", "it@1"]).await;
    door.done(&["template", "delete", "it@3"]).await;
    let versions = door.landform.call("GET", "/v1/templates/it", None).await.unwrap()["versions"].clone();
    assert_eq!(versions.as_array().unwrap().iter().map(|v| v["version"].clone()).collect::<Vec<_>>(), [2]);
    assert_eq!(push("output \"x\" {\n  value = 3\n}\n").await, 4, "a number is never given again");
    // What is gone cannot be gone back to.
    let rollback = json!({"run": first});
    let refused = door.landform.call("POST", "/v1/tenants/acme/deployments/site/rollback", Some(rollback)).await;
    assert!(refused.unwrap_err().to_string().contains("template_unknown"));
    for gone in ["it@1", "it@9"] {
        assert_eq!(door.type_in(&["template", "delete", gone]).await.exit, 3);
    }
    assert_eq!(door.type_in(&["template", "delete", "it"]).await.exit, 2, "the version is named");
}

#[tokio::test]
async fn versions_of_templates_are_deleted_on_sqlite() {
    versions_of_templates_are_deleted(Memory::Sqlite).await;
}

#[tokio::test]
async fn versions_of_templates_are_deleted_on_postgres() {
    versions_of_templates_are_deleted(Memory::Postgres).await;
}
