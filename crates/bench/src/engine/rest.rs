//! Runs through the front door: one new deployment with one `time_static` each.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use landform_testkit::landform::{Landform, Setup, answer};
use serde_json::json;

use crate::Options;
use crate::runs::Job;
use crate::stage::{TEMPLATE, program};

pub async fn serve(data: &Path, mirror: &Path, workers: usize) -> Result<Landform> {
    let setup = Setup {
        binary: program("landform")?,
        data: data.to_owned(),
        database: None,
        providers: mirror.to_owned(),
        tofu: None,
        workers,
        more: Vec::new(),
    };
    let landform = Landform::start(&setup).await?;
    landform.call("PUT", "/v1/tenants/bench", Some(json!({}))).await?;
    Ok(landform)
}

/// A server with the template, and what is done there again and again.
pub async fn runs(options: &Options, mirror: &Path, folder: &Path) -> Result<Job> {
    std::fs::create_dir_all(folder)?;
    let landform = Arc::new(serve(folder, mirror, options.workers).await?);
    landform.push_template("bench", &[("main.tf", TEMPLATE)]).await?;
    // The first run prepares the template; it is not what is measured.
    one(&landform, 0).await?;
    Ok(Box::new(move |number| {
        let landform = landform.clone();
        Box::pin(async move { one(&landform, number).await })
    }))
}

/// A new deployment, from the request to its outputs.
async fn one(landform: &Landform, number: u64) -> Result<()> {
    let path = format!("/v1/tenants/bench/deployments/d{number}");
    let body = json!({"template": "bench", "engine": "native", "inputs": {"event": number.to_string()}});
    let request = landform.request(reqwest::Method::PUT, &path).header("prefer", "wait=60").json(&body);
    let ended = answer(request).await?;
    ensure!(ended["run"]["status"] == "succeeded" && ended["outputs"]["at"]["value"].is_string(), "{ended}");
    Ok(())
}
