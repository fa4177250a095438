//! Running programs with a word about what goes on and how long it took.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// The workspace's root folder, wherever the command was started.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace exists")
}

/// Runs a step whose output people want to see.
pub fn step(label: &str, command: &mut Command) -> Result<()> {
    eprintln!("\n==> {label}");
    let begin = Instant::now();
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("{label}: cannot start"))?;
    ensure!(status.success(), "{label}: failed ({status}) after {:.0?}", begin.elapsed());
    eprintln!("    {label}: done in {:.0?}", begin.elapsed());
    Ok(())
}

/// Runs a long step whose output matters only if it fails; says every few seconds that it is still at work.
pub fn quiet(label: &str, command: &mut Command) -> Result<()> {
    eprintln!("==> {label}");
    let begin = Instant::now();
    let (done, waiting) = mpsc::channel::<()>();
    let ticker = std::thread::spawn(move || {
        while let Err(mpsc::RecvTimeoutError::Timeout) = waiting.recv_timeout(Duration::from_secs(15)) {
            eprintln!("    … {:.0?}", begin.elapsed());
        }
    });
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{label}: cannot start"));
    drop(done);
    ticker.join().expect("the ticker does not panic");
    let output = output?;
    ensure!(output.status.success(), "{label}: failed\n{}", String::from_utf8_lossy(&output.stderr));
    eprintln!("    {label}: done in {:.0?}", begin.elapsed());
    Ok(())
}

/// Cargo as a person's own shell would start it. What `cargo run` has told us about our own package stays here: some build
/// scripts take note of it (ring's does), so that each `cargo build` after a `cargo xtask` would compile half of everything.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let ours = name.to_string_lossy();
        if ours.starts_with("CARGO_PKG_") || ours.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&name);
        }
    }
    cargo
}

/// What a program prints, as JSON.
pub fn json(command: &mut Command) -> Result<serde_json::Value> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "{command:?} failed");
    Ok(serde_json::from_slice(&output.stdout)?)
}
