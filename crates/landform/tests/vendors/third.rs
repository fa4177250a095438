//! The guide "Add a vendor" of CONTRIBUTING, followed: a folder, and no Rust. The provider goes by a source address that
//! Landform does not know, and the vendor by limits that only the folder tells.

use std::time::Duration;

use landform_sim::{Limits, Vendor, Window};
use serde_json::json;

use crate::{Scene, Site, add_provider, binary, status, vendor_with};

const SITE: Site = Site {
    template: "nimbus-group",
    files: &[("main.tf", include_str!("third/main.tf")), ("vendor.json", include_str!("third/vendor.json"))],
    example: include_str!("third/example.json"),
    connection: "nimbus",
};

#[tokio::test]
async fn a_vendor_is_a_folder() {
    // Five calls of a kind in any three seconds: a run has to wait for its turn, and nobody but the folder says so.
    let limits = Limits::others(&[Window::per_seconds(5, 3)]);
    let nimbus = vendor_with(Vendor::Versa, Duration::ZERO, limits).await;
    let url = format!("http://{}", nimbus.address());
    let variables = json!({"nimbus_url": url, "nimbus_user": "admin", "nimbus_password": "nimbus-s3cret"});
    let file = binary().display().to_string();
    let words = [file.as_str(), "--source", "nimbus/versa", "--version", "1.0.0"];
    let scene = Scene::set(nimbus, SITE, variables, |folder| add_provider(folder, &words)).await;

    for engine in ["native", "cli"] {
        let made = scene.wish(engine, engine, |_| ()).await;
        assert_eq!(status(&made), "succeeded", "{made}");
        let groups = scene.ledger().await["deviceGroups"].clone();
        let of_this = groups.as_object().unwrap().keys().filter(|name| name.starts_with(engine)).count();
        assert_eq!(of_this, 8, "{groups}");
        let same = scene.again(engine).await;
        assert_eq!(status(&same), "unchanged", "{same}");
    }
    for name in ["native", "cli"] {
        let gone = scene.destroy(name).await;
        assert_eq!(status(&gone), "succeeded", "{gone}");
    }
    let ledger = scene.ledger().await;
    assert!(ledger["deviceGroups"].as_object().unwrap().is_empty(), "{ledger}");
    let calls = scene.calls().await;
    let over = calls["calls"].as_array().unwrap().iter().filter(|call| call["outcome"] == "rate_limited").count();
    assert_eq!(over, 0, "not one call was over the vendor's limit");
    assert_eq!(
        scene.sent_by_the_gateway().await.values().sum::<u64>(),
        calls["count"].as_u64().unwrap(),
        "no call went around the gateway"
    );
}
