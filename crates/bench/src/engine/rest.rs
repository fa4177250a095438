//! Runs per minute: one new deployment with one `time_static` each.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use landform_runner::known::KnownProviders;
use landform_testkit::figures::{Times, cpu_seconds};
use landform_testkit::landform::{Landform, Setup, answer};
use landform_testkit::parts;
use serde_json::{Value, json};

use crate::stage::{Desk, TEMPLATE, program, providers, unshared_mirror};
use crate::{Figure, Options, alone};

/// Work done by several at one time.
pub struct Rate {
    pub per_minute: f64,
    pub p50: f64,
}

/// Repeats `one` on so many tasks for so long.
pub async fn rate<F: Future<Output = Result<()>> + Send + 'static>(
    options: &Options,
    one: impl Fn(u64) -> F + Send + Sync + 'static,
) -> Result<Rate> {
    let (one, next) = (Arc::new(one), Arc::new(AtomicU64::new(1)));
    let begin = Instant::now();
    let deadline = begin + Duration::from_secs(options.seconds);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..options.workers {
        let (one, next) = (one.clone(), next.clone());
        tasks.spawn(async move {
            let mut times = Vec::new();
            while Instant::now() < deadline {
                let started = Instant::now();
                one(next.fetch_add(1, Ordering::Relaxed)).await?;
                times.push(started.elapsed());
            }
            anyhow::Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(task) = tasks.join_next().await {
        times.extend(task??);
    }
    let per_minute = times.len() as f64 / begin.elapsed().as_secs_f64() * 60.0;
    Ok(Rate { per_minute, p50: Times::new(times).percentile(0.5) })
}

pub async fn measure(options: &Options) -> Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let unshared = unshared_mirror(folder.path())?;
    let peer = peer(options)?;
    let shared_rest = through_rest(options, &parts::mirror()).await?;
    let desk = |mirror: &Path| Desk::new(providers(mirror, KnownProviders::listed()), TEMPLATE);
    let shared_alone = alone::runs(options, desk(&parts::mirror())?).await?;
    let own_rest = through_rest(options, &unshared).await?;
    let own_alone = alone::runs(options, desk(&unshared)?).await?;
    let floor = alone::floor(options).await?;
    let certified = alone::floor_with_certificate(options).await?;
    let row = |what: &str, rate: &Rate, times: f64| {
        let ratio = rate.per_minute / peer.per_minute;
        Figure {
            what: what.to_owned(),
            measured: format!("{:.0}/min = {ratio:.1} ×, p50 {:.0} ms", rate.per_minute, rate.p50),
            goal: format!("≥ {times:.0} × terraform-exec"),
            held: ratio >= times,
        }
    };
    let share = own_alone.per_minute / floor.per_minute;
    Ok(vec![
        Figure::base("terraform-exec", format!("{:.0}/min, p50 {:.0} ms", peer.per_minute, peer.p50)),
        row("through REST, process shared", &shared_rest, 30.0),
        row("engine alone, process shared", &shared_alone, 50.0),
        row("through REST, a process for each run", &own_rest, 15.0),
        row("engine alone, a process for each run", &own_alone, 15.0),
        Figure {
            what: "the same against the floor (spawn, handshake, configure, exit)".to_owned(),
            measured: format!("{:.0} % of {:.0}/min", share * 100.0, floor.per_minute),
            goal: "≥ 70 %".to_owned(),
            held: share >= 0.7,
        },
        Figure::base(
            "a start as OpenTofu's, where the provider makes a certificate: up to its greeting alone",
            format!("{:.0}/min", certified.per_minute),
        ),
    ])
}

fn peer(options: &Options) -> Result<Rate> {
    let folder = tempfile::tempdir()?;
    let (config, template) = (folder.path().join("cli.tfrc"), folder.path().join("main.tf"));
    std::fs::write(&template, TEMPLATE)?;
    let mirror = parts::mirror();
    let text =
        format!("provider_installation {{\n  filesystem_mirror {{\n    path = {:?}\n  }}\n}}\n", mirror.display());
    std::fs::write(&config, text)?;
    eprintln!("measuring terraform-exec …");
    let mut command = Command::new(&options.peer);
    command.arg("-tofu").arg(parts::tofu()).arg("-config").arg(&config).arg("-template").arg(&template);
    command.args(["-workers", &options.workers.to_string(), "-seconds", &options.seconds.to_string()]);
    let output = command.output().context("starting the terraform-exec program")?;
    ensure!(output.status.success(), "terraform-exec: {}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout)?;
    let number = |name: &str| result[name].as_f64().with_context(|| name.to_owned());
    Ok(Rate { per_minute: number("runs")? / number("seconds")? * 60.0, p50: number("p50")? * 1000.0 })
}

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

async fn through_rest(options: &Options, mirror: &Path) -> Result<Rate> {
    eprintln!("measuring the native engine through REST …");
    let folder = tempfile::tempdir()?;
    let landform = Arc::new(serve(folder.path(), mirror, options.workers).await?);
    landform.push_template("bench", &[("main.tf", TEMPLATE)]).await?;
    // The first run prepares the template; it is not what is measured.
    one(&landform, 0).await?;
    let before = cpu_seconds(landform.pid())?;
    let driven = landform.clone();
    let rate = rate(options, move |number| {
        let landform = driven.clone();
        async move { one(&landform, number).await }
    })
    .await?;
    let runs = rate.per_minute * options.seconds as f64 / 60.0;
    let cpu = (cpu_seconds(landform.pid())? - before) * 1000.0 / runs;
    eprintln!("  {cpu:.1} ms of the server's CPU a run, without that of living providers");
    Ok(rate)
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
