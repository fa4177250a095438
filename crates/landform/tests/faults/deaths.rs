//! Somebody dies, or is only thought to be dead.

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
