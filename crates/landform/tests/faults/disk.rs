//! The disk takes no more.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::house::{House, Memory, wait_for};

/// No file may grow beyond so many blocks of 512 bytes: writing to a longer one fails as on a full disk.
const LARGEST_FILE: u32 = 3_000;

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

    let run = house.put("native", "site", 10_000).await;
    house.until_touched(&run).await;
    // The log of the database fills up, is carried over into the database while that has room, and fills up again: in the
    // end there is no room for anything. Smaller ones fit for longer.
    let mut number = 0;
    let mut last = (0, json!(null));
    for size in [200_000, 20_000] {
        let filler = "x".repeat(size);
        let mut refused = 0;
        while refused < 3 {
            let inputs = json!({"ledger": "/nowhere", "name": filler, "size": 1, "delay": 0});
            let body = json!({"template": "one", "inputs": inputs, "requires_approval": true});
            let path = format!("/v1/tenants/acme/deployments/filler{number}");
            let answer = house.landform().request(reqwest::Method::PUT, &path).json(&body).send().await.unwrap();
            number += 1;
            if answer.status().is_success() {
                refused = 0;
            } else {
                refused += 1;
                last = (answer.status().as_u16(), answer.json::<serde_json::Value>().await.unwrap());
            }
            assert!(number < 1000, "the disk never filled up");
        }
    }
    assert_eq!((last.0, last.1["code"].as_str()), (503, Some("store_unavailable")), "{}", last.1);
    // There was no room for that one, and may be for less. Each look writes a page, so the room ends.
    wait_for("a full disk to be no place to write", async || {
        let ready = house.landform().request(reqwest::Method::GET, "/readyz").send().await.ok()?;
        (ready.status() == 503).then_some(())
    })
    .await;
    let spool = house.setup.data.join("worker/spool");
    // Kept beside the database, unless there was room in the database for it after all: small things fit for longer.
    wait_for("the result to be kept somewhere", async || {
        let spooled = std::fs::read_dir(&spool).ok()?.flatten().any(|entry| entry.path().extension().is_some());
        let now = house.landform().call("GET", &format!("/v1/runs/{run}"), None).await.ok()?;
        (spooled || now["finished"] == true).then_some(())
    })
    .await;
    house.landform.take().unwrap().kill().unwrap();

    house.setup.binary = binary;
    house.restart().await;
    house.until(&run, &["succeeded", "unchanged"]).await;
    house.agree("site").await;
}
