//! The vendor's own Go client is the judge.

use std::process::{Command, Output};

use landform_sim::Limits;
use landform_testkit::parts;

use crate::Cato;

fn passed(output: Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_vendors_client_creates_reads_updates_and_deletes_everything() {
    let cato = Cato::start(Limits::none()).await;
    let check = parts::vendor_check("cato").join("check");
    let endpoint = cato.endpoint();
    let output = tokio::task::spawn_blocking(move || Command::new(check).args(["walk", &endpoint]).output());
    passed(output.await.expect("no panic").expect("the check starts"));
    assert_eq!(cato.control("ledger").await, serde_json::json!({"accounts": {}}));
}

#[test]
fn the_schema_is_the_vendors() {
    let folder = parts::vendor_check("cato");
    let ours = concat!(env!("CARGO_MANIFEST_DIR"), "/src/cato/schema.graphql");
    let output =
        Command::new(folder.join("check")).args(["schema", ours]).arg(folder.join("cato_api.graphqls")).output();
    passed(output.expect("the check starts"));
}
