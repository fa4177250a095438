//! What those see who run it: the inventory, figures, readiness, limits.

use serde_json::{Value, json};

use crate::{Door, Memory};

const TEMPLATE: &str = r#"
variable "names" { type = list(string) }

resource "terraform_data" "thing" {
  for_each = toset(var.names)
  input    = each.key
}
"#;

async fn deploy(door: &Door, tenant: &str, names: &[&str]) -> Value {
    let path = format!("/v1/tenants/{tenant}/deployments/site");
    let body = json!({"template": "things", "engine": "native", "inputs": {"names": names}});
    let request = door.landform.request(reqwest::Method::PUT, &path).header("prefer", "wait=60").json(&body);
    let ended = landform_testkit::landform::answer(request).await.unwrap();
    assert_eq!(ended["run"]["status"], "succeeded", "{ended}");
    ended
}

fn addresses(list: &Value) -> Vec<String> {
    let word = |resource: &Value, name: &str| resource[name].as_str().unwrap().replace('"', "");
    let address = |resource: &Value| format!("{} {}", word(resource, "tenant"), word(resource, "address"));
    list["resources"].as_array().unwrap().iter().map(address).collect()
}

#[tokio::test]
async fn an_operator_sees_what_there_is_and_how_it_goes() {
    let door = Door::open(Memory::Sqlite).await;
    let get = |path: &'static str| door.landform.call("GET", path, None);
    door.landform.push_template("things", &[("main.tf", TEMPLATE)]).await.unwrap();
    for tenant in ["acme", "other"] {
        door.landform.call("PUT", &format!("/v1/tenants/{tenant}"), Some(json!({}))).await.unwrap();
        deploy(&door, tenant, &["a", "b"]).await;
    }
    // The inventory, by page and by filter.
    let first = get("/v1/resources?limit=3").await.unwrap();
    assert_eq!(
        addresses(&first),
        ["acme terraform_data.thing[a]", "acme terraform_data.thing[b]", "other terraform_data.thing[a]"]
    );
    let after = first["next"].as_str().unwrap().replace('[', "%5B").replace('"', "%22").replace(']', "%5D");
    let rest = door.landform.request(reqwest::Method::GET, &format!("/v1/resources?after={after}"));
    let rest = landform_testkit::landform::answer(rest).await.unwrap();
    assert_eq!((addresses(&rest), &rest["next"]), (vec!["other terraform_data.thing[b]".to_owned()], &Value::Null));
    let id = first["resources"][0]["id"].as_str().expect("an object has an id").to_owned();
    assert!(!first.to_string().contains("\"input\""), "values are not in it: {first}");
    let listed = std::process::Command::new(crate::binary())
        .args(["--server", door.landform.base(), "--data"])
        .arg(door.data.path())
        .args(["--json", "resources", "--id", &id])
        .output()
        .unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed[0]["tenant"], "acme", "{listed}");
    assert_eq!(addresses(&get("/v1/resources?tenant=acme&q=THING[%22b").await.unwrap()).len(), 1);
    assert!(get("/v1/resources?after=x").await.is_err());

    // Figures, for a token.
    let text = door.landform.request(reqwest::Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
    for line in [
        "landform_runs_ended_total{status=\"succeeded\",engine=\"native\"} 2",
        "landform_runs_claimed_total 2",
        "landform_runs_waiting{for=\"worker\"} 0",
        "landform_phase_seconds_count{phase=\"apply\"} 2",
        "landform_intents_open 0",
        "landform_provider_processes ",
    ] {
        assert!(text.contains(line), "{line} is not in:\n{text}");
    }
    let unknown = crate::http().get(format!("{}/metrics", door.landform.base())).send().await.unwrap();
    assert_eq!(unknown.status(), 401);
    let ready = crate::http().get(format!("{}/readyz", door.landform.base())).send().await.unwrap();
    assert_eq!(ready.status(), 200);

    // Limits of a tenant.
    let limits = json!({"max_deployments": 1, "slots": 1});
    let limited = door.landform.call("PUT", "/v1/tenants/acme", Some(limits)).await.unwrap();
    assert_eq!((&limited["max_deployments"], &limited["slots"]), (&json!(1), &json!(1)));
    let body = json!({"template": "things", "inputs": {"names": []}});
    let refused =
        door.landform.request(reqwest::Method::PUT, "/v1/tenants/acme/deployments/more").json(&body).send().await;
    let refused = refused.unwrap();
    assert_eq!(refused.status(), 409);
    assert_eq!(refused.json::<Value>().await.unwrap()["code"], "deployment_quota");
    deploy(&door, "acme", &["b"]).await;
    assert_eq!(addresses(&get("/v1/resources?tenant=acme").await.unwrap()).len(), 1);
}

/// It has no door, and is watched all the same.
#[tokio::test]
async fn a_worker_without_a_door_tells_how_it_goes() {
    let door = Door::open_as(Memory::Postgres, &["--role", "api"]).await;
    let data = tempfile::tempdir().unwrap();
    std::fs::copy(door.data.path().join("master.key"), data.path().join("master.key")).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut worker = std::process::Command::new(crate::binary())
        .args(["serve", "--role", "worker", "--metrics-listen", &format!("127.0.0.1:{port}"), "--data"])
        .arg(data.path())
        .args(["--database", door.setup.database.as_ref().unwrap()])
        .stderr(std::fs::File::create(data.path().join("log")).unwrap())
        .spawn()
        .unwrap();
    door.landform.push_template("things", &[("main.tf", TEMPLATE)]).await.unwrap();
    door.landform.call("PUT", "/v1/tenants/acme", Some(json!({}))).await.unwrap();
    deploy(&door, "acme", &["a"]).await;
    let ask = |path: &str| crate::http().get(format!("http://127.0.0.1:{port}{path}"));
    assert_eq!(ask("/readyz").send().await.unwrap().status(), 200);
    assert_eq!(ask("/metrics").send().await.unwrap().status(), 401, "figures are for those with a token");
    let token = std::fs::read_to_string(door.data.path().join("admin.token")).unwrap();
    let figures = ask("/metrics").bearer_auth(token.trim()).send().await.unwrap().text().await.unwrap();
    assert!(figures.contains("landform_runs_ended_total{status=\"succeeded\",engine=\"native\"} 1"), "{figures}");
    assert_eq!(
        ask("/v1/tenants").bearer_auth(token.trim()).send().await.unwrap().status(),
        404,
        "nothing else is here"
    );
    worker.kill().unwrap();
    worker.wait().unwrap();
    // Another key would make a second, unreadable half of the store.
    std::fs::remove_file(data.path().join("master.key")).unwrap();
    refused_with_another_key(&door, data.path());
}

/// Also before there is a tenant whose key could not be opened: each process would seal some of them.
#[tokio::test]
async fn another_master_key_is_refused_on_an_empty_store() {
    let door = Door::open(Memory::Postgres).await;
    refused_with_another_key(&door, tempfile::tempdir().unwrap().path());
    door.restart().await.landform.call("PUT", "/v1/tenants/acme", Some(json!({}))).await.unwrap();
}

fn refused_with_another_key(door: &Door, data: &std::path::Path) {
    let refused = std::process::Command::new(crate::binary())
        .args(["serve", "--role", "worker", "--data"])
        .arg(data)
        .args(["--database", door.setup.database.as_ref().unwrap()])
        .output()
        .unwrap();
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && why.contains("master key"), "{why}");
}
