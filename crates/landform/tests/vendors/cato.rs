//! Sites at Cato through the vendor's own provider, where a machine has it (see `parts::cato_provider`).

use std::path::Path;
use std::time::Duration;

use landform_sim::{Limits, Vendor};
use landform_testkit::parts;
use serde_json::{Value, json};

use crate::gateway::{answered, until};
use crate::{Scene, Site, add_provider, status, vendor_with};

const SITE: Site = Site {
    template: "cato-ipsec-site",
    files: &[
        ("main.tf", include_str!("../../../../templates/cato-ipsec-site/main.tf")),
        ("vendor.json", include_str!("../../../../templates/cato-ipsec-site/vendor.json")),
    ],
    example: include_str!("../../../../templates/cato-ipsec-site/example.json"),
    connection: "cato",
};

async fn scene(limits: Limits) -> Option<Scene> {
    let provider = parts::cato_provider()?;
    let cato = vendor_with(Vendor::Cato, Duration::ZERO, limits).await;
    let url = format!("http://{}/api/v1/graphql2", cato.address());
    let variables = json!({"cato_url": url, "cato_token": "token-s3cret", "cato_account_id": "4711"});
    let file = provider.display().to_string();
    let mirror = |folder: &Path| add_provider(folder, &[&file, "--source", "catonetworks/cato", "--version", "0.0.1"]);
    Some(Scene::set(cato, SITE, variables, mirror).await)
}

/// Without the gateway the second one fails: a snapshot may be taken once a second, and the provider does not wait.
#[tokio::test]
async fn sites_that_are_made_at_once_keep_the_published_limits() {
    let Some(scene) = scene(Vendor::Cato.limits()).await else { return };
    let made = futures::future::join_all(["berlin", "paris"].map(|name| scene.wish(name, "native", |_| ()))).await;
    for made in made.iter().chain([&scene.again("berlin").await]) {
        assert!(["succeeded", "unchanged"].contains(&status(made)), "{made}");
    }
    let calls = scene.calls().await;
    assert!(!calls["totals"].to_string().contains("rate_limited"), "{}", calls["totals"]);
    // Calls that the simulator has no words for are in its log not at all; the others are, one by one.
    let sent = scene.sent_by_the_gateway().await;
    for (operation, outcomes) in calls["totals"].as_object().unwrap() {
        let asked: u64 = outcomes.as_object().unwrap().values().filter_map(serde_json::Value::as_u64).sum();
        assert_eq!(Some(&asked), sent.get(operation), "{operation} went around it");
    }
}

async fn a_site_lives_and_ends(engine: &str) {
    let Some(scene) = scene(Limits::none()).await else { return };
    let made = scene.wish("berlin", engine, |_| ()).await;
    assert_eq!(status(&made), "succeeded", "{made}");
    let site = made["outputs"]["site_id"]["value"].as_str().unwrap().to_owned();
    let ledger = scene.ledger().await;
    assert!(ledger.to_string().contains(&site), "{ledger}");
    let same = scene.again("berlin").await;
    assert_eq!(status(&same), "unchanged", "{same}");
    let renamed = scene.wish("berlin", engine, |inputs| inputs["description"] = json!("moved next door")).await;
    assert_eq!(status(&renamed), "succeeded", "{renamed}");
    assert_eq!(renamed["outputs"]["site_id"]["value"], json!(site), "it was changed in place");
    assert!(scene.ledger().await.to_string().contains("moved next door"));
    let gone = scene.destroy("berlin").await;
    assert_eq!(status(&gone), "succeeded", "{gone}");
    assert!(!scene.ledger().await.to_string().contains("moved next door"));
}

#[tokio::test]
async fn a_site_lives_and_ends_natively() {
    a_site_lives_and_ends("native").await;
}

#[tokio::test]
async fn a_site_lives_and_ends_through_the_cli() {
    a_site_lives_and_ends("cli").await;
}

/// The ids of the customer's sites at Cato.
async fn sites(scene: &Scene) -> Vec<String> {
    let ledger = scene.ledger().await;
    let sites = ledger["accounts"]["4711"]["sites"].as_array().cloned().unwrap_or_default();
    sites.iter().map(|site| site["id"].as_str().unwrap().to_owned()).collect()
}

/// By hand, at Cato.
async fn remove(scene: &Scene, site: &str) {
    let query = "mutation($id: ID!) { site(accountId: \"4711\") { removeSite(siteId: $id) { siteId } } }";
    let url = format!("{}/api/v1/graphql2", scene.url());
    let body = json!({"query": query, "variables": {"id": site}});
    let answer: Value =
        scene.http.post(url).header("x-api-key", "x").json(&body).send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["data"]["site"]["removeSite"]["siteId"], json!(site), "{answer}");
}

/// Row 14: the vendor refuses for a while, in both of its ways, although the budget was kept.
#[tokio::test]
async fn a_storm_of_rate_limits_is_waited_out() {
    let Some(scene) = scene(Limits::none()).await else { return };
    scene.order(json!({"operation": "addIpsecIkeV2Site", "kind": "rate_limit", "times": 2})).await;
    scene.order(json!({"operation": "addBgpPeer", "kind": "too_many_requests", "times": 2})).await;
    let made = scene.wish("berlin", "native", |_| ()).await;
    assert_eq!(status(&made), "succeeded", "{made}");
    assert_eq!(sites(&scene).await.len(), 1);
    let totals = scene.calls().await["totals"].clone();
    assert_eq!(totals["addIpsecIkeV2Site"], json!({"answered": 1, "rate_limited": 2}), "{totals}");
}

/// Rows 15 and 16: a site is asked for, and no answer comes; whether it was made, only somebody who looks can tell.
async fn silence_leaves_a_question(engine: &str, kind: &str) {
    let Some(scene) = scene(Limits::none()).await else { return };
    let mut data: Value = serde_json::from_str(SITE.files[1].1).unwrap();
    data["vendors"][0]["answer_seconds"] = json!(1);
    let files = [SITE.files[0], ("vendor.json", &data.to_string())];
    scene.landform.push_template(SITE.template, &files).await.unwrap();
    scene.order(json!({"operation": "addIpsecIkeV2Site", "kind": kind})).await;
    let (asked, other) = tokio::join!(scene.wish("rome", engine, |_| ()), async {
        until("silence", async || scene.calls().await["totals"]["addIpsecIkeV2Site"]["hung"].as_u64()).await;
        scene.wish("oslo", engine, |_| ()).await
    });
    assert_eq!(status(&other), "succeeded", "another run is not held up: {other}");
    assert_eq!(status(&asked), "needs_recovery", "{asked}");
    let other = other["outputs"]["site_id"]["value"].as_str().unwrap();
    let found = sites(&scene).await.into_iter().find(|id| id != other);
    assert_eq!(found.is_some(), kind == "hang_after");
    // A site without its tunnels is nothing that Cato's provider can go on with: whoever finds one removes it.
    if let Some(id) = found {
        remove(&scene, &id).await;
    }
    let run = asked["run"]["id"].as_str().unwrap();
    // The CLI does not tell which of its calls had no answer: each object that was to be made is in doubt.
    let doubts = asked["run"]["doubts"].as_array().unwrap().iter();
    let absent = doubts.map(|doubt| (doubt["address"].as_str().unwrap().to_owned(), json!("absent")));
    let ended = answered(&scene, run, Value::Object(absent.collect())).await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    assert_eq!(sites(&scene).await.len(), 2);
}

/// Row 16: the vendor fails, maybe after its work was done. The provider sends the call again after any 5xx, and nobody
/// gets two sites for it.
async fn a_failure_leaves_a_question(engine: &str, kind: &str) {
    let Some(scene) = scene(Limits::none()).await else { return };
    scene.order(json!({"operation": "addIpsecIkeV2Site", "kind": kind})).await;
    let asked = scene.wish("rome", engine, |_| ()).await;
    assert_eq!(status(&asked), "needs_recovery", "{asked}");
    let found = sites(&scene).await;
    assert_eq!(found.len(), usize::from(kind == "unavailable_after"), "{found:?}");
    let totals = scene.calls().await["totals"].clone();
    assert_eq!(totals["addIpsecIkeV2Site"], json!({"unavailable": 1}), "it was sent again: {totals}");
    let run = asked["run"]["id"].as_str().unwrap();
    let events = scene.landform.call("GET", &format!("/v1/runs/{run}/events"), None).await.unwrap().to_string();
    assert!(events.contains("1 not sent again"), "{events}");
    for id in &found {
        remove(&scene, id).await;
    }
    let doubts = asked["run"]["doubts"].as_array().unwrap().iter();
    let absent = doubts.map(|doubt| (doubt["address"].as_str().unwrap().to_owned(), json!("absent")));
    let ended = answered(&scene, run, Value::Object(absent.collect())).await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    assert_eq!(sites(&scene).await.len(), 1);
    let same = scene.again("rome").await;
    assert_eq!(status(&same), "unchanged", "{same}");
}

#[tokio::test]
async fn a_failure_before_a_site_is_made_leaves_a_question_natively() {
    a_failure_leaves_a_question("native", "unavailable").await;
}

#[tokio::test]
async fn a_failure_after_a_site_is_made_leaves_a_question_natively() {
    a_failure_leaves_a_question("native", "unavailable_after").await;
}

#[tokio::test]
async fn a_failure_after_a_site_is_made_leaves_a_question_through_the_cli() {
    a_failure_leaves_a_question("cli", "unavailable_after").await;
}

/// What changes a site comes to the same however often it is carried out: the provider's own patience is enough.
#[tokio::test]
async fn a_failure_after_a_change_is_repeated_by_the_provider() {
    let Some(scene) = scene(Limits::none()).await else { return };
    assert_eq!(status(&scene.wish("rome", "native", |_| ()).await), "succeeded");
    scene.order(json!({"operation": "updateSiteGeneralDetails", "kind": "unavailable_after"})).await;
    let changed = scene.wish("rome", "native", |inputs| inputs["description"] = json!("moved next door")).await;
    assert_eq!(status(&changed), "succeeded", "{changed}");
    let totals = scene.calls().await["totals"]["updateSiteGeneralDetails"].clone();
    assert_eq!(totals["unavailable"], 1, "{totals}");
    assert!(totals["answered"].as_u64() >= Some(1) && sites(&scene).await.len() == 1, "{totals}");
}

#[tokio::test]
async fn silence_before_a_site_is_made_leaves_a_question_natively() {
    silence_leaves_a_question("native", "hang").await;
}

#[tokio::test]
async fn silence_after_a_site_is_made_leaves_a_question_natively() {
    silence_leaves_a_question("native", "hang_after").await;
}

#[tokio::test]
async fn silence_after_a_site_is_made_leaves_a_question_through_the_cli() {
    silence_leaves_a_question("cli", "hang_after").await;
}
