//! The worker's clock and the database's are an hour apart.

use landform_testkit::landform::Landform;
use landform_testkit::postgres;
use reqwest::Method;

use crate::house::{House, wait_for};

/// What the database takes for its clock. To be told apart it stands in a schema of its own, before the system's.
const AHEAD: &str = "CREATE SCHEMA skew;
     CREATE FUNCTION skew.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
         AS $$SELECT pg_catalog.clock_timestamp() + interval '1 hour'$$;
     ALTER DATABASE postgres SET search_path = skew, public, pg_catalog;";
const BEHIND: &str = "CREATE SCHEMA skew;
     CREATE FUNCTION skew.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
         AS $$SELECT pg_catalog.clock_timestamp() - interval '1 hour'$$;
     ALTER DATABASE postgres SET search_path = skew, public, pg_catalog;";

/// A lease is neither lost nor prolonged by that: a live worker keeps its run beyond the lease's length, and a dead one's
/// run is taken up.
async fn clocks_differ(skew: &'static str) {
    let database = postgres::Server::start().unwrap();
    let url = database.url();
    postgres::run(&url, skew).await.unwrap();
    let mut house = House::build_on(Some(database), Some(url), &["--lease", "5"]).await;
    let another = house.another().await;
    let run = house.put("native", "slow", 9000).await;
    let ended = house.until(&run, &["succeeded"]).await;
    assert_eq!(ended["attempt"], 1, "nobody took it away: {ended}");
    house.agree("slow").await;

    let before = attempts_of(&another).await;
    let run = house.put("native", "orphan", 60_000).await;
    house.until_touched(&run).await;
    let held_by_another = attempts_of(&another).await > before;
    let (dead, alive) = match (house.landform.take().unwrap(), another) {
        (first, second) if held_by_another => (second, first),
        (first, second) => (first, second),
    };
    dead.kill().unwrap();
    wait_for("the dead worker's run to be taken up", async || {
        let now = alive.call("GET", &format!("/v1/runs/{run}"), None).await.ok()?;
        now["attempt"].as_i64().filter(|attempt| *attempt > 1)
    })
    .await;
}

/// How many this process has begun.
async fn attempts_of(landform: &Landform) -> u64 {
    let figures = landform.request(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
    let figure = figures.lines().find_map(|line| line.strip_prefix("landform_runs_claimed_total "));
    figure.unwrap_or_else(|| panic!("{figures}")).parse().unwrap()
}

#[tokio::test]
async fn a_clock_that_is_an_hour_behind_changes_nothing() {
    clocks_differ(AHEAD).await;
}

#[tokio::test]
async fn a_clock_that_is_an_hour_ahead_changes_nothing() {
    clocks_differ(BEHIND).await;
}
