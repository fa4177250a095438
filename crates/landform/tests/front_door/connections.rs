//! A tenant's credentials: they reach the provider's configuration, and nothing else.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{Door, Memory};

const CONNECTION: &str = "/v1/tenants/acme/connections/cloud";
const DEPLOYMENT: &str = "/v1/tenants/acme/deployments/site";

/// The validation says whether the value has arrived, at the plan and at the apply.
const TEMPLATE: &str = r#"
variable "key" {
  type      = string
  ephemeral = true
  sensitive = true
  validation {
    condition     = contains(["first-s3cret", "second-s3cret"], var.key)
    error_message = "This is another key."
  }
}
variable "text" { default = "one" }
resource "terraform_data" "it" { input = var.text }
output "text" { value = terraform_data.it.output }
"#;

async fn put(door: &Door, body: Value) -> (StatusCode, Value) {
    let request = door.landform.request(Method::PUT, DEPLOYMENT).header("prefer", "wait=60").json(&body);
    let response = request.send().await.unwrap();
    (response.status(), response.json().await.unwrap())
}

async fn credentials_reach_the_run_and_nobody_else(memory: Memory) {
    let door = Door::open(memory).await;
    door.landform.call("PUT", "/v1/tenants/acme", None).await.unwrap();
    door.landform.push_template("it", &[("main.tf", TEMPLATE)]).await.unwrap();
    let made =
        door.landform.call("PUT", CONNECTION, Some(json!({"variables": {"key": "first-s3cret"}}))).await.unwrap();
    assert_eq!((&made["version"], &made["variables"]), (&json!(1), &json!(["key"])));

    let without = put(&door, json!({"template": "it"})).await;
    assert_eq!((without.0, &without.1["code"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("input_invalid")));
    let unknown = put(&door, json!({"template": "it", "connections": ["nothing"]})).await;
    assert_eq!((unknown.0, &unknown.1["code"]), (StatusCode::NOT_FOUND, &json!("connection_unknown")));
    let twice = put(&door, json!({"template": "it", "connections": ["cloud"], "inputs": {"key": "mine"}})).await;
    assert_eq!(twice.1["code"], "connection_invalid", "{}", twice.1);

    let wanted = json!({"template": "it", "engine": "cli", "connections": ["cloud"], "requires_approval": true});
    let (status, waiting) = put(&door, wanted).await;
    assert_eq!((status, &waiting["run"]["status"]), (StatusCode::ACCEPTED, &json!("awaiting_approval")), "{waiting}");
    // Rotated between plan and approval: the new value is used.
    let rotated = door.landform.call("PUT", CONNECTION, Some(json!({"variables": {"key": "second-s3cret"}})));
    assert_eq!(rotated.await.unwrap()["version"], 2);
    let run = format!("/v1/runs/{}", waiting["run"]["id"].as_str().unwrap());
    door.landform.call("POST", &format!("{run}/approve"), None).await.unwrap();
    let ended = loop {
        let now = door.landform.call("GET", &run, None).await.unwrap();
        if now["finished"] == true {
            break now;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    assert_eq!(ended["status"], "succeeded", "{ended}");

    let in_use = door.landform.request(Method::DELETE, CONNECTION).send().await.unwrap();
    assert_eq!(in_use.status(), StatusCode::CONFLICT);
    for path in [CONNECTION, DEPLOYMENT, "/v1/audit", &run, &format!("{run}/events"), "/v1/state/acme/site"] {
        let text = door.landform.call("GET", path, None).await.unwrap().to_string();
        assert!(!text.contains("s3cret"), "{path}: {text}");
    }
    let listed = door.done(&["connection", "list", "acme"]).await.stdout;
    assert!(listed.contains("cloud") && !listed.contains("s3cret"), "{listed}");
}

#[tokio::test]
async fn credentials_reach_the_run_and_nobody_else_on_sqlite() {
    credentials_reach_the_run_and_nobody_else(Memory::Sqlite).await;
}

#[tokio::test]
async fn credentials_reach_the_run_and_nobody_else_on_postgres() {
    credentials_reach_the_run_and_nobody_else(Memory::Postgres).await;
}

#[tokio::test]
async fn a_value_that_would_be_kept_is_refused_and_an_environment_needs_leave() {
    let door = Door::open(Memory::Sqlite).await;
    door.landform.call("PUT", "/v1/tenants/acme", None).await.unwrap();
    door.landform.push_template("it", &[("main.tf", "variable \"key\" { type = string }")]).await.unwrap();
    let values = json!({"variables": {"key": "x"}});
    door.landform.call("PUT", CONNECTION, Some(values)).await.unwrap();
    let (_, refused) = put(&door, json!({"template": "it", "connections": ["cloud"]})).await;
    assert_eq!(refused["code"], "connection_invalid");
    assert!(refused["detail"].as_str().unwrap().contains("ephemeral = true"), "{refused}");

    door.landform.push_template("it", &[("main.tf", "output \"a\" { value = 1 }")]).await.unwrap();
    let values = json!({"environment": {"LEDGER_KEY": "x"}});
    door.landform.call("PUT", CONNECTION, Some(values)).await.unwrap();
    let (_, failed) = put(&door, json!({"template": "it", "connections": ["cloud"]})).await;
    assert_eq!(failed["run"]["problem"]["code"], "connection_invalid", "{failed}");
    for wrong in [json!({}), json!({"variables": {"a b": 1}}), json!({"environment": {"A": 1}})] {
        let refused = door.landform.request(Method::PUT, CONNECTION).json(&wrong).send().await.unwrap();
        assert!(refused.status().is_client_error(), "{wrong}");
    }
}

/// The provider itself says whether the values are any good, and nothing is made.
async fn a_connection_is_tried_without_changing_anything(memory: Memory) {
    let door = Door::open(memory).await;
    door.landform.call("PUT", "/v1/tenants/acme", None).await.unwrap();
    door.landform.push_template("it", &[("main.tf", TEMPLATE)]).await.unwrap();
    let rotate = async |key: &str| {
        door.landform.call("PUT", CONNECTION, Some(json!({"variables": {"key": key}}))).await.unwrap();
    };
    rotate("first-s3cret").await;
    let test = async |body: Value| {
        let request = door.landform.request(Method::POST, &format!("{CONNECTION}/test")).json(&body);
        let response = request.send().await.unwrap();
        (response.status(), response.json::<Value>().await.unwrap())
    };
    let (status, unused) = test(json!({})).await;
    assert_eq!((status, &unused["code"]), (StatusCode::CONFLICT, &json!("connection_unused")), "{unused}");
    let waiting = put(&door, json!({"template": "it", "connections": ["cloud"], "requires_approval": true})).await;
    assert_eq!(waiting.1["run"]["status"], "awaiting_approval", "{}", waiting.1);

    let (status, good) = test(json!({"deployment": "site"})).await;
    assert_eq!((status, &good["run"]["status"]), (StatusCode::OK, &json!("planned")), "{good}");
    rotate("wr0ng-s3cret").await;
    let (status, bad) = test(json!({})).await;
    assert_eq!((status, &bad["run"]["status"]), (StatusCode::OK, &json!("failed")), "{bad}");
    assert!(bad.to_string().contains("This is another key."), "{bad}");
    assert!(!bad.to_string().contains("wr0ng"), "{bad}");
    let said = door.type_in(&["connection", "test", "acme/cloud", "--deployment", "site"]).await;
    assert_eq!(said.exit, 1, "{}{}", said.stdout, said.stderr);
    let (status, other) = test(json!({"deployment": "other"})).await;
    assert_eq!((status, &other["code"]), (StatusCode::CONFLICT, &json!("connection_unused")), "{other}");

    let state = door.landform.call("GET", &format!("{DEPLOYMENT}/state"), None).await;
    assert!(state.is_err(), "nothing was made: {state:?}");
    let audit = door.landform.call("GET", "/v1/audit?tenant=acme&action=connection.test", None).await.unwrap();
    assert_eq!(audit["entries"].as_array().unwrap().len(), 3, "{audit}");
}

#[tokio::test]
async fn a_connection_is_tried_without_changing_anything_on_sqlite() {
    a_connection_is_tried_without_changing_anything(Memory::Sqlite).await;
}

#[tokio::test]
async fn a_connection_is_tried_without_changing_anything_on_postgres() {
    a_connection_is_tried_without_changing_anything(Memory::Postgres).await;
}
