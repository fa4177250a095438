//! Several Landforms on one PostgreSQL, under load, while something is killed several times a second: a Landform, a
//! provider, an OpenTofu, or the database itself. At the end the ledger of what exists is compared with all states.
//!
//! The provider's create makes a new object every time and nothing can be looked up, so whatever is done twice or
//! forgotten shows. Everything is real and judged from outside: no failpoints, plain HTTP, commits flushed to disk.

mod cluster;
mod driver;
mod victims;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Parser;
use landform_testkit::{judge, landform::Setup, parts, postgres};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use cluster::Cluster;
use driver::{Driver, Tally};
use victims::{Kills, Kind};

const TEMPLATE: &str = include_str!("../landform-kills/template.tf");

#[derive(Parser)]
struct Options {
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// So many kills, then everything comes to rest and is judged.
    #[arg(long, default_value_t = 100)]
    kills: u32,
    /// Landforms on the one database.
    #[arg(long, default_value_t = 3)]
    landforms: usize,
    /// Deployments that change all the time.
    #[arg(long, default_value_t = 8)]
    deployments: usize,
    /// Of ten deployments so many use the CLI engine.
    #[arg(long, default_value_t = 3)]
    cli_of_ten: usize,
    /// Milliseconds between two kills, on average.
    #[arg(long, default_value_t = 250)]
    pause: u64,
    /// Leaves the folder behind and says where it is.
    #[arg(long)]
    keep: bool,
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    let folder = tempfile::Builder::new().prefix("landform-chaos-").tempdir()?;
    let result = chaos(&options, folder.path().to_owned()).await;
    if options.keep || result.is_err() {
        println!("kept: {}", folder.keep().display());
    }
    result
}

async fn chaos(options: &Options, folder: PathBuf) -> Result<()> {
    let beside = std::env::current_exe()?.parent().map(PathBuf::from).unwrap_or_default();
    let (mirror, ledgers) = (folder.join("mirror"), folder.join("ledgers"));
    std::fs::create_dir(&ledgers)?;
    judge::install_ledger_provider(&beside.join("terraform-provider-ledger"), &mirror)?;
    let database = postgres::Server::start_durable()?;
    let setup = |number: usize| Setup {
        binary: beside.join("landform"),
        data: folder.join(format!("data{number}")),
        database: Some(database.url()),
        providers: mirror.clone(),
        tofu: Some(parts::tofu()),
        workers: 2,
        more: ["--lease", "5", "--cli-may-write"]
            .map(str::to_owned)
            .into_iter()
            .chain([ledgers.display().to_string()])
            .collect(),
    };
    let cluster = Arc::new(Cluster::start((0..options.landforms).map(setup).collect()).await?);
    let door = cluster.door();
    door.call("PUT", "/v1/tenants/chaos", Some(json!({})), None).await?;
    cluster.push_template("chaos", &[("main.tf", TEMPLATE)]).await?;

    let begin = Instant::now();
    let over = Arc::new(AtomicBool::new(false));
    let mut drivers = tokio::task::JoinSet::new();
    for number in 0..options.deployments {
        let engine = if number % 10 < options.cli_of_ten { "cli" } else { "native" };
        let random = StdRng::seed_from_u64(options.seed.wrapping_mul(1_000).wrapping_add(number as u64));
        drivers.spawn(Driver::new(number, engine, &ledgers, cluster.door(), random).live(over.clone()));
    }
    let kills = kill(options, &cluster, database, &folder, &mut drivers).await;
    over.store(true, Ordering::Relaxed);
    let (kills, database) = kills?;
    println!("{kills}; letting everything come to rest");
    let mut tally = Tally::default();
    while let Some(driver) = drivers.join_next().await {
        tally = tally + driver?.context("a deployment")?;
    }
    Arc::into_inner(cluster).context("nobody else uses the cluster")?.stop().await?;
    drop(database);
    judge::nobody_is_left(&folder).await?;
    println!("seed {}: {kills} in {:.0?}\n{tally}", options.seed, begin.elapsed());
    println!("the ledger's objects are the states' objects, each once, and no process is left");
    Ok(())
}

/// Kills until enough are dead. A driver that fails ends it at once: nothing is to be learnt from going on.
async fn kill(
    options: &Options,
    cluster: &Arc<Cluster>,
    mut database: postgres::Server,
    folder: &std::path::Path,
    drivers: &mut tokio::task::JoinSet<Result<Tally>>,
) -> Result<(Kills, postgres::Server)> {
    let mut random = StdRng::seed_from_u64(options.seed);
    let mut kills = Kills::default();
    let begin = Instant::now();
    while kills.total() < options.kills {
        tokio::time::sleep(Duration::from_millis(random.random_range(0..2 * options.pause))).await;
        if let Some(driver) = drivers.try_join_next() {
            driver?.context("a deployment")?;
        }
        let kind = Kind::drawn(random.random_range(0..100));
        let killed = match kind {
            Kind::Landform => {
                cluster.kill_one(random.random_range(0..options.landforms)).await?;
                true
            }
            Kind::Provider | Kind::Cli => victims::kill(kind, folder, &mut random)?,
            Kind::Database => {
                // It blocks until the database is there again.
                database =
                    tokio::task::spawn_blocking(move || database.crash_and_restart().map(|()| database)).await??;
                true
            }
        };
        if killed && kills.count(kind) && kills.total() % 100 == 0 {
            println!("  {kills} after {:.0?}", begin.elapsed());
        }
    }
    Ok((kills, database))
}
