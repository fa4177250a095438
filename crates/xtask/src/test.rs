//! `cargo xtask test`: everything that must hold, in the order in which it fails fastest.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::Result;

use crate::{arrows, licences, parts, shell};

/// In the test command each pair of store and engine gets this many applies: 200 kills in all.
const KILLS_PER_PAIR: u32 = 50;

/// Of the oracle's stories, one in so many is told by OpenTofu itself beside the recordings.
const LIVE_SAMPLE: &str = "20";

/// The short form of chaos: about half a minute.
const SHORT_CHAOS: u32 = 100;

pub fn all() -> Result<()> {
    let begin = Instant::now();
    shell::step("format", shell::cargo().args(["fmt", "--all", "--check"]))?;
    eprintln!("\n==> arrows and licences");
    arrows::check()?;
    licences::check()?;
    eprintln!("\n==> real parts (kept in {})", parts::cache()?.display());
    parts::get()?;
    let lint = ["clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--", "--deny", "warnings"];
    shell::step("clippy", shell::cargo().args(lint))?;
    shell::step("binaries for tests", shell::cargo().args(["build", "--workspace", "--bins", "--locked", "--quiet"]))?;
    shell::step("tests", shell::cargo().args(["test", "--workspace", "--locked", "--quiet", "--no-fail-fast"]))?;
    kills(KILLS_PER_PAIR, 1)?;
    kills_at_every_call()?;
    oracle(true, &[])?;
    oracle(true, &["--live".into(), "--every".into(), LIVE_SAMPLE.into()])?;
    chaos(1, SHORT_CHAOS, &[])?;
    shell::step("the demo of the README", release("landform").arg("demo"))?;
    eprintln!("\nAll checks passed in {:.0?}.", begin.elapsed());
    eprintln!("NOT TESTED:");
    for line in parts::not_tested()? {
        eprintln!("  - {line}");
    }
    Ok(())
}

pub fn kills(applies: u32, seed: u64) -> Result<()> {
    build_release()?;
    shell::step(
        "kills",
        release("landform-kills").args(["--applies", &applies.to_string(), "--seed", &seed.to_string()]),
    )
}

pub fn kills_at_every_call() -> Result<()> {
    build_release()?;
    let args = ["--every-call", "--stores", "sqlite", "--engines", "native"];
    shell::step("kills at every call", release("landform-kills").args(args))
}

pub fn fuzz(minutes: u32) -> Result<()> {
    let mut command = shell::cargo();
    command.args(["test", "--locked", "--quiet", "-p", "landform-lang", "-p", "landform-engine", "--test", "fuzz"]);
    shell::step("fuzz", command.env("FUZZ_MINUTES", minutes.to_string()))
}

pub fn oracle(release: bool, args: &[String]) -> Result<()> {
    parts::get()?;
    let profile = if release { "release" } else { "dev" };
    let build = ["build", "--locked", "--quiet", "-p", "landform", "-p", "landform-testkit", "--bins", "--profile"];
    shell::step("binaries of both engines' judge", shell::cargo().args(build).arg(profile))?;
    let folder = shell::root().join("target").join(if release { "release" } else { "debug" });
    shell::step("oracle", Command::new(folder.join("landform-oracle")).args(args))
}

pub fn chaos(seed: u64, kills: u32, more: &[String]) -> Result<()> {
    build_release()?;
    shell::step(
        "chaos",
        release("landform-chaos").args(["--seed", &seed.to_string(), "--kills", &kills.to_string()]).args(more),
    )
}

/// Figures beside their goals, and beside terraform-exec in the same run.
pub fn bench(which: &str, args: &[String]) -> Result<()> {
    build_release()?;
    parts::get()?;
    let program = terraform_exec()?;
    let mut bench = release(&format!("landform-bench-{which}"));
    shell::step(&format!("bench {which}"), bench.arg("--peer").arg(&program).args(args))
}

/// The peer that runs per minute are compared with.
fn terraform_exec() -> Result<PathBuf> {
    let program = parts::cache()?.join("bench-terraform-exec");
    shell::quiet(
        "building the terraform-exec program",
        Command::new("go").current_dir("bench/terraform-exec").args(["build", "-o"]).arg(&program).arg("."),
    )?;
    Ok(program)
}

fn build_release() -> Result<()> {
    let packages = ["-p", "landform", "-p", "landform-testkit", "-p", "landform-bench"];
    let build = ["build", "--release", "--locked", "--quiet", "--bins"];
    shell::step("release build", shell::cargo().args(build).args(packages))
}

fn release(binary: &str) -> Command {
    Command::new(shell::root().join("target/release").join(binary))
}
