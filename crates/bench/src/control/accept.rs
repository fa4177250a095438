//! Writes of deployments through REST. Runs are paused, so that accepting is all that happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use landform_testkit::figures::Times;
use landform_testkit::landform::{Landform, answer};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::stage::{Kind, Place, TEMPLATE, TEMPLATE_NAME, tenant_name};
use crate::{Figure, Options};

const WRITES: usize = 5000;
const TENANTS: usize = 50;
const CLIENTS: usize = 32;

pub async fn measure(options: &Options, kind: Kind) -> Result<Vec<Figure>> {
    let place = Place::make(kind).await?;
    let landform = Arc::new(Landform::start(&place.setup(2, &[])?).await?);
    landform.push_template(TEMPLATE_NAME, &[("main.tf", TEMPLATE)]).await?;
    for tenant in 0..TENANTS {
        landform.call("PUT", &format!("/v1/tenants/{}", tenant_name(tenant)), Some(json!({}))).await?;
    }
    landform.call("POST", "/v1/pause", None).await?;
    let writes = options.scaled(WRITES, 200);
    eprintln!("accept, {}: {writes} writes at {WRITES} a minute …", kind.name());
    let (times, lost) = open_loop(&landform, writes).await?;
    let p99 = times.percentile(0.99);
    let ceiling = ceiling(&landform, Duration::from_secs_f64((20.0 * options.size).clamp(3.0, 20.0))).await?;
    Ok(vec![
        Figure {
            what: format!("accept {writes} deployment writes at {WRITES} a minute, open loop"),
            store: kind.name(),
            measured: format!("p99 {p99:.1} ms (p50 {:.1} ms), {lost} lost", times.percentile(0.5)),
            goal: "p99 < 100 ms, none lost",
            held: p99 < 100.0 && lost == 0,
        },
        Figure {
            what: format!("the ceiling of accepting, {CLIENTS} clients"),
            store: kind.name(),
            measured: format!("{:.0} a minute", ceiling * 60.0),
            goal: "more than 5,000 a minute",
            held: ceiling * 60.0 > WRITES as f64,
        },
    ])
}

/// Each request goes out at its time, whatever became of those before it, and its wait counts from that time.
async fn open_loop(landform: &Arc<Landform>, writes: usize) -> Result<(Times, usize)> {
    let (begin, between) = (Instant::now(), Duration::from_secs(60) / WRITES as u32);
    let mut requests = JoinSet::new();
    for number in 0..writes {
        let due = begin + between * number as u32;
        tokio::time::sleep_until(due.into()).await;
        let landform = landform.clone();
        requests.spawn(async move {
            let run = write(&landform, "open", number).await?;
            anyhow::Ok((due.elapsed(), run))
        });
    }
    let (mut times, mut runs) = (Vec::new(), Vec::new());
    while let Some(request) = requests.join_next().await {
        let (time, run) = request??;
        times.push(time);
        runs.push(run);
    }
    let mut lost = 0;
    for run in runs {
        lost += usize::from(landform.call("GET", &format!("/v1/runs/{run}"), None).await.is_err());
    }
    Ok((Times::new(times), lost))
}

/// Writes a second when every client sends the next as soon as it has the answer.
async fn ceiling(landform: &Arc<Landform>, time: Duration) -> Result<f64> {
    let (next, begin) = (Arc::new(AtomicUsize::new(0)), Instant::now());
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (landform, next) = (landform.clone(), next.clone());
        clients.spawn(async move {
            while begin.elapsed() < time {
                write(&landform, "closed", next.fetch_add(1, Ordering::Relaxed)).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(client) = clients.join_next().await {
        client??;
    }
    Ok(next.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64())
}

/// A new deployment; the answer's run.
async fn write(landform: &Landform, name: &str, number: usize) -> Result<String> {
    let path = format!("/v1/tenants/{}/deployments/{name}{number}", tenant_name(number % TENANTS));
    let body = json!({"template": TEMPLATE_NAME, "engine": "native", "inputs": {"event": number.to_string()}});
    let accepted: Value = answer(landform.request(reqwest::Method::PUT, &path).json(&body)).await?;
    ensure!(accepted["run"]["status"] == "queued", "{accepted}");
    Ok(accepted["run"]["id"].as_str().context("a run has an id")?.to_owned())
}
