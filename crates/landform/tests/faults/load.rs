//! Too much at once, or too slow.

use futures::future::join_all;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::house::{House, Memory};

#[tokio::test]
async fn fifty_runs_on_a_cold_cache_share_one_mirror() {
    let house = House::build(Memory::Sqlite).await;
    let names: Vec<String> = (0..50).map(|number| format!("site{number}")).collect();
    let runs = join_all(names.iter().map(|name| house.put("cli", name, 0))).await;
    for (run, name) in runs.iter().zip(&names) {
        house.until(run, &["succeeded"]).await;
        house.agree(name).await;
    }
}

#[tokio::test]
async fn a_vendor_that_hangs_holds_nobody_else_up_and_can_be_cancelled() {
    let house = House::build_with(Memory::Sqlite, &["--grace", "2"]).await;
    let hanging = house.put("native", "hanging", 3_600_000).await;
    house.until_touched(&hanging).await;
    let other = house.put("native", "other", 0).await;
    house.settle(&other, "other").await;
    house.landform().call("POST", &format!("/v1/runs/{hanging}/cancel"), None).await.unwrap();
    // Whether the vendor has made it, nobody knows.
    let ended = house.until(&hanging, &["needs_recovery"]).await;
    assert_eq!(ended["doubts"][0]["address"], "ledger_object.it", "{ended}");
}

/// Two objects, the second after the first.
const TWO_OBJECTS: &str = r#"
terraform {
  required_providers {
    ledger = { source = "landform/ledger" }
  }
}
variable "ledger" { type = string }
variable "name" { type = string }
variable "size" { type = number }
variable "delay" { type = number }
provider "ledger" { ledger = var.ledger }
resource "ledger_object" "it" {
  name     = var.name
  size     = var.size
  delay_ms = var.delay
}
resource "ledger_object" "next" {
  name     = "${ledger_object.it.id}-next"
  size     = var.size
  delay_ms = var.delay
}
"#;

#[tokio::test]
async fn an_apply_that_takes_too_long_is_stopped_and_keeps_what_it_did() {
    let house = House::build(Memory::Sqlite).await;
    house.landform().push_template("two", &[("main.tf", TWO_OBJECTS)]).await.unwrap();
    // Long enough for a plan on a busy machine, and over before the first object is made.
    join_all(["native", "cli"].map(async |engine| {
        let mut body = house.body(engine, engine, 1, 14_000);
        body["template"] = json!("two");
        body["time_limit"] = json!(11);
        let path = format!("/v1/tenants/acme/deployments/{engine}");
        let accepted = house.landform().call("PUT", &path, Some(body)).await.unwrap();
        let ended = house.until(accepted["run"]["id"].as_str().unwrap(), &["failed"]).await;
        assert_eq!(ended["problem"]["code"], "time_limit_exceeded", "{ended}");
        house.agree(engine).await;
        assert_eq!(house.landform().call("GET", &path, None).await.unwrap()["time_limit"], 11);
    }))
    .await;
}

#[tokio::test]
async fn a_vendor_that_hangs_is_given_up_at_the_time_limit() {
    let house = House::build_with(Memory::Sqlite, &["--grace", "1", "--time-limit", "2"]).await;
    let run = house.put("native", "hanging", 3_600_000).await;
    let ended = house.until(&run, &["needs_recovery"]).await;
    assert_eq!(
        (&ended["doubts"][0]["address"], &ended["cancel_requested"]),
        (&json!("ledger_object.it"), &json!(true))
    );
    let body = json!({"answers": {"ledger_object.it": "absent"}});
    house.landform().call("POST", &format!("/v1/runs/{run}/recover"), Some(body)).await.unwrap();
    house.until(&run, &["cancelled"]).await;
}

#[tokio::test]
async fn a_body_of_a_hundred_megabytes_and_a_slow_client_cost_nothing() {
    let house = House::build(Memory::Sqlite).await;
    let resident = |pid: u32| -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap().to_owned();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let before = resident(house.landform().pid());
    let address = house.landform().base().trim_start_matches("http://").to_owned();
    let mut slow = Vec::new();
    for _ in 0..20 {
        let mut client = tokio::net::TcpStream::connect(&address).await.unwrap();
        client.write_all(b"PUT /v1/tenants/acme HTTP/1.1\r\nhost: x\r\ncontent-le").await.unwrap();
        slow.push(client);
    }
    let mut client = tokio::net::TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "PUT /v1/tenants/acme/deployments/site HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: 104857600\r\n\r\n",
        std::fs::read_to_string(house.setup.data.join("admin.token")).unwrap().trim()
    );
    client.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..100 {
        // The server says no and hangs up while we still send.
        if client.write_all(&vec![b' '; 1 << 20]).await.is_err() {
            break;
        }
    }
    let mut answer = Vec::new();
    let _ = client.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 413"), "{answer}");
    let after = resident(house.landform().pid());
    assert!(after < before + (50 << 10), "{before} kB became {after} kB");
    house.landform().call("PUT", "/v1/tenants/acme", Some(json!({}))).await.unwrap();
}

#[tokio::test]
async fn a_work_folder_that_cannot_be_written_fails_the_run_before_its_apply() {
    let house = House::build(Memory::Sqlite).await;
    let runs = house.setup.data.join("worker/runs");
    // The door is open before the worker has begun: a run that ended shows that it has.
    let run = house.put("native", "earlier", 0).await;
    house.settle(&run, "earlier").await;
    let made = || landform_testkit::ledger::read(&house.ledger()).unwrap().objects.len();
    let before = made();
    std::fs::remove_dir_all(&runs).unwrap();
    std::fs::write(&runs, "a file where a folder should be").unwrap();
    let run = house.put("native", "site", 0).await;
    let ended = house.until(&run, &["failed"]).await;
    assert_eq!(ended["problem"]["code"], "run_broken", "{ended}");
    assert_eq!(made(), before);
    std::fs::remove_file(&runs).unwrap();
    std::fs::create_dir(&runs).unwrap();
    let run = house.put("native", "site", 0).await;
    house.settle(&run, "site").await;
}
