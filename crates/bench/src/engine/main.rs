//! The native engine's figures beside their goals, and beside terraform-exec and `tofu` in the same run of the command.
//! Nothing here is a test: whether a goal is held depends on the machine and on what else it does.

mod alone;
mod aws;
mod large;
mod memory;
mod overhead;
mod rest;
mod runs;
mod stage;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use landform_testkit::figures::{cores, fsync_millis};

/// The engine that is measured in this process has the allocator that it has in `landform`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
struct Options {
    /// Which rows; all of them unless named
    #[arg(value_enum)]
    rows: Vec<Row>,
    /// How long each candidate for runs per minute takes new work, in all its turns together
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// How many turns each of them takes
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    turns: u32,
    /// Only candidates for runs per minute with these words in their names, compared with nobody: for a profiler
    #[arg(long)]
    only: Option<String>,
    /// Runs at one time, of every candidate
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// How many objects the large plans have
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000])]
    objects: Vec<usize>,
    /// Runs under way at one time, for their memory
    #[arg(long, default_value_t = 50)]
    concurrent: usize,
    /// The terraform-exec program
    #[arg(long)]
    peer: PathBuf,
}

impl Options {
    fn turn(&self) -> Duration {
        Duration::from_secs(self.seconds) / self.turns
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Row {
    /// Runs per minute: through REST and in process, with shared processes and with one for each run
    Runs,
    /// What the engine adds to the provider's own time
    Overhead,
    /// Plans of many objects
    Large,
    /// A plan with a large provider
    Aws,
    /// Memory for each run under way
    Memory,
}

/// One line of the table.
struct Figure {
    what: String,
    measured: String,
    goal: String,
    held: bool,
}

impl Figure {
    /// A measured number that is to be compared with nothing.
    fn base(what: impl Into<String>, measured: impl Into<String>) -> Figure {
        Figure { what: what.into(), measured: measured.into(), goal: String::new(), held: true }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    let wants = |row: Row| options.rows.is_empty() || options.rows.contains(&row);
    let mut figures = Vec::new();
    if wants(Row::Runs) {
        figures.extend(runs::measure(&options).await?);
    }
    if wants(Row::Overhead) {
        figures.extend(overhead::measure().await?);
    }
    if wants(Row::Large) {
        figures.extend(large::measure(&options)?);
    }
    if wants(Row::Aws) {
        figures.extend(aws::measure().await?);
    }
    if wants(Row::Memory) {
        figures.extend(memory::measure(&options).await?);
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    println!(
        "{} cores, {} workers, {} s each in {} turns; flushing 4 KiB to this disk takes {:.2} ms; load {load}",
        cores(),
        options.workers,
        options.seconds,
        options.turns,
        fsync_millis()?
    );
    println!("| what | measured | goal | held |\n|---|---|---|---|");
    for Figure { what, measured, goal, held } in figures {
        let held = match (goal.is_empty(), held) {
            (true, _) => "",
            (false, true) => "yes",
            (false, false) => "**no**",
        };
        println!("| {what} | {measured} | {goal} | {held} |");
    }
    Ok(())
}
