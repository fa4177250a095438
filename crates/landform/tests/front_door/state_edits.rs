//! Versions of a state, and changes of it that a person asks for.

use serde_json::{Value, json};

use crate::{Door, Memory};

const SITE: &str = "/v1/tenants/acme/deployments/site";

const TEMPLATE: &str = r#"
variable "text" { type = string }
resource "terraform_data" "it" { input = var.text }
resource "terraform_data" "other" { input = "still" }
"#;

impl Door {
    /// Writes the deployment, waits for the end of its run (or for a person), and returns the run.
    async fn write(&self, text: &str, approval: bool) -> Value {
        let put = json!({"template": "it", "inputs": {"text": text}, "requires_approval": approval});
        let request = self.landform.request(reqwest::Method::PUT, SITE).header("prefer", "wait=60");
        landform_testkit::landform::answer(request.json(&put)).await.unwrap()["run"].clone()
    }

    async fn refused(&self, path: &str, body: Value) -> (u16, String) {
        let answer = self.landform.request(reqwest::Method::POST, path).json(&body).send().await.unwrap();
        let status = answer.status().as_u16();
        let problem: Value = answer.json().await.unwrap();
        (status, problem["code"].as_str().unwrap_or_default().to_owned())
    }

    async fn ended(&self, run: &Value) -> Value {
        let path = format!("/v1/runs/{}", run["id"].as_str().unwrap());
        loop {
            let now = self.landform.call("GET", &path, None).await.unwrap();
            if now["finished"] == true {
                return now;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}

fn names(state: &Value) -> Vec<&str> {
    state["resources"].as_array().unwrap().iter().map(|resource| resource["name"].as_str().unwrap()).collect()
}

async fn a_state_has_versions_and_is_edited(memory: Memory) {
    let door = Door::open(memory).await;
    door.done(&["tenant", "put", "acme"]).await;
    door.landform.push_template("it", &[("main.tf", TEMPLATE)]).await.unwrap();
    let run = door.write("one", false).await;
    assert_eq!(run["status"], "succeeded", "{run}");
    door.write("two", false).await;
    let versions = door.landform.call("GET", &format!("{SITE}/state/versions"), None).await.unwrap();
    let versions = versions["versions"].as_array().unwrap().clone();
    assert_eq!(versions.len(), 2, "{versions:?}");
    assert_eq!((&versions[0]["current"], &versions[1]["current"]), (&json!(true), &json!(false)));
    assert_eq!(versions[1]["run"], run["id"]);
    let oldest = versions[1]["version"].to_string();
    let old = door.done(&["state", "pull", "acme/site", "--version", &oldest]).await.json();
    assert_eq!(old["resources"][0]["instances"][0]["attributes"]["input"]["value"], "one", "{old}");

    // Moved, the object is another one for the next plan; moved back, it is the same.
    let moved = door.done(&["state", "mv", "acme/site", "terraform_data.it", "terraform_data.new", "--json"]).await;
    assert_eq!(moved.json()["addresses"], json!(["terraform_data.new"]));
    let state = door.done(&["state", "pull", "acme/site"]).await.json();
    assert_eq!(names(&state), ["new", "other"]);
    let back = json!({"from": "terraform_data.new", "to": "terraform_data.it"});
    door.landform.call("POST", &format!("{SITE}/state/move"), Some(back)).await.unwrap();
    assert_eq!(door.landform.call("POST", &format!("{SITE}/runs"), None).await.unwrap()["run"]["kind"], "apply");
    let run = door.landform.call("GET", "/v1/runs?limit=1", None).await.unwrap()["runs"][0].clone();
    assert_eq!(door.ended(&run).await["status"], "unchanged");

    // A plan that waits for approval is stale when the state changes behind it, and nothing stays locked.
    let waiting = door.write("three", true).await;
    assert_eq!(waiting["status"], "awaiting_approval", "{waiting}");
    let said = door.done(&["state", "rm", "acme/site", "terraform_data.other"]).await;
    assert!(said.stdout.contains("removed terraform_data.other"), "{}", said.stdout);
    door.done(&["run", "approve", waiting["id"].as_str().unwrap()]).await;
    let ended = door.ended(&waiting).await;
    assert_eq!((&ended["status"], &ended["problem"]["code"]), (&json!("failed"), &json!("plan_stale")), "{ended}");
    let state = door.done(&["state", "pull", "acme/site"]).await.json();
    assert_eq!(names(&state), ["it"]);
    assert_eq!(state["resources"][0]["instances"][0]["attributes"]["input"]["value"], "two", "nothing was applied");
    let again = door.write("three", true).await;
    assert_eq!((&again["status"], &again["plan"]["creates"]), (&json!("awaiting_approval"), &json!(1)), "{again}");
    door.done(&["run", "approve", again["id"].as_str().unwrap()]).await;
    assert_eq!(door.ended(&again).await["status"], "succeeded");

    // What is refused changes nothing.
    let before = door.landform.call("GET", &format!("{SITE}/state"), None).await.unwrap();
    let remove = format!("{SITE}/state/remove");
    let invalid = (422, "address_invalid".to_owned());
    assert_eq!(door.refused(&remove, json!({"addresses": ["terraform_data.it", "terraform_data.no"]})).await, invalid);
    let occupied = json!({"from": "terraform_data.it", "to": "terraform_data.other"});
    assert_eq!(door.refused(&format!("{SITE}/state/move"), occupied).await, invalid);
    assert_eq!(door.refused(&remove, json!({"addresses": []})).await.0, 400);
    assert_eq!(door.refused(&remove, json!({"addresses": ["a\u{7}b"]})).await.0, 400);
    assert_eq!(door.type_in(&["state", "pull", "acme/site", "--version", "99"]).await.exit, 3);
    let locked = door.landform.request("LOCK".parse().unwrap(), "/v1/state/acme/site").json(&json!({"ID": "mine"}));
    assert!(locked.send().await.unwrap().status().is_success());
    let held = (423, "state_locked".to_owned());
    assert_eq!(door.refused(&remove, json!({"addresses": ["terraform_data.it"]})).await, held);
    assert_eq!(door.landform.call("GET", &format!("{SITE}/state"), None).await.unwrap(), before);

    let log = door.landform.call("GET", "/v1/audit?action=state.", None).await.unwrap();
    let actions: Vec<&str> =
        log["entries"].as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["state.lock", "state.remove", "state.move", "state.move"]);
    assert_eq!(log["entries"][1]["detail"]["edit"], json!({"remove": {"addresses": ["terraform_data.other"]}}));
}

#[tokio::test]
async fn a_state_has_versions_and_is_edited_on_sqlite() {
    a_state_has_versions_and_is_edited(Memory::Sqlite).await;
}

#[tokio::test]
async fn a_state_has_versions_and_is_edited_on_postgres() {
    a_state_has_versions_and_is_edited(Memory::Postgres).await;
}
