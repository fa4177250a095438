//! The workshop: `cargo xtask test` is the one command that says whether the project is whole.
//!
//! Absent on purpose: anything that a user of Landform needs. This crate may run programs and look at files, and it
//! depends on no other crate of the workspace, so that it builds in seconds on a fresh machine.

mod arrows;
mod licences;
mod parts;
mod shell;
mod test;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Landform's workshop")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Gets the real parts and runs every check and every test.
    Test,
    /// Gets the real parts that tests need: OpenTofu, providers, PostgreSQL.
    Parts,
    /// Checks which crate may depend on which.
    Arrows,
    /// Checks the licences of all dependencies.
    Licences,
    /// Kills the release binary at random moments of many applies and judges what is left.
    Kills {
        /// Applies for each pair of store and engine.
        #[arg(long, default_value_t = 200)]
        applies: u32,
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// At every provider call that changes something instead, with the native engine.
        #[arg(long)]
        every_call: bool,
    },
    /// Changes expressions, files, states and plans at random and reads them: nothing may end the process.
    Fuzz {
        #[arg(long, default_value_t = 10)]
        minutes: u32,
    },
    /// Holds the native engine to OpenTofu, story by story, by recordings of OpenTofu.
    Oracle {
        /// With the release binaries.
        #[arg(long)]
        release: bool,
        /// For `landform-oracle`: names of cases, `--record`, `--live`, `--show`, `--every N`, `--limit N`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Several Landforms on one PostgreSQL under load, while one of them, a provider, an OpenTofu or the database is
    /// killed several times a second; at the end what exists is compared with all states.
    Chaos {
        #[arg(long, default_value_t = 1)]
        seed: u64,
        #[arg(long, default_value_t = 1000)]
        kills: u32,
        /// For `landform-chaos`, after all others: `--landforms N`, `--cli-of-ten N`, `--pause MS`, `--keep`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Figures beside their goals. On a quiet machine: nothing else may run.
    Bench {
        #[command(subcommand)]
        part: Bench,
    },
}

#[derive(Subcommand)]
enum Bench {
    /// The control plane's figures beside their goals, on both stores.
    Control {
        /// For `landform-bench-control`: names of rows, `--stores sqlite,postgres`, `--size SHARE`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// The figures of a fleet of SD-WAN sites beside their goals, with simulated vendors.
    Fleet {
        /// For `landform-bench-fleet`: names of rows, `--minutes N`, `--seconds N`, `--tenants N,N`, `--workers N`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// The native engine's figures beside their goals, beside terraform-exec and `tofu`.
    Engine {
        /// For `landform-bench-engine`: names of rows, `--seconds N`, `--workers N`, `--objects N,N`, `--concurrent N`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
}

fn main() -> Result<()> {
    std::env::set_current_dir(shell::root())?;
    match Cli::parse().task {
        Task::Test => test::all(),
        Task::Parts => parts::get(),
        Task::Arrows => arrows::check(),
        Task::Licences => licences::check(),
        Task::Fuzz { minutes } => test::fuzz(minutes),
        Task::Kills { every_call: true, .. } => test::kills_at_every_call(),
        Task::Kills { applies, seed, .. } => test::kills(applies, seed),
        Task::Chaos { seed, kills, args } => test::chaos(seed, kills, &args),
        Task::Oracle { release, args } => test::oracle(release, &args),
        Task::Bench { part } => match part {
            Bench::Control { args } => test::bench("control", &args),
            Bench::Engine { args } => test::bench("engine", &args),
            Bench::Fleet { args } => test::bench("fleet", &args),
        },
    }
}
