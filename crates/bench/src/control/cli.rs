//! The `cli` engine against the established way, a dispatcher on terraform-exec: the same template, the same number of
//! workers, one new deployment with one `time_static` a run.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use landform_testkit::figures::Times;
use landform_testkit::landform::{Landform, answer};
use landform_testkit::parts;
use serde_json::{Value, json};

use crate::stage::{Kind, Place};
use crate::{Figure, Options};

const TEMPLATE: &str = include_str!("../../../../bench/template/main.tf");
const WORKERS: usize = 2;
const SECONDS: f64 = 20.0;

/// Runs a minute, and half of them take no longer than so many milliseconds.
struct Rate {
    per_minute: f64,
    p50: f64,
}

pub async fn measure(options: &Options, kind: Kind) -> Result<Vec<Figure>> {
    let Some(program) = &options.peer else {
        eprintln!("NOT MEASURED: the cli engine against terraform-exec; --peer names that program");
        return Ok(Vec::new());
    };
    let seconds = (SECONDS * options.size).max(5.0);
    let peer = terraform_exec(program, seconds)?;
    let mut figures = Vec::new();
    for (what, more, goal, least) in
        [("plan kept", &["--keep-plans"][..], "1.3 ×", 1.3), ("plan and apply in one", &[][..], "2 ×", 2.0)]
    {
        eprintln!("cli, {}, {what} …", kind.name());
        let own = cli(kind, more, seconds).await?;
        let ratio = own.per_minute / peer.per_minute;
        figures.push(Figure {
            what: format!("`cli` engine against terraform-exec, {WORKERS} workers, {what}"),
            store: kind.name(),
            measured: format!(
                "{ratio:.2} × ({:.0} a minute, p50 {:.0} ms; terraform-exec {:.0}, {:.0} ms)",
                own.per_minute, own.p50, peer.per_minute, peer.p50
            ),
            goal,
            held: ratio >= least,
        });
    }
    Ok(figures)
}

fn terraform_exec(program: &Path, seconds: f64) -> Result<Rate> {
    let folder = tempfile::tempdir()?;
    let (config, template) = (folder.path().join("cli.tfrc"), folder.path().join("main.tf"));
    let mirror = parts::mirror();
    std::fs::write(&template, TEMPLATE)?;
    std::fs::write(
        &config,
        format!("provider_installation {{\n  filesystem_mirror {{\n    path = {:?}\n  }}\n}}\n", mirror.display()),
    )?;
    eprintln!("cli, terraform-exec …");
    let output = Command::new(program)
        .arg("-tofu")
        .arg(parts::tofu())
        .arg("-config")
        .arg(&config)
        .arg("-template")
        .arg(&template)
        .args(["-workers", &WORKERS.to_string(), "-seconds", &format!("{seconds:.0}")])
        .output()
        .context("starting the terraform-exec program")?;
    ensure!(output.status.success(), "terraform-exec: {}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout)?;
    let number = |name: &'static str| result[name].as_f64().context(name);
    Ok(Rate { per_minute: number("runs")? / number("seconds")? * 60.0, p50: number("p50")? * 1000.0 })
}

async fn cli(kind: Kind, more: &[&str], seconds: f64) -> Result<Rate> {
    let place = Place::make(kind).await?;
    let mut setup = place.setup(WORKERS, more)?;
    setup.tofu = Some(parts::tofu());
    let landform = Arc::new(Landform::start(&setup).await?);
    landform.call("PUT", "/v1/tenants/bench", Some(json!({}))).await?;
    landform.push_template("bench", &[("main.tf", TEMPLATE)]).await?;
    // The first run prepares the template; it is not what is measured.
    one(&landform, 0).await?;
    let next = Arc::new(AtomicU64::new(1));
    let begin = Instant::now();
    let deadline = begin + Duration::from_secs_f64(seconds);
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..WORKERS {
        let (landform, next) = (landform.clone(), next.clone());
        clients.spawn(async move {
            let mut times = Vec::new();
            while Instant::now() < deadline {
                let started = Instant::now();
                one(&landform, next.fetch_add(1, Ordering::Relaxed)).await?;
                times.push(started.elapsed());
            }
            anyhow::Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(client) = clients.join_next().await {
        times.extend(client??);
    }
    let per_minute = times.len() as f64 / begin.elapsed().as_secs_f64() * 60.0;
    Ok(Rate { per_minute, p50: Times::new(times).percentile(0.5) })
}

/// A new deployment, from the request to its outputs.
async fn one(landform: &Landform, number: u64) -> Result<()> {
    let path = format!("/v1/tenants/bench/deployments/d{number}");
    let body = json!({"template": "bench", "engine": "cli", "inputs": {"event": number.to_string()}});
    let request = landform.request(reqwest::Method::PUT, &path).header("prefer", "wait=60").json(&body);
    let ended = answer(request).await?;
    ensure!(ended["run"]["status"] == "succeeded" && ended["outputs"]["at"]["value"].is_string(), "{ended}");
    Ok(())
}
