//! Too little memory for everything at once.

use serde_json::Value;

use crate::house::{House, Memory, wait_for};

#[tokio::test]
async fn runs_begin_when_there_is_memory_for_them_sqlite() {
    runs_begin_when_there_is_memory_for_them(Memory::Sqlite).await;
}

#[tokio::test]
async fn runs_begin_when_there_is_memory_for_them_postgres() {
    runs_begin_when_there_is_memory_for_them(Memory::Postgres).await;
}

/// A mebibyte is less than any of them needs, so each runs alone, and all come to their turn.
async fn runs_begin_when_there_is_memory_for_them(memory: Memory) {
    let house = House::build_with(memory, &["--memory", "1"]).await;
    let mut runs = Vec::new();
    for (engine, name) in [("cli", "a"), ("native", "b"), ("cli", "c"), ("native", "d")] {
        runs.push((house.put(engine, name, 200).await, name));
    }
    let mut times: Vec<(String, String)> = Vec::new();
    for (run, name) in &runs {
        let ended = house.until(run, &["succeeded"]).await;
        let time = |field: &str| ended[field].as_str().unwrap_or_else(|| panic!("no {field}: {ended}")).to_owned();
        times.push((time("started_at"), time("ended_at")));
        house.agree(name).await;
    }
    times.sort();
    for pair in times.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "one begins before the other has ended: {times:?}");
    }
    // What they took is remembered, by engine: an OpenTofu with its provider takes more than the provider alone.
    let template: Value = house.landform().call("GET", "/v1/templates/one/versions/1", None).await.unwrap();
    let took = |engine: &str| template["memory"][engine].as_u64().unwrap_or_else(|| panic!("{template}"));
    assert!(took("native") > 1 << 20 && took("cli") > took("native"), "{}", template["memory"]);
    // The last one gives its place back just after it has ended.
    let metrics = wait_for("the last place to be given back", async || {
        let request = house.landform().request(reqwest::Method::GET, "/metrics");
        let metrics = request.send().await.ok()?.text().await.ok()?;
        metrics.contains("landform_memory_reserved_bytes 0\n").then_some(metrics)
    })
    .await;
    assert!(metrics.contains("landform_memory_budget_bytes 1048576\n"), "{metrics}");
    assert!(!metrics.contains("landform_claims_held_back_total 0\n"), "{metrics}");
}
