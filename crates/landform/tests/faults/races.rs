//! Several want something at the same moment.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;

use crate::house::{House, Memory};

async fn many_changes_at_once(memory: Memory) {
    let house = House::build(memory).await;
    let path = "/v1/tenants/acme/deployments/site";
    let changes =
        (1..=10).map(|size| house.landform().call("PUT", path, Some(house.body("native", "site", size, 100))));
    for answer in join_all(changes).await {
        let run = answer.unwrap()["run"]["id"].as_str().unwrap().to_owned();
        house.until(&run, &["succeeded", "unchanged", "superseded"]).await;
    }
    house.agree("site").await;
    let deployment = house.landform().call("GET", path, None).await.unwrap();
    assert_eq!(deployment["generation"], 10);
}

#[tokio::test]
async fn two_applies_never_meet_on_one_state_on_sqlite() {
    many_changes_at_once(Memory::Sqlite).await;
}

#[tokio::test]
async fn two_applies_never_meet_on_one_state_on_postgres() {
    many_changes_at_once(Memory::Postgres).await;
}

async fn approve_and_cancel_race(memory: Memory) {
    let house = House::build(memory).await;
    for round in 0..5 {
        let name = format!("site{round}");
        let mut body = house.body("native", &name, 1, 0);
        body["requires_approval"] = json!(true);
        let path = format!("/v1/tenants/acme/deployments/{name}");
        let accepted = house.landform().call("PUT", &path, Some(body)).await.unwrap();
        let run = accepted["run"]["id"].as_str().unwrap().to_owned();
        house.until(&run, &["awaiting_approval"]).await;
        let ask = |verb: &'static str| {
            let path = format!("/v1/runs/{run}/{verb}");
            let house = &house;
            async move { (verb, house.landform().call("POST", &path, Some(json!({}))).await.is_ok()) }
        };
        let answers = join_all(["approve", "cancel", "reject", "approve", "cancel"].map(ask)).await;
        let ended = house.until(&run, &["succeeded", "cancelled", "rejected"]).await;
        let expected = match ended["status"].as_str().unwrap() {
            "succeeded" => "approve",
            "cancelled" => "cancel",
            _ => "reject",
        };
        assert!(answers.iter().any(|(verb, took)| *took && *verb == expected), "{answers:?}: {ended}");
        let exists = landform_testkit::ledger::read(&house.ledger()).unwrap().named(&name).len();
        assert_eq!(exists, usize::from(expected == "approve"), "{ended}");
    }
}

#[tokio::test]
async fn approve_reject_and_cancel_have_one_outcome_on_sqlite() {
    approve_and_cancel_race(Memory::Sqlite).await;
}

#[tokio::test]
async fn approve_reject_and_cancel_have_one_outcome_on_postgres() {
    approve_and_cancel_race(Memory::Postgres).await;
}

/// People decide just when the time to decide is over.
async fn approve_and_expiry_race(memory: Memory) {
    let house = House::build_with(memory, &["--approval-expiry", "2"]).await;
    let decided = (0..8).map(|number| {
        let house = &house;
        async move {
            let name = format!("site{number}");
            let mut body = house.body("native", &name, 1, 0);
            body["requires_approval"] = json!(true);
            let path = format!("/v1/tenants/acme/deployments/{name}");
            let accepted = house.landform().call("PUT", &path, Some(body)).await.unwrap();
            let run = accepted["run"]["id"].as_str().unwrap().to_owned();
            house.until(&run, &["awaiting_approval", "expired"]).await;
            // Some of them before, some after, and some at the very moment.
            tokio::time::sleep(Duration::from_millis(400 * number)).await;
            let took = house.landform().call("POST", &format!("/v1/runs/{run}/approve"), None).await.is_ok();
            let ended = house.until(&run, &["succeeded", "expired"]).await;
            let exists = landform_testkit::ledger::read(&house.ledger()).unwrap().named(&name).len();
            assert_eq!((ended["status"] == "succeeded", exists), (took, usize::from(took)), "{ended}");
            took
        }
    });
    let approved = join_all(decided).await.into_iter().filter(|took| *took).count();
    let log = house.landform().call("GET", "/v1/audit?action=run.approve", None).await.unwrap();
    assert_eq!(log["entries"].as_array().unwrap().len(), approved, "what took effect is in the log, and nothing else");
}

#[tokio::test]
async fn approval_and_expiry_have_one_outcome_on_sqlite() {
    approve_and_expiry_race(Memory::Sqlite).await;
}

#[tokio::test]
async fn approval_and_expiry_have_one_outcome_on_postgres() {
    approve_and_expiry_race(Memory::Postgres).await;
}
