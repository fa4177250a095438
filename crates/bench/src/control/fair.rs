//! One tenant queues thousands of runs; another's single ones are measured before and meanwhile.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use landform_testkit::figures::{Times, cores};
use landform_testkit::landform::{Landform, answer};
use serde_json::json;

use crate::stage::{Kind, Place, TEMPLATE, TEMPLATE_NAME};
use crate::{Figure, Options};

const QUEUED: usize = 10_000;
const MEASURED: usize = 200;

pub async fn measure(options: &Options, kind: Kind) -> Result<Vec<Figure>> {
    let place = Place::make(kind).await?;
    // As many runs at once as there are cores: with more, everybody's runs share them, and that is no matter of order.
    let landform = Landform::start(&place.setup(cores(), &[])?).await?;
    landform.push_template(TEMPLATE_NAME, &[("main.tf", TEMPLATE)]).await?;
    for tenant in ["many", "few"] {
        landform.call("PUT", &format!("/v1/tenants/{tenant}"), Some(json!({}))).await?;
    }
    let measured = options.scaled(MEASURED, 50);
    // The first ones find caches empty.
    one_by_one(&landform, "warm", 20).await?;
    let alone = one_by_one(&landform, "alone", measured).await?;
    let queued = options.scaled(QUEUED, 1000);
    eprintln!("fair, {}: {queued} runs of one tenant …", kind.name());
    landform.call("POST", "/v1/tenants/many/pause", None).await?;
    queue(&landform, queued).await?;
    landform.call("POST", "/v1/tenants/many/resume", None).await?;
    let beside = one_by_one(&landform, "beside", measured).await?;
    let left = landform.call("GET", "/v1/runs?tenant=many&status=queued&limit=1", None).await?;
    let still = left["runs"].as_array().is_some_and(|runs| !runs.is_empty());
    let ratio = beside.percentile(0.95) / alone.percentile(0.95);
    Ok(vec![Figure {
        what: format!("another tenant's p95 while one has queued {queued} runs"),
        store: kind.name(),
        measured: format!(
            "{ratio:.1} × ({:.0} ms alone, {:.0} ms beside{})",
            alone.percentile(0.95),
            beside.percentile(0.95),
            if still { "" } else { ", and the others were done before the end" }
        ),
        goal: "at most 2 ×",
        held: ratio <= 2.0 && still,
    }])
}

async fn queue(landform: &Landform, runs: usize) -> Result<()> {
    for batch in (0..runs).collect::<Vec<_>>().chunks(1000) {
        let lines: String = batch
            .iter()
            .map(|number| {
                let spec = json!({"template": TEMPLATE_NAME, "engine": "native", "inputs": {"event": "x"}});
                format!(
                    "{}\n",
                    json!({"method": "put", "tenant": "many", "deployment": format!("d{number}"), "spec": spec})
                )
            })
            .collect();
        let request =
            landform.request(reqwest::Method::POST, "/v1/batch").header("content-type", "application/x-ndjson");
        let answer = request.body(lines).send().await?.error_for_status()?.text().await?;
        ensure!(answer.lines().count() == batch.len() && !answer.contains("\"error\""), "{answer:.500}");
    }
    Ok(())
}

/// From the request to the outputs.
async fn one_by_one(landform: &Landform, name: &str, runs: usize) -> Result<Times> {
    let mut times: Vec<Duration> = Vec::with_capacity(runs);
    for number in 0..runs {
        let path = format!("/v1/tenants/few/deployments/{name}{number}");
        let body = json!({"template": TEMPLATE_NAME, "engine": "native", "inputs": {"event": number.to_string()}});
        let begin = Instant::now();
        let ended =
            answer(landform.request(reqwest::Method::PUT, &path).header("prefer", "wait=60").json(&body)).await?;
        ensure!(ended["run"]["status"] == "succeeded", "{ended}");
        times.push(begin.elapsed());
    }
    Ok(Times::new(times))
}
