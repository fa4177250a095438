//! A process dies while a task that it has asked for goes on at the vendor.

use std::time::Duration;

use landform_sim::Vendor;
use landform_testkit::landform::Landform;
use serde_json::{Value, json};

use crate::gateway::{expect_branches, recover, until};
use crate::versa::{SITE, login};
use crate::{Scene, mirror_of_built_in, status, vendor};

/// Long enough to be killed in.
const TASK: Duration = Duration::from_secs(2);

async fn scene() -> Scene {
    let director = vendor(Vendor::Versa, TASK).await;
    let variables = login(&director);
    Scene::set(director, SITE, variables, mirror_of_built_in).await
}

async fn until_asked_for(scene: &Scene, task: &str) {
    until(task, async || scene.calls().await["totals"][task]["answered"].as_u64()).await;
}

/// Providers for Versa that were started by this process, or by one that it has started.
fn providers_below(pid: u32) -> Vec<u32> {
    let read = |pid: u32, file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let parent = |pid: u32| read(pid, "stat").rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_provider = |of: &u32| read(*of, "cmdline").contains("terraform-provider-versa");
    let is_below = |of: &u32| std::iter::successors(Some(*of), |of| parent(*of)).any(|above| above == pid);
    pids.filter(|of| is_provider(of) && is_below(of)).collect()
}

#[tokio::test]
async fn a_provider_that_dies_while_the_vendor_deploys_leaves_a_question() {
    let scene = scene().await;
    let (asked, ()) = tokio::join!(scene.wish("rome", "cli", |_| ()), async {
        until_asked_for(&scene, "device.deploy").await;
        let providers = providers_below(scene.landform.pid());
        assert!(!providers.is_empty(), "the CLI has a process for it");
        for pid in providers {
            let killed = std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status();
            assert!(killed.unwrap().success());
        }
    });
    assert_eq!(status(&asked), "needs_recovery", "{asked}");
    let run = asked["run"]["id"].as_str().unwrap();
    let ended = recover(&scene, run, "rome").await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    expect_branches(&scene, 1).await;
}

#[tokio::test]
async fn a_worker_that_dies_while_the_vendor_deploys_leaves_a_question() {
    let mut scene = scene().await;
    let mut inputs: Value = serde_json::from_str(SITE.example).unwrap();
    inputs["name"] = json!("rome");
    let body = json!({"template": SITE.template, "engine": "native", "connections": ["versa"], "inputs": inputs});
    let accepted = scene.landform.call("PUT", "/v1/tenants/acme/deployments/rome", Some(body)).await.unwrap();
    // Unlike that of a template, it takes its time: whoever comes a moment later still finds it under way.
    until_asked_for(&scene, "device.deploy").await;
    scene.landform.kill_in_place().unwrap();
    scene.landform = Landform::start(&scene.setup).await.unwrap();
    let run = accepted["run"]["id"].as_str().unwrap();
    until("the question", async || {
        let now = scene.landform.call("GET", &format!("/v1/runs/{run}"), None).await.ok()?;
        assert_ne!(now["finished"], true, "{now}");
        (now["status"] == "needs_recovery").then_some(())
    })
    .await;
    let ended = recover(&scene, run, "rome").await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    expect_branches(&scene, 1).await;
}
