//! The walk by REST.

use landform_testkit::landform::answer;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{Door, Memory};

const TEMPLATE: &str = r#"
variable "text" { type = string }
variable "command" { default = "true" }
variable "password" {
  default   = "none"
  sensitive = true
}
resource "terraform_data" "it" {
  input            = var.text
  triggers_replace = var.command
  provisioner "local-exec" { command = var.command }
}
output "text" { value = terraform_data.it.output }
output "password" {
  value     = var.password
  sensitive = true
}
"#;

/// A template within what the native engine does exactly as OpenTofu.
const PLAIN: &str = r#"
variable "text" { type = string }
resource "terraform_data" "it" { input = var.text }
output "text" { value = terraform_data.it.output }
"#;

const DEPLOYMENT: &str = "/v1/tenants/acme/deployments/site";

impl Door {
    async fn with_template(memory: Memory, template: &str) -> Door {
        let door = Door::open(memory).await;
        door.landform.call("PUT", "/v1/tenants/acme", Some(json!({}))).await.unwrap();
        let pushed = door.landform.push_template("it", &[("main.tf", template)]).await.unwrap();
        assert_eq!(pushed["version"], 1);
        door
    }

    /// Puts the deployment and waits for the end of its run.
    async fn put(&self, engine: &str, inputs: Value) -> Value {
        let body = json!({"template": "it", "engine": engine, "inputs": inputs});
        let request = self.landform.request(Method::PUT, DEPLOYMENT).header("prefer", "wait=120").json(&body);
        answer(request).await.unwrap()
    }

    async fn delete(&self) -> Value {
        answer(self.landform.request(Method::DELETE, DEPLOYMENT).header("prefer", "wait=120")).await.unwrap()
    }

    async fn get(&self, path: &str) -> Value {
        self.landform.call("GET", path, None).await.unwrap()
    }
}

async fn walk(memory: Memory, engine: &str, template: &str) {
    let door = Door::with_template(memory, template).await;
    let made = door.put(engine, json!({"text": "one"})).await;
    assert_eq!(made["run"]["status"], "succeeded", "{made}");
    assert_eq!(made["run"]["engine"], engine);
    assert_eq!(made["outputs"]["text"], json!({"value": "one", "type": "string", "sensitive": false}));

    let same = door.put(engine, json!({"text": "one"})).await;
    assert_eq!(same["run"]["id"], made["run"]["id"], "the same desired state is the same run");

    let changed = door.put(engine, json!({"text": "${two}"})).await;
    assert_eq!(changed["run"]["status"], "succeeded", "{changed}");
    assert_eq!(changed["outputs"]["text"]["value"], "${two}");
    let deployment = door.get(DEPLOYMENT).await;
    assert_eq!((&deployment["generation"], &deployment["applied_generation"]), (&json!(2), &json!(2)));

    let id = changed["run"]["id"].as_str().unwrap();
    let events = door.get(&format!("/v1/runs/{id}/events")).await;
    let events = events["events"].as_array().unwrap();
    let statuses: Vec<_> = events.iter().filter_map(|e| e["body"]["status"]["status"].as_str()).collect();
    assert_eq!(statuses, ["queued", "planning", "applying", "succeeded"]);
    let last = events.last().unwrap()["seq"].as_i64().unwrap();
    let after = door.get(&format!("/v1/runs/{id}/events?after={}", last - 1)).await;
    assert_eq!(after["events"].as_array().unwrap().len(), 1);

    let state = door.get(&format!("{DEPLOYMENT}/state")).await;
    assert_eq!(state["version"], 4);

    let gone = door.delete().await;
    assert_eq!(gone["run"]["status"], "succeeded", "{gone}");
    let after = door.landform.request(Method::GET, DEPLOYMENT).send().await.unwrap();
    assert_eq!(after.status(), StatusCode::NOT_FOUND);
    let again = door.put(engine, json!({"text": "new life"})).await;
    assert_eq!(again["run"]["status"], "succeeded", "{again}");
    door.landform.stop().await.unwrap();
}

#[tokio::test]
async fn the_walk_on_sqlite_with_the_cli_engine() {
    walk(Memory::Sqlite, "cli", TEMPLATE).await;
}

#[tokio::test]
async fn the_walk_on_postgres_with_the_cli_engine() {
    walk(Memory::Postgres, "cli", TEMPLATE).await;
}

#[tokio::test]
async fn the_walk_on_sqlite_with_the_native_engine() {
    walk(Memory::Sqlite, "native", PLAIN).await;
}

#[tokio::test]
async fn the_walk_on_postgres_with_the_native_engine() {
    walk(Memory::Postgres, "native", PLAIN).await;
}

#[tokio::test]
async fn the_choice_between_the_engines_is_made_and_explained() {
    let door = Door::with_template(Memory::Sqlite, TEMPLATE).await;
    let refused = door.put("native", json!({"text": "one"})).await;
    assert_eq!(refused["run"]["problem"]["code"], "engine_unsupported", "{refused}");
    let made = door.put("auto", json!({"text": "one"})).await;
    assert_eq!((&made["run"]["status"], &made["run"]["engine"]), (&json!("succeeded"), &json!("cli")), "{made}");
    let events = door.get(&format!("/v1/runs/{}/events", made["run"]["id"].as_str().unwrap())).await;
    let chosen = events["events"].as_array().unwrap().iter().find_map(|e| e["body"].get("engine").cloned()).unwrap();
    let reason = chosen["reasons"][0].as_str().unwrap();
    assert!(reason.starts_with("main.tf:") && reason.contains("provisioner"), "{reason}");

    door.landform.push_template("it", &[("main.tf", PLAIN)]).await.unwrap();
    let changed = door.put("auto", json!({"text": "two"})).await;
    assert_eq!(
        (&changed["run"]["status"], &changed["run"]["engine"]),
        (&json!("succeeded"), &json!("native")),
        "{changed}"
    );
    assert_eq!(changed["outputs"]["text"]["value"], "two");
}

#[tokio::test]
async fn a_run_that_changes_nothing_a_failing_one_and_the_next_one() {
    let door = Door::with_template(Memory::Sqlite, TEMPLATE).await;
    let made = door.put("cli", json!({"text": "one"})).await;
    assert_eq!(made["run"]["status"], "succeeded", "{made}");
    // A new version that says the same is a new desired state, and nothing has to be done for it.
    let pushed = door.landform.push_template("it", &[("main.tf", TEMPLATE), ("more.tf", "# more")]).await.unwrap();
    assert_eq!(pushed["version"], 2);
    let unchanged = door.put("cli", json!({"text": "one"})).await;
    assert_eq!(unchanged["run"]["status"], "unchanged", "{unchanged}");
    assert_eq!(unchanged["outputs"]["text"]["value"], "one");

    let failed = door.put("cli", json!({"text": "one", "command": "exit 3"})).await;
    assert_eq!(failed["run"]["status"], "failed");
    assert_eq!(failed["run"]["problem"]["code"], "apply_failed");
    assert!(failed["run"]["problem"]["hint"].as_str().is_some_and(|hint| !hint.is_empty()));
    let next = door.put("cli", json!({"text": "three"})).await;
    assert_eq!(next["run"]["status"], "succeeded", "{next}");
    assert_eq!(next["outputs"]["text"]["value"], "three");

    // What a template finds wrong by itself is found by the plan.
    let unreadable = format!("{TEMPLATE}\noutput \"missing\" {{ value = file(\"missing\") }}");
    door.landform.push_template("it", &[("main.tf", &unreadable)]).await.unwrap();
    let wrong = door.put("cli", json!({"text": "four"})).await;
    assert_eq!(wrong["run"]["status"], "failed");
    assert_eq!(wrong["run"]["problem"]["code"], "plan_failed");
}

#[tokio::test]
async fn secrets_are_masked_kept_and_shown_only_on_demand() {
    let door = Door::with_template(Memory::Sqlite, TEMPLATE).await;
    let body = json!({"template": "it", "engine": "cli", "inputs": {"text": "a", "password": "hunter22"},
        "sensitive": ["password"]});
    let request = door.landform.request(Method::PUT, DEPLOYMENT).header("prefer", "wait=120").json(&body);
    let made = answer(request).await.unwrap();
    assert_eq!(made["outputs"]["password"]["value"], "(sensitive)");
    let masked = door.get(&format!("{DEPLOYMENT}/outputs")).await;
    assert_eq!(masked["password"]["value"], "(sensitive)");
    let shown = door.get(&format!("{DEPLOYMENT}/outputs?show_sensitive=true")).await;
    assert_eq!(shown["password"]["value"], "hunter22");
    let deployment = door.get(DEPLOYMENT).await;
    assert_eq!(deployment["inputs"], json!({"text": "a", "password": "(sensitive)"}));

    let kept = door.put("cli", json!({"text": "b"})).await;
    assert_eq!(kept["run"]["status"], "succeeded", "{kept}");
    let shown = door.get(&format!("{DEPLOYMENT}/outputs?show_sensitive=true")).await;
    assert_eq!(shown["password"]["value"], "hunter22", "an omitted sensitive input keeps its value");
    let log = std::fs::read_to_string(door.data.path().join("serve.log")).unwrap();
    assert!(!log.contains("hunter22"));
}

#[tokio::test]
async fn a_plan_waits_for_approval_and_can_be_rejected() {
    let door = Door::with_template(Memory::Sqlite, TEMPLATE).await;
    let put = async |text: &str| {
        let body = json!({"template": "it", "engine": "cli", "inputs": {"text": text}, "requires_approval": true});
        let request = door.landform.request(Method::PUT, DEPLOYMENT).header("prefer", "wait=120").json(&body);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::ACCEPTED, "a run that waits for a person is not waited for");
        let accepted: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        assert_eq!(accepted["run"]["status"], "awaiting_approval", "{accepted}");
        assert_eq!(accepted["run"]["plan"]["changes"][0]["address"], "terraform_data.it");
        format!("/v1/runs/{}", accepted["run"]["id"].as_str().unwrap())
    };
    let first = put("one").await;
    let rejected = door.landform.call("POST", &format!("{first}/reject"), Some(json!({"reason": "no"}))).await.unwrap();
    assert_eq!((&rejected["status"], &rejected["rejected"]["reason"]), (&json!("rejected"), &json!("no")));
    let again = door.landform.request(Method::POST, &format!("{first}/approve")).send().await.unwrap();
    assert_eq!(again.status(), StatusCode::CONFLICT);

    let second = put("two").await;
    door.landform.call("POST", &format!("{second}/approve"), None).await.unwrap();
    let stream = door.landform.request(Method::GET, &format!("{second}/events"));
    let text = stream.header("accept", "text/event-stream").send().await.unwrap().text().await.unwrap();
    assert!(text.trim_end().lines().rev().take(2).any(|line| line == "event: end"), "{text}");
    assert_eq!(door.get(&second).await["status"], "succeeded");

    // The stream goes on behind the event that was seen last.
    let ids: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    let resumed = door.landform.request(Method::GET, &format!("{second}/events"));
    let resumed = resumed.header("accept", "text/event-stream").header("last-event-id", ids[ids.len() - 2]);
    let resumed = resumed.send().await.unwrap().text().await.unwrap();
    let rest: Vec<&str> = resumed.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    assert_eq!(rest, ids[ids.len() - 1..]);
}

/// What is under way when the server is asked to stop comes to a safe point, and the next start goes on from there.
#[tokio::test]
async fn a_server_that_is_stopped_in_mid_apply_goes_on_later() {
    let template = r#"
resource "terraform_data" "first" {}
resource "terraform_data" "slow" {
  input = terraform_data.first.id
  provisioner "local-exec" { command = "test -e ${path.cwd}/../../../../again || sleep 600" }
}
"#;
    let door = Door::with_template(Memory::Sqlite, template).await;
    let body = json!({"template": "it", "engine": "cli"});
    let accepted = answer(door.landform.request(Method::PUT, DEPLOYMENT).json(&body)).await.unwrap();
    let run = format!("/v1/runs/{}", accepted["run"]["id"].as_str().unwrap());
    loop {
        let events = door.get(&format!("{run}/events")).await.to_string();
        if events.contains("terraform_data.slow") && events.contains("started") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    std::fs::write(door.data.path().join("again"), "").unwrap();
    let door = door.restart().await;
    let ended = loop {
        let now = door.get(&run).await;
        if now["finished"] == true {
            break now;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    assert_eq!(ended["status"], "succeeded", "{ended}");
    assert_eq!(ended["attempt"], 2);
}

#[tokio::test]
async fn a_missing_engine_is_named() {
    let door = Door::open_with(Memory::Sqlite, "/nowhere/tofu".into()).await;
    door.landform.call("PUT", "/v1/tenants/acme", None).await.unwrap();
    door.landform.push_template("it", &[("main.tf", PLAIN)]).await.unwrap();
    let failed = door.put("cli", json!({"text": "one"})).await;
    assert_eq!(failed["run"]["problem"]["code"], "engine_missing", "{failed}");
}

#[tokio::test]
async fn writes_are_conditional_and_idempotent() {
    let door = Door::with_template(Memory::Sqlite, PLAIN).await;
    let write = |text: &str, header: &'static str, value: &'static str| {
        let body = json!({"template": "it", "engine": "cli", "inputs": {"text": text}});
        door.landform.request(Method::PUT, DEPLOYMENT).header(header, value).json(&body)
    };
    let first = answer(write("one", "idempotency-key", "k1")).await.unwrap();
    let again = answer(write("one", "idempotency-key", "k1")).await.unwrap();
    assert_eq!(first["run"]["id"], again["run"]["id"]);
    let other = write("other", "idempotency-key", "k1").send().await.unwrap();
    assert_eq!(other.status(), StatusCode::UNPROCESSABLE_ENTITY);

    let response = door.landform.request(Method::GET, DEPLOYMENT).send().await.unwrap();
    assert_eq!(response.headers()["etag"], "\"1\"");
    let second = write("two", "if-match", "\"1\"").send().await.unwrap();
    assert_eq!(second.status(), StatusCode::ACCEPTED);
    assert!(second.headers()["location"].to_str().unwrap().starts_with("/v1/runs/"));
    let stale = write("three", "if-match", "\"1\"").send().await.unwrap();
    assert_eq!(stale.status(), StatusCode::PRECONDITION_FAILED);
}

async fn inputs_are_checked_before_anything_is_accepted(memory: Memory) {
    let template = r#"
variable "size" { type = number }
variable "site" {
  type        = object({ name = string, vlan = optional(number, 1) })
  default     = { name = "berlin" }
  description = "Where"
}
variable "password" {
  type      = string
  default   = "none"
  sensitive = true
}
resource "terraform_data" "it" { input = [var.size, var.site] }
output "it" { value = terraform_data.it.output }
"#;
    let door = Door::with_template(memory, template).await;
    let version = door.get("/v1/templates/it/versions/1").await;
    assert_eq!(version["schema"]["required"], json!(["size"]));
    assert_eq!(version["schema"]["properties"]["site"]["description"], "Where");
    assert_eq!(version["files"], json!([{"path": "main.tf", "size": template.len()}]));
    for wrong in [json!({}), json!({"size": "large"}), json!({"size": 1, "sise": 2}), json!({"size": 1, "site": "x"})] {
        let body = json!({"template": "it", "inputs": wrong});
        let refused = door.landform.request(Method::PUT, DEPLOYMENT).json(&body).send().await.unwrap();
        assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY, "{wrong}");
        assert_eq!(refused.json::<Value>().await.unwrap()["code"], "input_invalid", "{wrong}");
    }
    let after = door.landform.request(Method::GET, DEPLOYMENT).send().await.unwrap();
    assert_eq!(after.status(), StatusCode::NOT_FOUND, "nothing was stored");

    let made = door.put("native", json!({"size": "12", "site": {"name": "bonn"}, "password": "hunter2"})).await;
    assert_eq!(made["run"]["status"], "succeeded", "{made}");
    assert_eq!(made["outputs"]["it"]["value"], json!([12, {"name": "bonn", "vlan": 1}]));
    assert_eq!(door.get(DEPLOYMENT).await["inputs"]["password"], "(sensitive)", "nobody had to say so");
    let uses = door.get("/v1/templates/it/deployments").await;
    let expected = json!({"tenant": "acme", "deployment": "site", "version": 1, "applied_version": 1});
    assert_eq!(uses["deployments"], json!([expected]));

    let broken = door.landform.push_template("it", &[("main.tf", "variable \"x\" {\n  type =\n}")]).await.unwrap_err();
    assert!(broken.to_string().contains("template_invalid"), "{broken}");
    let deep = format!("locals {{ a = {}1{} }}", "[".repeat(50_000), "]".repeat(50_000));
    let _ = door.landform.push_template("deep", &[("main.tf", &deep)]).await;
    door.get("/healthz").await;
    assert_eq!(door.get("/v1/templates/it").await["versions"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn inputs_are_checked_before_anything_is_accepted_on_sqlite() {
    inputs_are_checked_before_anything_is_accepted(Memory::Sqlite).await;
}

#[tokio::test]
async fn inputs_are_checked_before_anything_is_accepted_on_postgres() {
    inputs_are_checked_before_anything_is_accepted(Memory::Postgres).await;
}

async fn a_batch_answers_line_by_line(memory: Memory) {
    let door = Door::with_template(memory, PLAIN).await;
    let line = |deployment: &str, inputs: Value| {
        json!({"method": "put", "tenant": "acme", "deployment": deployment, "idempotency_key": "k",
            "spec": {"template": "it", "engine": "native", "inputs": inputs}})
    };
    let mut lines: Vec<String> =
        (0..50).map(|n| line(&format!("d{n}"), json!({"text": n.to_string()})).to_string()).collect();
    lines.push(line("bad", json!({"text": []})).to_string());
    lines.push(json!({"method": "put", "tenant": "nobody", "deployment": "x", "spec": {"template": "it"}}).to_string());
    lines.push("{".to_owned());
    lines.push(json!({"method": "delete", "tenant": "acme", "deployment": "d0"}).to_string());
    let body = lines.join("\n");
    let response = door.landform.request(Method::POST, "/v1/batch").body(body.clone()).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    let text = response.text().await.unwrap();
    let results: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(results.len(), 54);
    for (index, result) in results.iter().enumerate() {
        assert_eq!(result["line"], index + 1);
        let code = &result["problem"]["code"];
        match index {
            50 => assert_eq!((&result["status"], code), (&json!(422), &json!("input_invalid"))),
            51 => assert_eq!((&result["status"], code), (&json!(404), &json!("tenant_unknown"))),
            52 => assert_eq!((&result["status"], code), (&json!(400), &json!("request_invalid"))),
            _ => assert_eq!((&result["status"], code), (&json!(202), &Value::Null), "{result}"),
        }
    }
    let again = door.landform.request(Method::POST, "/v1/batch").body(lines[1].clone()).send().await.unwrap();
    let again: Value = serde_json::from_str(again.text().await.unwrap().trim()).unwrap();
    assert_eq!(again["run"]["id"], results[1]["run"]["id"], "the key is the same");

    let file = door.data.path().join("lines");
    std::fs::write(&file, body).unwrap();
    let said = door.type_in(&["batch", file.to_str().unwrap()]).await;
    assert_eq!((said.exit, said.stdout.lines().count()), (3, 54), "{}", said.stderr);
}

#[tokio::test]
async fn a_batch_answers_line_by_line_on_sqlite() {
    a_batch_answers_line_by_line(Memory::Sqlite).await;
}

#[tokio::test]
async fn a_batch_answers_line_by_line_on_postgres() {
    a_batch_answers_line_by_line(Memory::Postgres).await;
}

/// Runs besides those that a write makes.
async fn trials_rollbacks_pauses_and_farewells(memory: Memory) {
    let door = Door::with_template(memory, PLAIN).await;
    let first = door.put("native", json!({"text": "one"})).await;
    let second = door.put("native", json!({"text": "two"})).await;
    let post = |path: String, body: Value| {
        answer(door.landform.request(Method::POST, &path).header("prefer", "wait=120").json(&body))
    };
    let id = |door_state: &Value| door_state["resources"][0]["instances"][0]["attributes"]["id"].clone();
    let before = id(&door.get(&format!("{DEPLOYMENT}/state")).await);

    // A trial changes nothing, and is not taken for the run of its generation.
    let trial =
        post(format!("{DEPLOYMENT}/runs"), json!({"plan_only": true, "replace": ["terraform_data.it"]})).await.unwrap();
    assert_eq!((&trial["run"]["status"], &trial["run"]["plan"]["replaces"]), (&json!("planned"), &json!(1)), "{trial}");
    assert_eq!(door.put("native", json!({"text": "two"})).await["run"]["id"], second["run"]["id"]);
    let run = trial["run"]["id"].as_str().unwrap();
    // Whoever watches reads what would be done before the trial ends, and nothing comes behind its end.
    let events = door.get(&format!("/v1/runs/{run}/events")).await;
    let events = events["events"].as_array().unwrap();
    assert!(events.iter().any(|event| event.to_string().contains("terraform_data.it")), "{events:?}");
    assert_eq!(events.last().unwrap()["body"]["status"]["status"], "planned", "{events:?}");
    let plan = door.get(&format!("/v1/runs/{run}/plan")).await;
    assert_eq!(plan["resource_changes"][0]["change"]["actions"], json!(["delete", "create"]), "{plan}");
    let text = door.done(&["run", "plan", run]).await.stdout;
    assert!(text.contains("-/+ terraform_data.it must be replaced"), "{text}");
    assert_eq!(id(&door.get(&format!("{DEPLOYMENT}/state")).await), before);
    let replaced = post(format!("{DEPLOYMENT}/runs"), json!({"replace": ["terraform_data.it"]})).await.unwrap();
    assert_eq!(replaced["run"]["status"], "succeeded", "{replaced}");
    assert_ne!(id(&door.get(&format!("{DEPLOYMENT}/state")).await), before, "another object");

    // Back to the first run: a new generation with what that had.
    let back = post(format!("{DEPLOYMENT}/rollback"), json!({"run": first["run"]["id"]})).await.unwrap();
    assert_eq!((&back["run"]["generation"], &back["outputs"]["text"]["value"]), (&json!(3), &json!("one")), "{back}");
    assert!(
        post(format!("{DEPLOYMENT}/rollback"), json!({"run": "00000000-0000-7000-8000-000000000000"})).await.is_err()
    );

    // Paused, a run is accepted and waits.
    for pause in [DEPLOYMENT.to_owned(), "/v1/tenants/acme".to_owned(), "/v1".to_owned()] {
        let paused = door.landform.call("POST", &format!("{pause}/pause"), None).await.unwrap();
        assert!(["deployment", "tenant", "everything"].iter().any(|what| paused[what] == true), "{paused}");
        assert_eq!(door.get(DEPLOYMENT).await["paused"], true, "{pause}");
        assert_eq!(door.get("/v1/tenants/acme").await["paused"], pause.ends_with("acme"), "{pause}");
        assert_eq!(door.get("/v1/pause").await["everything"], pause == "/v1", "{pause}");
        let body = json!({"template": "it", "engine": "native", "inputs": {"text": pause}});
        let waiting = door.landform.call("PUT", DEPLOYMENT, Some(body)).await.unwrap();
        let run = format!("/v1/runs/{}", waiting["run"]["id"].as_str().unwrap());
        let begin = std::time::Instant::now();
        loop {
            let now = door.get(&run).await;
            assert_eq!(now["status"], "queued");
            // As soon as a worker has come across it.
            if now["blocked"]["reason"].as_str().is_some_and(|reason| reason.contains("paused")) {
                break;
            }
            assert!(begin.elapsed() < std::time::Duration::from_secs(60), "{now}");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let resumed = door.landform.call("POST", &format!("{pause}/resume"), None).await.unwrap();
        assert!(["deployment", "tenant", "everything"].iter().all(|what| resumed[what] != true), "{resumed}");
        let ended = door.put("native", json!({"text": pause})).await;
        assert_eq!(ended["run"]["status"], "succeeded", "{ended}");
    }

    // Failures are counted and made again together.
    let failing = format!("{PLAIN}\noutput \"missing\" {{ value = file(\"missing\") }}");
    door.landform.push_template("it", &[("main.tf", &failing)]).await.unwrap();
    let failed = door.put("cli", json!({"text": "x"})).await;
    assert_eq!(failed["run"]["problem"]["code"], "plan_failed", "{failed}");
    let groups = door.get("/v1/failures").await;
    assert_eq!(groups["failures"], json!([{"code": "plan_failed", "count": 1, "newest": failed["run"]["id"]}]));
    let listed = door.get("/v1/runs?code=plan_failed&template=it&since=2026-01-01T00:00:00.000Z").await;
    assert_eq!(listed["runs"].as_array().unwrap().len(), 1);
    let again = door.done(&["run", "retry-all", "plan_failed", "--json"]).await.json();
    assert_eq!((again.as_array().unwrap().len(), &again[0]["generation"]), (1, &failed["run"]["generation"]));

    // Forgotten, it is gone and its object is not destroyed.
    let run = format!("/v1/runs/{}", again[0]["id"].as_str().unwrap());
    while door.get(&run).await["finished"] != true {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    door.done(&["forget", "acme/site", "--keep-everything"]).await;
    let gone = door.landform.request(Method::GET, DEPLOYMENT).send().await.unwrap();
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
    let log = door.get("/v1/audit?action=deployment.").await;
    assert_eq!(log["entries"][0]["action"], "deployment.forget");
}

#[tokio::test]
async fn trials_rollbacks_pauses_and_farewells_on_sqlite() {
    trials_rollbacks_pauses_and_farewells(Memory::Sqlite).await;
}

#[tokio::test]
async fn trials_rollbacks_pauses_and_farewells_on_postgres() {
    trials_rollbacks_pauses_and_farewells(Memory::Postgres).await;
}
