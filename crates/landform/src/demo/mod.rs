//! `landform demo`: the whole way once, on a bare machine, with the commands that a person would type.
//!
//! It starts this very binary as a server and as a client, so nothing here knows more than a user does.

mod stage;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::Value;

use crate::failure::Failure;
use stage::{Stage, surprise};

const GREETING: &str = include_str!("../../../../examples/greeting/main.tf");
const FLEET: &str = include_str!("../../../../examples/fleet/main.tf");

#[derive(Args, Debug)]
pub struct Options {
    /// Leave the server running at the end, and say how to reach it
    #[arg(long)]
    keep: bool,
}

pub async fn run(options: Options) -> Result<(), Failure> {
    let begin = Instant::now();
    let mut stage = Stage::set(&[("greeting", GREETING), ("fleet", FLEET)])?;
    stage.say("A server on SQLite, with nothing to set up; it makes its own admin token.");
    stage.start_server().await?;

    stage.say("A customer, and a template: a folder of .tf files.");
    stage.run(&["tenant", "put", "acme"]).await?;
    stage.run(&["template", "push", "greeting"]).await?;

    stage.say("A deployment is a template with a customer's inputs. The outputs come back.");
    stage.run(&["deploy", "acme/hello", "--template", "greeting", "--var", "name=world", "--wait"]).await?;
    stage.expect_output("acme/hello", "greeting", &Value::from("Hello, world!")).await?;

    stage.say("The same wish again changes nothing; another one is an update.");
    stage.run(&["deploy", "acme/hello", "--template", "greeting", "--var", "name=world", "--wait"]).await?;
    stage.run(&["deploy", "acme/hello", "--template", "greeting", "--var", "name=moon", "--wait"]).await?;
    stage.expect_output("acme/hello", "greeting", &Value::from("Hello, moon!")).await?;

    stage.say("A change can wait for approval. It is then applied exactly as planned, or refused as stale.");
    let sun = ["deploy", "acme/hello", "--template", "greeting", "--var", "name=sun", "--approval"];
    approve(&mut stage, &sun).await?;
    stage.expect_output("acme/hello", "greeting", &Value::from("Hello, sun!")).await?;

    kill_and_recover(&mut stage).await?;

    stage.say("Everything goes the way it came: what needs approval needs it for its end too.");
    approve(&mut stage, &["destroy", "acme/hello"]).await?;
    stage.run(&["destroy", "acme/fleet", "--wait"]).await?;
    let left = stage.ask(&["deployments"]).await?;
    if left.as_array().is_none_or(|list| !list.is_empty()) {
        return Err(surprise(format!("deployments are left: {left}")));
    }
    println!("\nDone in {:.1} s: nothing is left, nothing was lost.", begin.elapsed().as_secs_f64());
    if options.keep {
        return stage.stay().await;
    }
    stage.stop_server().await
}

/// A change that a person has to approve waits as a plan, and is then applied exactly as it was shown.
async fn approve(stage: &mut Stage, words: &[&str]) -> Result<(), Failure> {
    let run = stage.accepted(words).await?;
    let planned = stage.until(&run, |run| run["status"] == "awaiting_approval").await?;
    println!("  the plan: {} to change, {} to destroy", planned["plan"]["updates"], planned["plan"]["deletes"]);
    stage.run(&["run", "approve", &run]).await?;
    stage.run(&["run", "watch", &run]).await
}

/// The server dies in the middle of an apply. Nothing is lost, and nothing is made twice.
async fn kill_and_recover(stage: &mut Stage) -> Result<(), Failure> {
    stage.say("The server is killed (kill -9) in the middle of an apply of 400 objects …");
    stage.run(&["template", "push", "fleet"]).await?;
    let run = stage.accepted(&["deploy", "acme/fleet", "--template", "fleet", "--var", "size:=400"]).await?;
    stage.until(&run, |run| run["status"] == "applying").await?;
    tokio::time::sleep(Duration::from_millis(30)).await;
    stage.kill_server().await?;
    stage.say("… and started again. The journal knows what was done; what is in doubt is said, never guessed.");
    stage.start_server().await?;
    let settled = stage.until(&run, |run| run["finished"] == true || run["status"] == "needs_recovery").await?;
    if settled["status"] == "needs_recovery" {
        let mut words = vec!["run".to_owned(), "recover".to_owned(), run.clone()];
        for doubt in settled["doubts"].as_array().into_iter().flatten() {
            // These objects live in the state alone, so one that no state has does not exist.
            words.extend(["--absent".to_owned(), doubt["address"].as_str().unwrap_or_default().to_owned()]);
        }
        stage.run(&words.iter().map(String::as_str).collect::<Vec<_>>()).await?;
        stage.run(&["run", "watch", &run]).await?;
    }
    stage.expect_output("acme/fleet", "size", &Value::from(400)).await
}

/// Where the demo keeps its things.
fn folder() -> Result<PathBuf, Failure> {
    let folder = tempfile::Builder::new().prefix("landform-demo-").tempdir();
    Ok(folder.map_err(|error| Failure::broken(format!("no folder for the demo: {error}"), "Set TMPDIR."))?.keep())
}
