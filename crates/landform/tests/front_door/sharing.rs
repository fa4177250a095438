//! Runs that share configured provider processes, through the server and on a machine without any CLI.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use landform_protocol::wire::Version;
use landform_testkit::landform::{Landform, Setup, answer};
use landform_testkit::probe::{self, world};
use reqwest::Method;
use serde_json::{Value, json};

use crate::binary;

const TEMPLATE: &str = r#"
terraform {
  required_providers {
    probe = { source = "landform/probe" }
  }
}
variable "region" { type = string }
variable "ledger" { type = string }
provider "probe" {
  ledger = var.ledger
  region = var.region
}
data "probe_where" "asked" {}
resource "probe_object" "made" { name = "of ${var.region}" }
output "asked" { value = data.probe_where.asked.region }
output "made" { value = probe_object.made.region }
output "id" { value = probe_object.made.id }
output "process" { value = data.probe_where.asked.process }
"#;

const RUNS: usize = 64;
const CONFIGURATIONS: usize = 16;

/// A server whose probe is known to be safe to share; no `tofu` is anywhere.
async fn serve(data: &Path) -> Landform {
    let mirror = data.join("mirror");
    probe::install(&mirror, Version::V6).unwrap();
    let share = format!("{}@{}", probe::source(Version::V6), probe::VERSION);
    let setup = Setup {
        binary: binary(),
        data: data.to_owned(),
        database: None,
        providers: mirror,
        tofu: Some(data.join("no-tofu-here")),
        workers: CONFIGURATIONS,
        more: vec!["--share-provider".to_owned(), share],
    };
    let landform = Landform::start(&setup).await.unwrap();
    landform.call("PUT", "/v1/tenants/acme", Some(json!({}))).await.unwrap();
    landform.push_template("it", &[("main.tf", TEMPLATE)]).await.unwrap();
    landform
}

async fn put(landform: &Landform, name: &str, region: &str, ledger: &Path) -> Value {
    let inputs = json!({"region": region, "ledger": ledger.display().to_string()});
    let body = json!({"template": "it", "engine": "auto", "inputs": inputs});
    let path = format!("/v1/tenants/acme/deployments/{name}");
    let request = landform.request(Method::PUT, &path).header("prefer", "wait=120").json(&body);
    answer(request).await.unwrap()
}

/// The same again, without a change of what is wanted.
async fn again(landform: &Landform, name: &str) -> Value {
    let path = format!("/v1/tenants/acme/deployments/{name}/runs");
    answer(landform.request(Method::POST, &path).header("prefer", "wait=120").json(&json!({}))).await.unwrap()
}

fn output(ended: &Value, name: &str) -> String {
    let value = &ended["outputs"][name]["value"];
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_ever_comes_from_another_configuration_and_none_from_memory() {
    let data = tempfile::tempdir().unwrap();
    let landform = Arc::new(serve(data.path()).await);
    let ledger = data.path().join("ledger");
    let mut runs = tokio::task::JoinSet::new();
    for number in 0..RUNS {
        let (landform, ledger) = (landform.clone(), ledger.clone());
        runs.spawn(async move {
            let region = format!("region {}", number % CONFIGURATIONS);
            let ended = put(&landform, &format!("d{number}"), &region, &ledger).await;
            assert_eq!(ended["run"]["status"], "succeeded", "{ended}");
            assert_eq!(ended["run"]["engine"], "native", "{ended}");
            assert_eq!((output(&ended, "asked"), output(&ended, "made")), (region.clone(), region.clone()));
            (output(&ended, "process"), region)
        });
    }
    let answers = runs.join_all().await;
    let by_process: BTreeMap<&String, &String> = answers.iter().map(|(process, region)| (process, region)).collect();
    for (process, region) in &answers {
        assert_eq!(by_process[process], region, "a process has one configuration");
    }
    assert!(by_process.len() < RUNS, "runs of the same configuration do share");
    assert_eq!(by_process.values().collect::<BTreeSet<_>>().len(), CONFIGURATIONS);

    // Behind the back of a warm process, an object gets another name, and is gone at last.
    // Its process may have made room for others by now. Then another one answers, and its name is an output that changes.
    again(&landform, "d0").await;
    let quiet = again(&landform, "d0").await;
    assert_eq!(quiet["run"]["status"], "unchanged", "{quiet}");
    let id = output(&quiet, "id");
    let mut attributes = world::objects(&ledger).unwrap()[&id].attributes.clone();
    attributes["name"] = json!("of somebody else");
    append(&ledger, &world::Change::Update { id: id.clone(), attributes });
    let healed = again(&landform, "d0").await;
    assert_eq!(healed["run"]["status"], "succeeded", "{healed}");
    assert_eq!(world::objects(&ledger).unwrap()[&id].attributes["name"], "of region 0");
    append(&ledger, &world::Change::Delete { id: id.clone() });
    let made_again = again(&landform, "d0").await;
    assert_eq!(made_again["run"]["status"], "succeeded", "{made_again}");
    assert_ne!(output(&made_again, "id"), id);
    assert_eq!(world::objects(&ledger).unwrap().len(), RUNS);
}

fn append(ledger: &Path, change: &world::Change) {
    let mut text = std::fs::read_to_string(ledger).unwrap();
    text += &serde_json::to_string(change).unwrap();
    text.push('\n');
    std::fs::write(ledger, text).unwrap();
}
