//! Kills the real binary with SIGKILL, at random moments of many applies or at every call of a provider that changes
//! something, and judges what is left.
//!
//! The judge is the ledger provider: its create makes a new object with a random id every time, and nothing can be
//! looked up by name, so a create that is repeated shows as a second object and one that is forgotten as an orphan.
//! From outside only: no failpoints, plain HTTP, a release binary, commits flushed to disk.

mod walk;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Parser;
use landform_testkit::{judge, landform::Setup, parts, postgres};

#[derive(Parser)]
struct Options {
    /// Applies (and kills) for each pair of store and engine.
    #[arg(long, default_value_t = 50)]
    applies: u32,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, value_delimiter = ',', default_value = "sqlite,postgres")]
    stores: Vec<String>,
    #[arg(long, value_delimiter = ',', default_value = "native,cli")]
    engines: Vec<String>,
    /// At every call that changes something, before and after it has changed, instead of at random moments.
    #[arg(long)]
    every_call: bool,
    /// Leaves the data folders behind and says where they are.
    #[arg(long)]
    keep: bool,
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    let beside = std::env::current_exe()?.parent().map(PathBuf::from).unwrap_or_default();
    let mut failures = 0;
    for store in &options.stores {
        for engine in &options.engines {
            let folder = tempfile::Builder::new().prefix("landform-kills-").tempdir()?;
            let providers = folder.path().join("mirror");
            judge::install_ledger_provider(&beside.join("terraform-provider-ledger"), &providers)?;
            let data = folder.path().join("data");
            std::fs::create_dir(&data)?;
            let server = match store.as_str() {
                "postgres" => Some(postgres::Server::start_durable()?),
                other => {
                    ensure!(other == "sqlite", "unknown store {other}");
                    None
                }
            };
            let setup = Setup {
                binary: beside.join("landform"),
                data,
                database: server.as_ref().map(postgres::Server::url),
                providers,
                tofu: Some(parts::tofu()),
                workers: 4,
                // The provider writes its ledger beside the data folder.
                more: vec!["--cli-may-write".to_owned(), folder.path().display().to_string()],
            };
            let result = if options.every_call {
                println!("{store}, {engine}: at every call");
                walk::run_every_call(&setup, engine).await
            } else {
                println!("{store}, {engine}: {} applies, seed {}", options.applies, options.seed);
                walk::run(&setup, engine, options.applies, options.seed).await
            };
            match result {
                Ok(summary) => println!("  {summary}"),
                Err(error) => {
                    failures += 1;
                    println!("  FAILED: {error:#}");
                }
            }
            if options.keep || failures > 0 {
                println!("  kept: {}", folder.keep().display());
            }
        }
    }
    println!("{} passed, {failures} failed", options.stores.len() * options.engines.len() - failures);
    ensure!(failures == 0, "{failures} of the pairs failed");
    Ok(())
}
