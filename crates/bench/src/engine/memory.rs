//! What a run under way adds to the server's memory: many runs wait for a slow object at one time.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use landform_testkit::figures::resident_mb;
use landform_testkit::landform::Landform;
use landform_testkit::parts;
use serde_json::json;

use crate::rest::serve;
use crate::{Figure, Options};

const SLOW: &str = r#"
terraform {
  required_providers {
    time = {
      source = "hashicorp/time"
    }
  }
}

variable "seconds" {
  type = number
}

resource "time_sleep" "this" {
  create_duration = "${var.seconds}s"
}
"#;

const PATIENCE: u32 = 600;

pub async fn measure(options: &Options) -> Result<Vec<Figure>> {
    eprintln!("measuring the memory of {} runs at one time …", options.concurrent);
    let folder = tempfile::tempdir()?;
    let landform = Arc::new(serve(folder.path(), &parts::mirror(), options.concurrent).await?);
    landform.push_template("slow", &[("main.tf", SLOW)]).await?;
    // Once over, so that what the server keeps for good is not counted as the runs'.
    start(&landform, "warm", options.concurrent, 0).await?;
    until(&landform, "succeeded", options.concurrent).await?;
    let before = resident_mb(landform.pid())?;
    start(&landform, "slow", options.concurrent, 30).await?;
    until(&landform, "applying", options.concurrent).await?;
    let during = resident_mb(landform.pid())?;
    let each = (during - before) / options.concurrent as f64;
    Ok(vec![Figure {
        what: format!("memory for each of {} runs at one time", options.concurrent),
        measured: format!("{each:.2} MB ({before:.0} MB before, {during:.0} MB with all of them)"),
        goal: "< 10 MB".to_owned(),
        held: each < 10.0,
    }])
}

async fn start(landform: &Landform, name: &str, runs: usize, seconds: u64) -> Result<()> {
    for number in 0..runs {
        let body = json!({"template": "slow", "engine": "native", "inputs": {"seconds": seconds}});
        landform.call("PUT", &format!("/v1/tenants/bench/deployments/{name}{number}"), Some(body)).await?;
    }
    Ok(())
}

/// Waits until at least so many runs have this status.
async fn until(landform: &Landform, status: &str, runs: usize) -> Result<()> {
    for _ in 0..PATIENCE {
        let answer = landform.call("GET", &format!("/v1/runs?status={status}&limit=100"), None).await?;
        if answer["runs"].as_array().map_or(0, Vec::len) >= runs {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    bail!("{runs} runs were not {status} in time")
}
