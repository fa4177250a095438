//! Sites at Cato through the vendor's own provider, where a machine has it (see `parts::cato_provider`).

use std::path::Path;
use std::time::Duration;

use landform_sim::Vendor;
use landform_testkit::parts;
use serde_json::json;

use crate::{Scene, Site, add_provider, status, vendor};

const SITE: Site = Site {
    template: "cato-ipsec-site",
    files: &[("main.tf", include_str!("../../../../templates/cato-ipsec-site/main.tf"))],
    example: include_str!("../../../../templates/cato-ipsec-site/example.json"),
    connection: "cato",
};

async fn a_site_lives_and_ends(engine: &str) {
    let Some(provider) = parts::cato_provider() else { return };
    let cato = vendor(Vendor::Cato, Duration::ZERO).await;
    let url = format!("http://{}/api/v1/graphql2", cato.address());
    let variables = json!({"cato_url": url, "cato_token": "token-s3cret", "cato_account_id": "4711"});
    let file = provider.display().to_string();
    let mirror = |folder: &Path| add_provider(folder, &[&file, "--source", "catonetworks/cato", "--version", "0.0.1"]);
    let scene = Scene::set(cato, SITE, variables, mirror).await;

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
