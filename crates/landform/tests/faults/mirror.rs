//! The mirror changes under templates that were pushed.

use std::os::unix::fs::PermissionsExt;

use landform_testkit::{ledger, parts};
use serde_json::{Value, json};

use crate::house::{House, Memory, ONE_OBJECT};

/// A newer provider in the mirror, which does not work, is used by no run of what was pushed before; only by what is
/// pushed to be upgraded.
#[tokio::test]
async fn a_version_keeps_the_providers_it_was_pushed_with() {
    let house = House::build(Memory::Sqlite).await;
    let detail = house.landform().call("GET", "/v1/templates/one/versions/1", None).await.unwrap();
    let files: Vec<&str> =
        detail["files"].as_array().unwrap().iter().filter_map(|file| file["path"].as_str()).collect();
    assert_eq!(files, [".terraform.lock.hcl", "main.tf"]);
    let newer =
        house.setup.providers.join("registry.opentofu.org").join(ledger::SOURCE).join("99.0.0").join(parts::platform());
    std::fs::create_dir_all(&newer).unwrap();
    let program = newer.join("terraform-provider-ledger");
    std::fs::write(&program, "#!/bin/sh\nexit 1\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    for engine in ["native", "cli"] {
        let run = house.put(engine, engine, 0).await;
        house.settle(&run, engine).await;
    }
    let push = async |path: &str| -> Value {
        let request = house.landform().request(reqwest::Method::PUT, path).header("content-type", "application/gzip");
        let archive = landform_testkit::landform::archive(&[("main.tf", ONE_OBJECT)]).unwrap();
        landform_testkit::landform::answer(request.body(archive)).await.unwrap()["version"].clone()
    };
    assert_eq!(push("/v1/templates/one").await, 1, "the same files are the same version");
    assert_eq!(push("/v1/templates/one?upgrade=true").await, 2);
    assert_eq!(push("/v1/templates/one?upgrade=true").await, 2, "there is nothing newer");
    let run = house.put("native", "broken", 0).await;
    let ended = house.until(&run, &["failed"]).await;
    assert_eq!(ended["problem"]["code"], json!("plan_failed"), "{ended}");
}
