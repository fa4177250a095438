//! The gateway from the front door: whoever calls a vendor, the vendor's log and the gateway's figures agree.

use std::time::{Duration, Instant};

use futures::future::join_all;
use landform_testkit::landform::Landform;
use serde_json::{Value, json};

use crate::versa::{SITE, director, scene};
use crate::{Scene, status};

/// The template with other words about its vendor.
pub async fn push(scene: &Scene, change: impl FnOnce(&mut Value)) {
    let mut data: Value = serde_json::from_str(SITE.files[1].1).unwrap();
    change(&mut data["vendors"][0]);
    let (main, data) = (SITE.files[0], data.to_string());
    scene.landform.push_template(SITE.template, &[main, ("vendor.json", &data)]).await.unwrap();
}

pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(begin.elapsed() < Duration::from_secs(120), "waiting for {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Answers a run's doubts as somebody who looks at the vendor would, and waits for its end.
pub async fn recover(scene: &Scene, run: &str, name: &str) -> Value {
    let path = format!("/v1/runs/{run}");
    let now = scene.landform.call("GET", &path, None).await.unwrap();
    let ledger = scene.ledger().await;
    let exists = |part: &str, id: &str| ledger[part].get(id).is_some();
    let answer = |address: &str| {
        let (part, id) = match address {
            "versa_template.branch" => ("templates", format!("{name}-template")),
            "versa_device_group.branch" => ("deviceGroups", format!("{name}-group")),
            "versa_device.branch" => ("devices", name.to_owned()),
            "versa_ipsec_tunnel.branch" => ("vpnProfiles", format!("{name}-template/Customer-A/{name}-tunnel")),
            _ => ("bgp", format!("{name}/Customer-A-LAN-VR/1")),
        };
        if exists(part, &id) { json!({ "adopt": id }) } else { json!("absent") }
    };
    let doubts = now["doubts"].as_array().unwrap().iter().map(|doubt| doubt["address"].as_str().unwrap());
    let answers: serde_json::Map<String, Value> = doubts.map(|address| (address.to_owned(), answer(address))).collect();
    answered(scene, run, json!(answers)).await
}

/// Gives an operator's answers, and waits for the end of the run.
pub async fn answered(scene: &Scene, run: &str, answers: Value) -> Value {
    let path = format!("/v1/runs/{run}");
    scene.landform.call("POST", &format!("{path}/recover"), Some(json!({ "answers": answers }))).await.unwrap();
    until("the end of a recovered run", async || {
        let now = scene.landform.call("GET", &path, None).await.unwrap();
        (now["finished"] == true || now["status"] == "needs_recovery").then_some(now)
    })
    .await
}

/// The Director has so many branches, and nothing besides.
pub async fn expect_branches(scene: &Scene, count: usize) {
    let ledger = scene.ledger().await;
    for part in ["templates", "deviceGroups", "devices", "vpnProfiles", "bgp"] {
        assert_eq!(ledger[part].as_object().unwrap().len(), count, "{part}: {ledger}");
    }
    assert_eq!(ledger["deployedDevices"].as_array().unwrap().len(), count, "{ledger}");
}

#[tokio::test]
async fn no_call_goes_around_it() {
    let scene = scene().await;
    for engine in ["native", "cli"] {
        let made = scene.wish(engine, engine, |_| ()).await;
        assert_eq!(status(&made), "succeeded", "{made}");
        let run = made["run"]["id"].as_str().unwrap();
        let events = scene.landform.call("GET", &format!("/v1/runs/{run}/events"), None).await.unwrap().to_string();
        assert!(events.contains("calls to versa: ") && events.contains("device.create 1"), "{events}");
        let asked = scene.calls().await["count"].as_u64().unwrap();
        assert_eq!(asked, scene.sent_by_the_gateway().await.values().sum::<u64>(), "{engine}");
    }
    assert_eq!(status(&scene.destroy("native").await), "succeeded");
    let sent: u64 = scene.sent_by_the_gateway().await.values().sum();
    assert_eq!(scene.calls().await["count"].as_u64().unwrap(), sent);
}

#[tokio::test]
async fn a_template_that_would_lead_around_it_is_refused() {
    let scene = scene().await;
    let (main, data) = (SITE.files[0].1, SITE.files[1]);
    let around = main.replace("= var.versa_url", "= \"https://director.example\"");
    let shown = main.replacen("ephemeral = true", "", 1);
    for (main, data, code, said) in [
        (around.as_str(), data.1.to_owned(), "vendor_bypassed", "var.versa_url"),
        (&shown, data.1.to_owned(), "vendor_bypassed", "versa_url"),
        (main, data.1.replace("concurrency", "conurrency"), "vendor_invalid", "line"),
    ] {
        let pushed = scene.landform.push_template("other", &[("main.tf", main), ("vendor.json", &data)]).await;
        let refusal = pushed.unwrap_err().to_string();
        assert!(refusal.contains("422") && refusal.contains(code) && refusal.contains(said), "{refusal}");
    }
    // Also where it says nothing about its vendor: this one is known.
    let refusal = scene.landform.push_template("other", &[("main.tf", &around)]).await.unwrap_err().to_string();
    assert!(refusal.contains("vendor_bypassed"), "{refusal}");
}

/// Row 14: while one Director refuses everything, customers of another are served; and each refusal is waited out.
#[tokio::test]
async fn a_storm_of_rate_limits_is_waited_out_and_concerns_nobody_else() {
    let scene = scene().await;
    let quiet = director().await;
    let url = format!("http://{}", quiet.address());
    let variables = json!({"versa_url": url, "versa_username": "admin", "versa_password": "director-s3cret"});
    scene.landform.call("PUT", "/v1/tenants/globex", None).await.unwrap();
    let values = json!({ "variables": variables });
    scene.landform.call("PUT", "/v1/tenants/globex/connections/versa", Some(values)).await.unwrap();
    scene.order(json!({"kind": "too_many_requests", "times": 100_000})).await;
    let mut inputs: Value = serde_json::from_str(SITE.example).unwrap();
    inputs["name"] = json!("paris");
    let body = json!({"template": SITE.template, "engine": "native", "connections": ["versa"], "inputs": inputs});
    let stormy = scene.wish("berlin", "native", |_| ());
    let calm = async {
        until("the storm", async || (scene.calls().await["count"].as_u64()? > 0).then_some(())).await;
        let request = scene.landform.request(reqwest::Method::PUT, "/v1/tenants/globex/deployments/paris");
        let made: Value = request.header("prefer", "wait=100").json(&body).send().await.unwrap().json().await.unwrap();
        assert_eq!(status(&made), "succeeded", "{made}");
        let url = format!("{}/_sim/faults", scene.url());
        assert_eq!(scene.http.delete(url).send().await.unwrap().status(), 204);
    };
    let (made, ()) = tokio::join!(stormy, calm);
    assert_eq!(status(&made), "succeeded", "{made}");
    let log = scene.calls().await;
    let calls = log["calls"].as_array().unwrap();
    for (at, refused) in calls.iter().enumerate().filter(|(_, call)| call["outcome"] == "rate_limited") {
        let next = calls[at + 1..].iter().find(|call| call["operations"] == refused["operations"]).unwrap();
        let apart = next["at_ms"].as_u64().unwrap() - refused["at_ms"].as_u64().unwrap();
        assert!(apart >= 1_000, "Retry-After was one second: {refused} {next}");
    }
}

/// Rows 15 and 16: silence is an error at the deadline. Where the provider does not find out itself what became of a call,
/// what it was to make is in doubt; it is asked about, and not made twice.
async fn silence_leaves_a_question(engine: &str, kind: &str) {
    let scene = scene().await;
    push(&scene, |vendor| {
        vendor["answer_seconds"] = json!(1);
        vendor["looks_up_after_silence"] = json!(false);
    })
    .await;
    // The look-up after it is not answered either.
    scene.order(json!({"operation": "template.create", "kind": kind})).await;
    scene.order(json!({"operation": "template.read", "kind": "unavailable"})).await;
    let (asked, other) = tokio::join!(scene.wish("rome", engine, |_| ()), async {
        until("silence", async || scene.calls().await["totals"]["template.create"]["hung"].as_u64()).await;
        scene.wish("oslo", engine, |_| ()).await
    });
    assert_eq!(status(&other), "succeeded", "another run is not held up: {other}");
    assert_eq!(status(&asked), "needs_recovery", "{asked}");
    let ended = recover(&scene, asked["run"]["id"].as_str().unwrap(), "rome").await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    expect_branches(&scene, 2).await;
}

#[tokio::test]
async fn silence_before_a_create_leaves_a_question_natively() {
    silence_leaves_a_question("native", "hang").await;
}

#[tokio::test]
async fn silence_after_a_create_leaves_a_question_natively() {
    silence_leaves_a_question("native", "hang_after").await;
}

#[tokio::test]
async fn silence_after_a_create_leaves_a_question_through_the_cli() {
    silence_leaves_a_question("cli", "hang_after").await;
}

/// The provider for Versa looks for what it was not told about.
#[tokio::test]
async fn silence_is_looked_into_where_the_provider_can() {
    let scene = scene().await;
    push(&scene, |vendor| vendor["answer_seconds"] = json!(1)).await;
    scene.order(json!({"operation": "template.create", "kind": "hang_after"})).await;
    let made = scene.wish("rome", "native", |_| ()).await;
    assert_eq!(status(&made), "succeeded", "{made}");
    assert_eq!(scene.calls().await["totals"]["template.create"], json!({"hung": 1}));
}

/// The vendor fails, maybe after its work was done, and the provider neither asks again nor looks.
async fn a_failure_leaves_a_question(kind: &str) {
    let scene = scene().await;
    push(&scene, |vendor| vendor["looks_up_after_silence"] = json!(false)).await;
    scene.order(json!({"operation": "template.create", "kind": kind})).await;
    scene.order(json!({"operation": "template.read", "kind": "unavailable"})).await;
    let asked = scene.wish("rome", "native", |_| ()).await;
    assert_eq!(status(&asked), "needs_recovery", "{asked}");
    let ended = recover(&scene, asked["run"]["id"].as_str().unwrap(), "rome").await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    expect_branches(&scene, 1).await;
}

#[tokio::test]
async fn a_failure_before_a_create_leaves_a_question() {
    a_failure_leaves_a_question("unavailable").await;
}

#[tokio::test]
async fn a_failure_after_a_create_leaves_a_question() {
    a_failure_leaves_a_question("unavailable_after").await;
}

#[tokio::test]
async fn a_failure_after_a_create_is_looked_into_where_the_provider_can() {
    let scene = scene().await;
    for operation in ["template.create", "device.create"] {
        scene.order(json!({"operation": operation, "kind": "unavailable_after"})).await;
    }
    let made = scene.wish("rome", "native", |_| ()).await;
    assert_eq!(status(&made), "succeeded", "{made}");
    let totals = scene.calls().await["totals"].clone();
    for operation in ["template.create", "device.create"] {
        assert_eq!(totals[operation], json!({"unavailable": 1}), "{totals}");
    }
    expect_branches(&scene, 1).await;
}

async fn made_templates(scene: &Scene) -> Option<u64> {
    scene.calls().await["totals"]["template.create"]["answered"].as_u64()
}

/// The worker, and with it the gateway, is killed while calls wait for their turn: none of them was sent.
#[tokio::test]
async fn calls_that_wait_when_the_worker_is_killed_were_not_sent() {
    let mut scene = scene().await;
    push(&scene, |vendor| vendor["limits"] = json!({"template.create": [[1, 5]]})).await;
    let names = ["one", "two"];
    let mut inputs: Value = serde_json::from_str(SITE.example).unwrap();
    let mut runs = Vec::new();
    for name in names {
        inputs["name"] = json!(name);
        let body = json!({"template": SITE.template, "engine": "native", "connections": ["versa"], "inputs": inputs});
        let path = format!("/v1/tenants/acme/deployments/{name}");
        let accepted = scene.landform.call("PUT", &path, Some(body)).await.unwrap();
        runs.push(accepted["run"]["id"].as_str().unwrap().to_owned());
    }
    until("one to be made while the other waits", async || {
        let states = join_all(runs.iter().map(async |run| {
            let events = scene.landform.call("GET", &format!("/v1/runs/{run}/events"), None).await.ok()?;
            events.to_string().contains("\"started\"").then_some(())
        }));
        states.await.into_iter().collect::<Option<Vec<()>>>()?;
        (made_templates(&scene).await == Some(1)).then_some(())
    })
    .await;
    scene.landform.kill_in_place().unwrap();
    assert_eq!(made_templates(&scene).await, Some(1), "what waited was not sent");
    scene.landform = Landform::start(&scene.setup).await.unwrap();
    for (run, name) in runs.iter().zip(names) {
        let path = format!("/v1/runs/{run}");
        let now = until("the run to rest", async || {
            let now = scene.landform.call("GET", &path, None).await.ok()?;
            (now["finished"] == true || now["status"] == "needs_recovery").then_some(now)
        })
        .await;
        let ended = if now["finished"] == true { now } else { recover(&scene, run, name).await };
        assert_eq!(ended["status"], "succeeded", "{ended}");
    }
    expect_branches(&scene, names.len()).await;
}
