//! The control plane's figures beside their goals, on SQLite and on PostgreSQL, with every promise on: fencing, sealing,
//! commits flushed to disk. Nothing here is a test: whether a goal is held depends on the machine, whose flush time is
//! printed beside it.

mod accept;
mod claim;
mod cli;
mod fair;
mod lists;
mod stage;
mod start;
mod takeover;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use landform_testkit::figures::{cores, fsync_millis};

use stage::Kind;

#[derive(Parser)]
struct Options {
    /// Which rows; all of them unless named
    #[arg(value_enum)]
    rows: Vec<Row>,
    /// On which stores; both unless named
    #[arg(long, value_enum, value_delimiter = ',')]
    stores: Vec<Kind>,
    /// The share of the full size, for a quick look: 0.01 is a hundredth
    #[arg(long, default_value_t = 1.0)]
    size: f64,
    /// The terraform-exec program
    #[arg(long)]
    peer: Option<PathBuf>,
}

impl Options {
    /// At this share of the full size, and at least `least`.
    fn scaled(&self, full: usize, least: usize) -> usize {
        ((full as f64 * self.size) as usize).max(least)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Row {
    Accept,
    Claim,
    /// The `cli` engine against terraform-exec
    Cli,
    Fair,
    Lists,
    Takeover,
    Start,
}

/// One line of the table.
struct Figure {
    what: String,
    store: &'static str,
    measured: String,
    goal: &'static str,
    held: bool,
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    let wants = |row: Row| options.rows.is_empty() || options.rows.contains(&row);
    println!("{} cores, size {}; flushing 4 KiB to this disk takes {:.2} ms", cores(), options.size, fsync_millis()?);
    println!("| what | store | measured | goal | held |\n|---|---|---|---|---|");
    for kind in [Kind::Sqlite, Kind::Postgres] {
        if !(options.stores.is_empty() || options.stores.contains(&kind)) {
            continue;
        }
        if wants(Row::Accept) {
            show(accept::measure(&options, kind).await?);
        }
        if wants(Row::Claim) {
            show(claim::measure(&options, kind).await?);
        }
        if wants(Row::Cli) && kind == Kind::Sqlite {
            show(cli::measure(&options, kind).await?);
        }
        if wants(Row::Fair) {
            show(fair::measure(&options, kind).await?);
        }
        if wants(Row::Lists) {
            show(lists::measure(&options, kind).await?);
        }
        if wants(Row::Takeover) && kind == Kind::Postgres {
            show(takeover::measure().await?);
        }
        if wants(Row::Start) {
            show(start::measure(kind).await?);
        }
    }
    Ok(())
}

/// As soon as they are known: at full size all of it takes half an hour, and who stops it keeps what there is.
fn show(figures: impl IntoIterator<Item = Figure>) {
    for Figure { what, store, measured, goal, held } in figures {
        println!("| {what} | {store} | {measured} | {goal} | {} |", if held { "yes" } else { "**no**" });
    }
}
