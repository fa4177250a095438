//! The figures of a fleet of SD-WAN sites beside their goals: thousands of tenants, simulated vendors as processes of
//! their own, every promise on. Nothing here is a test: whether a goal is held depends on the machine.

mod branches;
mod cato;
mod peer;
mod stage;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use landform_testkit::figures::{cores, fsync_millis};

#[derive(Parser)]
struct Options {
    /// Which rows; all of them unless named
    #[arg(value_enum)]
    rows: Vec<Row>,
    /// How long the steady load and the accounts at their limits last
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// How long each rate is measured
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Tenants in the store; the curve is measured at these sizes, everything else at the last one
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 3_000, 10_000])]
    tenants: Vec<usize>,
    /// Requests a minute of the steady load
    #[arg(long, default_value_t = 500)]
    rate: u64,
    /// How long each call takes at the vendor under the steady load
    #[arg(long, default_value_t = 20)]
    latency_ms: u64,
    /// How long a task runs at the vendor under the steady load
    #[arg(long, default_value_t = 200)]
    task_ms: u64,
    /// Runs that Landform carries out at one time
    #[arg(long, default_value_t = 16)]
    workers: usize,
    /// Clients that wait for their branch at one time, where the most is measured
    #[arg(long, default_value_t = 16)]
    clients: usize,
    /// Accounts at Cato
    #[arg(long, default_value_t = 100)]
    accounts: usize,
    /// The terraform-exec program
    #[arg(long)]
    peer: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Row {
    /// What a run costs with more and more tenants, and the most that is sustained
    Most,
    /// The same template through terraform-exec; the ratio needs the row above in the same run
    Peer,
    /// Requests at a steady rate
    Steady,
    /// Accounts at Cato at their limits, with the vendor's own provider
    Cato,
}

/// One line of the table.
struct Figure {
    what: String,
    measured: String,
    goal: String,
    held: bool,
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    let wants = |row: Row| options.rows.is_empty() || options.rows.contains(&row);
    println!(
        "{} cores, {} workers; flushing 4 KiB to this disk takes {:.2} ms",
        cores(),
        options.workers,
        fsync_millis()?
    );
    println!("| what | measured | goal | held |\n|---|---|---|---|");
    let mut most = None;
    if wants(Row::Most) {
        let (figures, rate) = branches::most(&options).await?;
        show(figures);
        most = Some(rate);
    }
    if wants(Row::Peer) {
        show([peer::measure(&options, most).await?]);
    }
    if wants(Row::Steady) {
        show(branches::steady(&options).await?);
    }
    if wants(Row::Cato) {
        show(cato::measure(&options).await?);
    }
    Ok(())
}

/// As soon as they are known: all of it takes half an hour, and who stops it keeps what there is.
fn show(figures: impl IntoIterator<Item = Figure>) {
    for Figure { what, measured, goal, held } in figures {
        let held = match (goal.is_empty(), held) {
            (true, _) => "",
            (false, true) => "yes",
            (false, false) => "**no**",
        };
        println!("| {what} | {measured} | {goal} | {held} |");
    }
}
