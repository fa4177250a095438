//! `landform sim`: a vendor's cloud on this machine, for trying things out.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use landform_sim::{Limits, Options, Running, Vendor};
use serde_json::json;
use tokio::net::TcpListener;

use crate::failure::Failure;

#[derive(Args, Debug)]
pub struct Simulate {
    vendor: Named,
    /// The address to listen on; with port 0, a free one
    #[arg(long, default_value = "127.0.0.1:0", value_parser = crate::connection::address)]
    listen: SocketAddr,
    /// Rate limits: `published` (the vendor's own), `none`, or a JSON file
    #[arg(long, default_value = "published")]
    limits: String,
    /// How long every call takes, in milliseconds
    #[arg(long, default_value_t = 0)]
    latency_ms: u64,
    /// How long a task runs, in milliseconds
    #[arg(long, default_value_t = 500)]
    task_ms: u64,
}

const LIMITS: &str = "Limits are `published`, `none`, or a file with JSON.";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Named {
    Cato,
    Versa,
}

pub async fn run(args: Simulate, json: bool) -> Result<(), Failure> {
    let (vendor, path) = match args.vendor {
        Named::Cato => (Vendor::Cato, "/api/v1/graphql2"),
        Named::Versa => (Vendor::Versa, "/"),
    };
    let limits = match args.limits.as_str() {
        "none" => Limits::none(),
        "published" => vendor.limits(),
        file => {
            let file = PathBuf::from(file);
            let named = |error: String| Failure::usage(format!("{}: {error}", file.display()), LIMITS);
            let text = std::fs::read_to_string(&file).map_err(|error| named(error.to_string()))?;
            Limits::from_json(&text).map_err(|error| named(error.to_string()))?
        }
    };
    let cannot_listen = |error: std::io::Error| {
        Failure::usage(format!("cannot listen on {}: {error}", args.listen), "Choose another address with --listen.")
    };
    let listener = TcpListener::bind(args.listen).await.map_err(cannot_listen)?;
    let options =
        Options { latency: Duration::from_millis(args.latency_ms), task: Duration::from_millis(args.task_ms), limits };
    let running = Running::start(vendor, listener, options).await.map_err(cannot_listen)?;
    let root = format!("http://{}", running.address());
    if json {
        println!("{}", json!({"endpoint": format!("{root}{path}"), "control": format!("{root}/_sim")}));
    } else {
        println!("The simulator answers at {root}{path}");
        println!("What exists: {root}/_sim/ledger    what was asked: {root}/_sim/calls");
        println!("Ctrl-C ends it; nothing is kept.");
    }
    // A shell has programs in the background ignore an interrupt, unless they ask for it.
    tokio::select! {
        () = running.forever() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(())
}
