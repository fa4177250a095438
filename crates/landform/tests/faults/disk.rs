//! The disk takes no more.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::house::{House, Memory, wait_for};

/// No file may grow beyond so many blocks of 512 bytes: writing to a longer one fails as on a full disk.
const LARGEST_FILE: u32 = 6_000;

/// The database cannot be written in the middle of an apply: callers are told to come back, what the provider did is kept
/// beside it, and when there is room again nobody has to be asked.
#[tokio::test]
async fn a_full_disk_in_mid_apply_loses_nothing() {
    let mut house = House::build(Memory::Sqlite).await;
    house.landform.take().unwrap().stop().await.unwrap();
    let binary = house.setup.binary.clone();
    let cramped = house.root.path().join("cramped");
    let script = format!("#!/bin/sh\ntrap '' XFSZ\nulimit -f {LARGEST_FILE}\nexec '{}' \"$@\"\n", binary.display());
    std::fs::write(&cramped, script).unwrap();
    std::fs::set_permissions(&cramped, std::fs::Permissions::from_mode(0o755)).unwrap();
    house.setup.binary = cramped;
    house.restart().await;

    let run = house.put("native", "site", 6000).await;
    house.until_touched(&run).await;
    let filler = "x".repeat(400_000);
    let mut number = 0;
    let refused = loop {
        let inputs = json!({"ledger": "/nowhere", "name": filler, "size": 1, "delay": 0});
        let body = json!({"template": "one", "inputs": inputs, "requires_approval": true});
        let path = format!("/v1/tenants/acme/deployments/filler{number}");
        let answer = house.landform().request(reqwest::Method::PUT, &path).json(&body).send().await.unwrap();
        if !answer.status().is_success() {
            break (answer.status().as_u16(), answer.json::<serde_json::Value>().await.unwrap());
        }
        number += 1;
        assert!(number < 100, "the disk never filled up");
    };
    assert_eq!((refused.0, refused.1["code"].as_str()), (503, Some("store_unavailable")), "{}", refused.1);
    let ready = house.landform().request(reqwest::Method::GET, "/readyz").send().await.unwrap();
    assert_eq!(ready.status(), 503, "a full disk is no place to write");
    let spool = house.setup.data.join("worker/spool");
    wait_for("the result to be kept beside the database", async || {
        std::fs::read_dir(&spool).ok()?.flatten().any(|entry| entry.path().extension().is_some()).then_some(())
    })
    .await;
    house.landform.take().unwrap().kill().unwrap();

    house.setup.binary = binary;
    house.restart().await;
    house.until(&run, &["succeeded", "unchanged"]).await;
    house.agree("site").await;
}
