//! Somebody dies, or is only thought to be dead.

use landform_testkit::ledger::{self, Kill};
use serde_json::json;

use crate::house::{House, Memory, signal, wait_for};

/// The CLI, or the provider, is killed in the middle of a create; Landform lives.
async fn a_child_dies(memory: Memory, engine: &str, victim: &str) {
    let house = House::build(memory).await;
    let run = house.put(engine, "site", 1500).await;
    house.until_touched(&run).await;
    for pid in house.children(victim) {
        signal("KILL", pid);
    }
    let now = house.until(&run, &["succeeded", "needs_recovery", "failed"]).await;
    assert_ne!(now["status"], "succeeded", "its child was killed: {now}");
    if now["status"] == "failed" {
        // The CLI itself said that its provider died; it saved what it knows, and the next run goes on from there.
        let next = house.put(engine, "site", 0).await;
        house.settle(&next, "site").await;
    } else {
        house.settle(&run, "site").await;
    }
    wait_for("no child", async || (house.children("tofu").is_empty()).then_some(())).await;
}

#[tokio::test]
async fn a_killed_cli_leaves_a_question_and_no_child_on_sqlite() {
    a_child_dies(Memory::Sqlite, "cli", "tofu").await;
}

#[tokio::test]
async fn a_killed_cli_leaves_a_question_and_no_child_on_postgres() {
    a_child_dies(Memory::Postgres, "cli", "tofu").await;
}

#[tokio::test]
async fn a_killed_provider_is_not_taken_for_success() {
    a_child_dies(Memory::Sqlite, "native", "provider").await;
}

/// The provider of the CLI is killed when it has made its object and not yet said so. The CLI ends by itself and knows of no
/// object: that must not be taken for an ordinary failure, or the next run would make a second one.
#[tokio::test]
async fn a_killed_provider_of_the_cli_leaves_a_question() {
    let house = House::build(Memory::Sqlite).await;
    let run = house.put("cli", "site", 3000).await;
    wait_for("the object", async || (!ledger::read(&house.ledger()).ok()?.named("site").is_empty()).then_some(()))
        .await;
    for pid in house.children("provider") {
        signal("KILL", pid);
    }
    let now = house.until(&run, &["succeeded", "needs_recovery", "failed"]).await;
    assert_eq!(now["status"], "needs_recovery", "{now}");
    assert_eq!(now["doubts"].as_array().map(Vec::len), Some(1), "{now}");
    house.settle(&run, "site").await;
}

/// Whoever waits for a change behind a question is told which run has to be answered for, and does not wait for ever.
#[tokio::test]
async fn a_change_behind_a_question_says_so() {
    let house = House::build(Memory::Sqlite).await;
    let first = house.put("native", "site", 3000).await;
    house.until_touched(&first).await;
    for pid in house.children("provider") {
        signal("KILL", pid);
    }
    house.until(&first, &["needs_recovery"]).await;
    let second = house.put("native", "site", 0).await;
    let now = wait_for("the reason", async || {
        let now = house.landform().call("GET", &format!("/v1/runs/{second}"), None).await.ok()?;
        now["blocked"].is_object().then_some(now)
    })
    .await;
    assert_eq!(now["blocked"]["run"], first.as_str(), "{now}");
    let mut watch = std::process::Command::new(env!("CARGO_BIN_EXE_landform"));
    watch.args(["run", "watch", &second, "--server", house.landform().base(), "--data"]).arg(&house.setup.data);
    let watched = tokio::task::spawn_blocking(move || watch.output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&watched.stderr).into_owned();
    assert_eq!(watched.status.code(), Some(5), "{said}");
    assert!(said.contains(&format!("landform run recover {first}")), "{said}");
}

/// A deploy of Landform itself: one SIGTERM, what is under way is saved, and the next start finishes it.
async fn a_worker_is_asked_to_stop(memory: Memory, engine: &str) {
    let mut house = House::build(memory).await;
    let run = house.put(engine, "site", 2000).await;
    house.until_touched(&run).await;
    house.landform.take().unwrap().stop().await.unwrap();
    assert!(house.children("tofu").is_empty() && house.children("provider").is_empty(), "no child is left");
    house.restart().await;
    house.settle(&run, "site").await;
}

#[tokio::test]
async fn a_worker_that_is_asked_to_stop_saves_its_state() {
    a_worker_is_asked_to_stop(Memory::Sqlite, "native").await;
}

#[tokio::test]
async fn a_worker_that_is_asked_to_stop_waits_for_its_cli() {
    a_worker_is_asked_to_stop(Memory::Postgres, "cli").await;
}

/// A worker stands still for longer than its lease and then goes on as if nothing had been.
#[tokio::test]
async fn a_zombie_changes_nothing_any_more() {
    let house = House::build_with(Memory::Postgres, &["--lease", "5"]).await;
    let run = house.put("native", "site", 1500).await;
    house.until_touched(&run).await;
    let zombie = house.landform().pid();
    signal("STOP", zombie);
    let another = house.another().await;
    let path = format!("/v1/runs/{run}");
    let taken_over = wait_for("the other worker to take over", async || {
        let now = another.call("GET", &path, None).await.ok()?;
        (now["status"] == "needs_recovery").then_some(now)
    })
    .await;
    signal("CONT", zombie);
    let log = house.setup.data.join("serve.log");
    wait_for("the zombie to notice", async || {
        std::fs::read_to_string(&log).unwrap().contains("the lease is lost").then_some(())
    })
    .await;
    let now = house.run(&run).await;
    assert_eq!((&now["status"], &now["attempt"]), (&taken_over["status"], &taken_over["attempt"]), "{now}");
    house.recover(&run, "site").await;
    house.agree("site").await;
}

const KEYED: &str = r#"
terraform {
  required_providers {
    ledger = { source = "landform/ledger" }
  }
}
variable "ledger" { type = string }
variable "key" { type = string }
provider "ledger" { ledger = var.ledger }
resource "ledger_object" "it" {
  name = "keyed"
  key  = var.key
}
"#;

/// The key of an object is changed, and Landform dies before it hears of it. The change is not approved again; instead
/// the old key is asked for. The state has it still, and the vendor never tells: it has to be written again all the same.
#[tokio::test]
async fn a_key_that_nobody_can_read_is_written_again_after_an_interrupted_update() {
    let mut house = House::build(Memory::Sqlite).await;
    house.landform().push_template("keyed", &[("main.tf", KEYED)]).await.unwrap();
    let put = async |house: &House, key: &str| {
        let inputs = json!({"ledger": house.ledger(), "key": key});
        let body = json!({"template": "keyed", "engine": "native", "requires_approval": true, "inputs": inputs});
        let answer = house.landform().call("PUT", "/v1/tenants/acme/deployments/site", Some(body)).await.unwrap();
        answer["run"]["id"].as_str().unwrap().to_owned()
    };
    let approve = async |house: &House, run: &str| {
        house.until(run, &["awaiting_approval"]).await;
        house.landform().call("POST", &format!("/v1/runs/{run}/approve"), Some(json!({}))).await.unwrap();
    };
    let keys = |house: &House| -> Vec<Option<String>> {
        ledger::read(&house.ledger()).unwrap().objects.into_values().map(|object| object.key).collect()
    };
    let first = put(&house, "old").await;
    approve(&house, &first).await;
    house.until(&first, &["succeeded"]).await;

    let second = put(&house, "new").await;
    house.until(&second, &["awaiting_approval"]).await;
    Kill { spared: 0, after: true }.arm(&house.ledger()).unwrap();
    approve(&house, &second).await;
    wait_for("the kill", async || Kill::is_over(&house.ledger()).then_some(())).await;
    assert_eq!(keys(&house), [Some("new".to_owned())], "the change was made, and nobody knows");
    drop(house.landform.take());
    house.restart().await;
    house.until(&second, &["awaiting_approval"]).await;

    let third = put(&house, "old").await;
    approve(&house, &third).await;
    house.until(&third, &["succeeded"]).await;
    assert_eq!(keys(&house), [Some("old".to_owned())]);
    let fourth = put(&house, "old").await;
    assert_eq!(fourth, third, "nothing is in doubt any more, so the same request is the same run");
}
