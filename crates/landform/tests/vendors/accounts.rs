//! One account at a vendor and two processes that could call it: the vendor, which counts exactly, never has to refuse.

use futures::future::join_all;
use landform_sim::{Limits, Vendor};
use landform_testkit::landform::{Landform, Setup};
use landform_testkit::postgres;
use serde_json::{Value, json};
use std::time::Duration;

use crate::gateway::push;
use crate::versa::{SITE, login};
use crate::{Scene, mirror_of_built_in, sent_by, status, vendor_with};

/// Nine templates in any so many seconds, and twenty of everything else in any second.
fn limits(seconds: u32) -> Value {
    json!({"template.create": [[9, seconds]], "*": [[20, 1]]})
}

async fn scene_with_limits(postgres: Option<postgres::Server>, seconds: u32) -> Scene {
    let limits_of_vendor = Limits::from_json(&limits(seconds).to_string()).unwrap();
    let director = vendor_with(Vendor::Versa, Duration::from_millis(30), limits_of_vendor).await;
    let variables = login(&director);
    let scene = Scene::set_on(postgres, director, SITE, variables, mirror_of_built_in).await;
    push(&scene, |vendor| vendor["limits"] = limits(seconds)).await;
    scene
}

async fn make(scene: &Scene, names: std::ops::Range<u32>) {
    let wishes = names.map(async |number| scene.wish(&format!("b{number}"), "native", |_| ()).await);
    for made in join_all(wishes).await {
        assert_eq!(status(&made), "succeeded", "{made}");
    }
}

async fn refusals(scene: &Scene) -> Vec<String> {
    let calls = scene.calls().await;
    let refused = |call: &&Value| call["outcome"] == "rate_limited";
    calls["calls"].as_array().unwrap().iter().filter(refused).map(Value::to_string).collect()
}

#[tokio::test]
async fn an_account_has_one_caller_at_a_time_and_the_next_one_knows_what_was_called() {
    let mut scene = scene_with_limits(Some(postgres::Server::start().unwrap()), 20).await;
    let data = scene.setup.data.with_file_name("second");
    std::fs::create_dir(&data).unwrap();
    for file in ["master.key", "admin.token"] {
        std::fs::copy(scene.setup.data.join(file), data.join(file)).unwrap();
    }
    let Setup { binary, database, providers, tofu, workers, more, .. } = &scene.setup;
    let setup = Setup {
        binary: binary.clone(),
        data,
        database: database.clone(),
        providers: providers.clone(),
        tofu: tofu.clone(),
        workers: *workers,
        more: more.clone(),
    };
    let second = Landform::start(&setup).await.unwrap();
    make(&scene, 0..8).await;
    assert_eq!(refusals(&scene).await, Vec::<String>::new());
    let mut callers = Vec::new();
    for landform in [&scene.landform, &second] {
        callers.push(sent_by(landform).await.values().sum::<u64>());
    }
    let all = scene.calls().await["count"].as_u64().unwrap();
    assert!(callers.contains(&all) && callers.contains(&0), "{callers:?} of {all}: one process has made all of them");
    // The one that called goes in peace. The other may make one more template at once, and must wait with the next.
    let caller = callers.iter().position(|calls| *calls > 0).unwrap();
    let (gone, stays) = if caller == 0 { (scene.landform, second) } else { (second, scene.landform) };
    gone.stop().await.unwrap();
    scene.landform = stays;
    make(&scene, 8..10).await;
    assert_eq!(refusals(&scene).await, Vec::<String>::new());
    assert_eq!(sent_by(&scene.landform).await["template.create"], 2);
}

/// A run that the budget cannot carry gives its place back, and people see what it waits for.
#[tokio::test]
async fn a_run_that_the_budget_cannot_carry_leaves_its_place_to_others() {
    // The first nine must still be in the window when the others come, also on a machine that is as busy as can be.
    let scene = scene_with_limits(None, 60).await;
    make(&scene, 0..9).await;
    let mut inputs: Value = serde_json::from_str(SITE.example).unwrap();
    inputs["name"] = json!("late");
    let body = json!({"template": SITE.template, "engine": "native", "connections": ["versa"], "inputs": inputs});
    let mut runs = Vec::new();
    // More of them than there are workers.
    for name in ["late", "later", "latest"] {
        let path = format!("/v1/tenants/acme/deployments/{name}");
        let mut body = body.clone();
        body["inputs"]["name"] = json!(name);
        let accepted = scene.landform.call("PUT", &path, Some(body)).await.unwrap();
        runs.push(accepted["run"]["id"].as_str().unwrap().to_owned());
    }
    let blocked = crate::gateway::until("a run to wait", async || {
        let run = scene.landform.call("GET", &format!("/v1/runs/{}", runs[2]), None).await.unwrap();
        run["blocked"].is_object().then_some(run)
    })
    .await;
    assert_eq!(blocked["status"], "queued", "{blocked}");
    assert_eq!(blocked["blocked"]["reason"], "the limits of versa are used up for now", "{blocked}");
    // Whoever needs no vendor is served meanwhile.
    scene.landform.push_template("plain", &[("main.tf", "resource \"terraform_data\" \"x\" {}")]).await.unwrap();
    let request = scene.landform.request(reqwest::Method::PUT, "/v1/tenants/acme/deployments/plain");
    let request = request.header("prefer", "wait=100").json(&json!({"template": "plain"}));
    let made: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(status(&made), "succeeded", "{made}");
    let still = scene.landform.call("GET", &format!("/v1/runs/{}", runs[2]), None).await.unwrap();
    assert_eq!(still["finished"], false, "{still}");
    for run in &runs {
        let path = format!("/v1/runs/{run}");
        let ended = crate::gateway::until("the end of a run that waited", async || {
            let now = scene.landform.call("GET", &path, None).await.unwrap();
            (now["finished"] == true).then_some(now)
        })
        .await;
        assert_eq!((ended["status"].as_str(), ended["attempt"].as_u64()), (Some("succeeded"), Some(1)), "{ended}");
    }
    assert_eq!(refusals(&scene).await, Vec::<String>::new());
}
