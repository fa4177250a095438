//! Sites at Cato through the vendor's own provider, where a machine has it (see `parts::cato_provider`).

use std::path::Path;
use std::time::Duration;

use landform_sim::{Limits, Vendor};
use landform_testkit::parts;
use serde_json::json;

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
