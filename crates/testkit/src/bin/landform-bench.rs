//! Runs per minute, in one run on one machine: the established way (a terraform-exec dispatcher), Landform with its
//! `cli` engine (with and without a kept plan) and Landform with its `native` engine. Landform is measured through REST with every promise on:
//! journal, fencing, sealing, commits flushed to disk. Each run is a new deployment with one `time_static`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use landform_testkit::figures::{cores, cpu_seconds, fsync_millis};
use landform_testkit::landform::{Landform, Setup, answer};
use landform_testkit::parts;
use serde_json::{Value, json};

const TEMPLATE: &str = include_str!("../../../../bench/template/main.tf");

#[derive(Parser)]
struct Options {
    /// How long each candidate takes new work.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// The terraform-exec program.
    #[arg(long)]
    peer: PathBuf,
    /// Workers of every candidate, and clients that wait for Landform's answers.
    #[arg(long, default_value_t = 2)]
    workers: usize,
}

struct Figure {
    name: &'static str,
    runs: usize,
    seconds: f64,
    p50: f64,
    cpu: Option<f64>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    let figures = [
        peer(&options)?,
        landform(&options, "landform, engine cli, plan kept", "cli", &["--keep-plans"]).await?,
        landform(&options, "landform, engine cli", "cli", &[]).await?,
        landform(&options, "landform, engine native", "native", &[]).await?,
    ];
    println!("{} cores, {} workers, {} s each, one new time_static a run", cores(), options.workers, options.seconds);
    println!("flushing 4 KiB to this disk takes {:.2} ms (median)", fsync_millis()?);
    println!("| candidate | runs/min | against terraform-exec | p50 | CPU a run |\n|---|---|---|---|---|");
    let base = figures[0].runs as f64 / figures[0].seconds;
    for figure in &figures {
        let rate = figure.runs as f64 / figure.seconds;
        let cpu = figure.cpu.map_or("not measured".to_owned(), |cpu| format!("{:.0} ms", cpu * 1000.0));
        let (per_minute, millis) = (rate * 60.0, figure.p50 * 1000.0);
        println!("| {} | {per_minute:.0} | {:.1} × | {millis:.0} ms | {cpu} |", figure.name, rate / base);
    }
    println!("reproduce with: cargo xtask bench --seconds {}", options.seconds);
    Ok(())
}

fn peer(options: &Options) -> Result<Figure> {
    let folder = tempfile::tempdir()?;
    let (config, template) = (folder.path().join("cli.tfrc"), folder.path().join("main.tf"));
    let mirror = parts::mirror();
    std::fs::write(&template, TEMPLATE)?;
    std::fs::write(
        &config,
        format!("provider_installation {{\n  filesystem_mirror {{\n    path = {:?}\n  }}\n}}\n", mirror.display()),
    )?;
    eprintln!("measuring terraform-exec …");
    let output = Command::new(&options.peer)
        .arg("-tofu")
        .arg(parts::tofu())
        .arg("-config")
        .arg(&config)
        .arg("-template")
        .arg(&template)
        .args(["-workers", &options.workers.to_string(), "-seconds", &options.seconds.to_string()])
        .output()
        .context("starting the terraform-exec program")?;
    ensure!(output.status.success(), "terraform-exec: {}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout)?;
    Ok(Figure {
        name: "terraform-exec",
        runs: result["runs"].as_u64().context("runs")? as usize,
        seconds: result["seconds"].as_f64().context("seconds")?,
        p50: result["p50"].as_f64().context("p50")?,
        cpu: None,
    })
}

async fn landform(options: &Options, name: &'static str, engine: &'static str, more: &[&str]) -> Result<Figure> {
    let folder = tempfile::tempdir()?;
    let beside = std::env::current_exe()?.parent().map(Path::to_owned).context("a folder")?;
    let setup = Setup {
        binary: beside.join("landform"),
        data: folder.path().to_owned(),
        database: None,
        providers: parts::mirror(),
        tofu: Some(parts::tofu()),
        workers: options.workers,
        more: more.iter().map(|argument| (*argument).to_owned()).collect(),
    };
    eprintln!("measuring {name} …");
    let landform = Arc::new(Landform::start(&setup).await?);
    landform.call("PUT", "/v1/tenants/bench", Some(json!({}))).await?;
    landform.push_template("bench", &[("main.tf", TEMPLATE)]).await?;
    // The first run prepares the template; it is not what is measured.
    one(&landform, engine, 0).await?;
    let (next, latencies) = (Arc::new(AtomicU64::new(1)), Arc::new(Mutex::new(Vec::new())));
    let (begin, cpu_before) = (Instant::now(), cpu_seconds(landform.pid())?);
    let deadline = begin + Duration::from_secs(options.seconds);
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..options.workers {
        let (landform, next, latencies) = (landform.clone(), next.clone(), latencies.clone());
        clients.spawn(async move {
            while Instant::now() < deadline {
                let started = Instant::now();
                one(&landform, engine, next.fetch_add(1, Ordering::Relaxed)).await?;
                latencies.lock().expect("no client panics").push(started.elapsed().as_secs_f64());
            }
            anyhow::Ok(())
        });
    }
    while let Some(client) = clients.join_next().await {
        client??;
    }
    let (seconds, cpu) = (begin.elapsed().as_secs_f64(), cpu_seconds(landform.pid())? - cpu_before);
    let mut latencies = std::mem::take(&mut *latencies.lock().expect("no client panics"));
    latencies.sort_by(f64::total_cmp);
    let runs = latencies.len();
    Ok(Figure { name, runs, seconds, p50: latencies[runs / 2], cpu: Some(cpu / runs as f64) })
}

/// A new deployment, from the request to its outputs.
async fn one(landform: &Landform, engine: &str, number: u64) -> Result<()> {
    let path = format!("/v1/tenants/bench/deployments/d{number}");
    let body = json!({"template": "bench", "engine": engine, "inputs": {"event": number.to_string()}});
    let request = landform.request(reqwest::Method::PUT, &path).header("prefer", "wait=60").json(&body);
    let ended = answer(request).await?;
    ensure!(ended["run"]["status"] == "succeeded" && ended["outputs"]["at"]["value"].is_string(), "{ended}");
    Ok(())
}
