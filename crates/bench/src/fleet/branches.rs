//! Branches at a Versa Director: five objects each, through REST, by the provider that comes with Landform.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use landform_testkit::figures::{Times, cores, cpu_seconds};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::stage::{Fleet, Vendor, deploy, tenant};
use crate::{Figure, Options};

pub const TEMPLATE: &str = "versa-branch";

/// A branch's inputs. Names are unique at the Director.
pub fn inputs(name: &str) -> Result<Value> {
    let mut inputs: Value = serde_json::from_str(include_str!("../../../../templates/versa-branch/example.json"))?;
    inputs["name"] = name.into();
    Ok(inputs)
}

/// Every tenant has an account of its own at the Director, so that no two share a configuration.
pub fn credentials(endpoint: &str, number: usize) -> Value {
    json!({"versa_url": endpoint, "versa_username": tenant(number), "versa_password": format!("password of {number}")})
}

/// CPU time so far: Landform's, the vendor's, and this program's.
struct Spent {
    landform: f64,
    vendor: f64,
    clients: f64,
}

impl Spent {
    fn now(fleet: &Fleet, vendor: &Vendor) -> Result<Spent> {
        Ok(Spent {
            landform: cpu_seconds(fleet.landform.pid())?,
            vendor: cpu_seconds(vendor.pid())?,
            clients: cpu_seconds(std::process::id())?,
        })
    }

    /// Milliseconds for each of so many runs.
    fn since(&self, before: &Spent, runs: usize) -> Spent {
        let each = |now: f64, before: f64| (now - before) * 1000.0 / runs.max(1) as f64;
        Spent {
            landform: each(self.landform, before.landform),
            vendor: each(self.vendor, before.vendor),
            clients: each(self.clients, before.clients),
        }
    }

    fn all(&self) -> f64 {
        self.landform + self.vendor + self.clients
    }
}

/// What a run costs with more and more tenants, and the rate at the last size.
pub async fn most(options: &Options) -> Result<(Vec<Figure>, f64)> {
    let vendor = Vendor::at_once()?;
    let mut fleet = Fleet::start(options.workers, None).await?;
    fleet.push(TEMPLATE).await?;
    let (mut figures, mut costs, mut last) = (Vec::new(), Vec::new(), None);
    let mut number = 0;
    for size in &options.tenants {
        fleet.grow(*size, |number| credentials(&vendor.endpoint, number)).await?;
        let shared = Arc::new(fleet);
        // The first ones find caches empty.
        number += closed_loop(options, &shared, number, Duration::from_secs(3)).await?.len();
        eprintln!("measuring with {size} tenants …");
        let (before, begin) = (Spent::now(&shared, &vendor)?, Instant::now());
        let times = closed_loop(options, &shared, number, Duration::from_secs(options.seconds)).await?;
        number += times.len();
        let per_minute = times.len() as f64 / begin.elapsed().as_secs_f64() * 60.0;
        let spent = Spent::now(&shared, &vendor)?.since(&before, times.len());
        costs.push(spent.landform);
        figures.push(Figure {
            what: format!("{size} tenants: branches a minute, and Landform's CPU for each"),
            measured: format!("{per_minute:.0} a minute, {:.1} ms", spent.landform),
            goal: String::new(),
            held: true,
        });
        last = Some((per_minute, spent, Times::new(times)));
        fleet = Arc::into_inner(shared).context("nobody else has the fleet")?;
    }
    let (per_minute, spent, times) = last.context("no sizes")?;
    let flat = costs.last().copied().unwrap_or_default() / costs.first().copied().unwrap_or(1.0);
    figures.push(Figure {
        what: format!("cost of a run, {} tenants against {}", fleet.size(), options.tenants[0]),
        measured: format!("{flat:.2} ×"),
        goal: "flat (≤ 1.2 ×)".to_owned(),
        held: flat <= 1.2,
    });
    figures.push(Figure {
        what: "the most it sustains, vendor without limits".to_owned(),
        measured: format!("{per_minute:.0} a minute, p50 {:.0} ms", times.percentile(0.5)),
        goal: "≥ 3,000 a minute".to_owned(),
        held: per_minute >= 3_000.0,
    });
    let (all, available) = (spent.all(), cores() as f64 * 60_000.0);
    figures.push(Figure {
        what: "what stands between that and 10,000 a minute".to_owned(),
        measured: format!(
            "CPU: {:.1} ms a run for Landform, {:.1} for the vendor's stand-in, {:.1} for the clients; {:.0} % of {} cores \
             were in use; 10,000 a minute would take {:.1} cores in all, {:.1} of them for Landform",
            spent.landform,
            spent.vendor,
            spent.clients,
            all * per_minute / available * 100.0,
            cores(),
            all * 10_000.0 / 60_000.0,
            spent.landform * 10_000.0 / 60_000.0,
        ),
        goal: String::new(),
        held: true,
    });
    expect_whole(&vendor, number).await?;
    Ok((figures, per_minute))
}

/// So many clients, each of which asks for its next branch when it has one. Branches are numbered from `first`.
async fn closed_loop(options: &Options, fleet: &Arc<Fleet>, first: usize, time: Duration) -> Result<Vec<Duration>> {
    let next = Arc::new(AtomicUsize::new(first));
    let deadline = Instant::now() + time;
    let mut clients = JoinSet::new();
    for _ in 0..options.clients {
        let (fleet, next) = (fleet.clone(), next.clone());
        clients.spawn(async move {
            let mut times = Vec::new();
            while Instant::now() < deadline {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let begin = Instant::now();
                branch(&fleet, number).await?;
                times.push(begin.elapsed());
            }
            anyhow::Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(client) = clients.join_next().await {
        times.extend(client??);
    }
    Ok(times)
}

/// Spread over all tenants in an order that jumps: neighbours in time are no neighbours in the store.
async fn branch(fleet: &Fleet, number: usize) -> Result<()> {
    const STRIDE: usize = 7_919;
    let of = tenant(number * STRIDE % fleet.size());
    let name = format!("b{number}");
    deploy(&fleet.landform, &of, &name, TEMPLATE, inputs(&name)?).await
}

/// Every branch is at the vendor, with each of its objects once.
async fn expect_whole(vendor: &Vendor, branches: usize) -> Result<()> {
    let ledger = vendor.ask("ledger").await?;
    for kind in ["templates", "deviceGroups", "devices", "deployedDevices", "vpnProfiles", "bgp"] {
        let there =
            ledger[kind].as_object().map_or_else(|| ledger[kind].as_array().map_or(0, Vec::len), |map| map.len());
        anyhow::ensure!(there == branches, "the vendor has {there} {kind}, and {branches} branches were made");
    }
    Ok(())
}

/// Requests at a steady rate, whatever becomes of those before.
pub async fn steady(options: &Options) -> Result<Vec<Figure>> {
    let (latency, task) = (options.latency_ms.to_string(), options.task_ms.to_string());
    let vendor = Vendor::start(&["versa", "--limits", "none", "--latency-ms", &latency, "--task-ms", &task])?;
    let at_once = Vendor::at_once()?;
    let mut fleet = Fleet::start(options.workers, None).await?;
    fleet.push(TEMPLATE).await?;
    let tenants = options.tenants.iter().copied().max().unwrap_or(1);
    fleet.grow(tenants, |number| credentials(&vendor.endpoint, number)).await?;
    let vendors = vendors_share(&fleet, &vendor, &at_once).await?;
    let total = (options.rate * options.minutes) as usize;
    eprintln!("{} requests a minute for {} minutes …", options.rate, options.minutes);
    let fleet = Arc::new(fleet);
    let before = Spent::now(&fleet, &vendor)?;
    let begin = tokio::time::Instant::now();
    let mut requests = JoinSet::new();
    for number in 0..total {
        let due = begin + Duration::from_secs_f64(number as f64 * 60.0 / options.rate as f64);
        tokio::time::sleep_until(due).await;
        let fleet = fleet.clone();
        // From the moment at which it was due: a sender that is late hides nothing.
        requests.spawn(async move { branch(&fleet, number).await.map(|()| due.elapsed()) });
    }
    let (mut times, mut failed) = (Vec::new(), 0);
    while let Some(request) = requests.join_next().await {
        match request? {
            Ok(time) => times.push(time),
            Err(error) => {
                eprintln!("  failed: {error:#}");
                failed += 1;
            }
        }
    }
    let spent = Spent::now(&fleet, &vendor)?.since(&before, total);
    let times = Times::new(times);
    let beyond = times.percentile(0.95) - vendors;
    if failed == 0 {
        expect_whole(&vendor, total + ALONE).await?;
    }
    Ok(vec![
        Figure {
            what: format!(
                "{} requests a minute for {} minutes, {tenants} tenants: p95 beyond the vendor's own time",
                options.rate, options.minutes
            ),
            measured: format!(
                "{beyond:.0} ms (p50 {:.0}, p95 {:.0}, p99 {:.0} ms in all, of which {vendors:.0} ms are the vendor's: \
                 {latency} ms a call, {task} ms a task), {failed} failed",
                times.percentile(0.5),
                times.percentile(0.95),
                times.percentile(0.99),
            ),
            goal: "< 1 s, 0 failed".to_owned(),
            held: beyond < 1000.0 && failed == 0,
        },
        Figure {
            what: "Landform's CPU for each of them".to_owned(),
            measured: format!("{:.1} ms", spent.landform),
            goal: "< 10 ms".to_owned(),
            held: spent.landform < 10.0,
        },
    ])
}

/// Branches that are made one by one to learn what the vendor itself takes.
const ALONE: usize = 20;

/// How much longer a branch takes at a vendor that takes its time than at one that answers at once: all else being equal,
/// that is the vendor's own share. In milliseconds.
async fn vendors_share(fleet: &Fleet, vendor: &Vendor, at_once: &Vendor) -> Result<f64> {
    let landform = &fleet.landform;
    let mut medians = Vec::new();
    for (of, vendor) in [("slow", vendor), ("quick", at_once)] {
        landform.call("PUT", &format!("/v1/tenants/{of}"), Some(json!({}))).await?;
        let connection = json!({"variables": credentials(&vendor.endpoint, 0)});
        landform.call("PUT", &format!("/v1/tenants/{of}/connections/vendor"), Some(connection)).await?;
        let mut times = Vec::new();
        for number in 0..ALONE {
            let name = format!("alone{number}");
            let begin = Instant::now();
            deploy(landform, of, &name, TEMPLATE, inputs(&name)?).await?;
            times.push(begin.elapsed());
        }
        medians.push(Times::new(times).percentile(0.5));
    }
    // Where the quick one is no quicker, nothing of the time is taken off as the vendor's.
    Ok((medians[0] - medians[1]).max(0.0))
}
