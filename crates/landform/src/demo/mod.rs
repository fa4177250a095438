//! `landform demo`: the whole way once, on a bare machine, with the commands that a person would type.
//!
//! It starts this very binary as a vendor's stand-in, as a server and as a client, so nothing here knows more than a user
//! does.

mod cato;
mod stage;
mod vendor;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use crate::failure::Failure;
use stage::{Stage, surprise};
use vendor::Director;

const TEMPLATE: &str = include_str!("../../../../templates/versa-branch/main.tf");
const VENDOR: &str = include_str!("../../../../templates/versa-branch/vendor.json");
const EXAMPLE: &str = include_str!("../../../../templates/versa-branch/example.json");

/// Customers, and a branch of each.
const BRANCHES: [(&str, &str); 3] = [("acme", "berlin"), ("globex", "paris"), ("initech", "austin")];

#[derive(Args, Debug)]
pub struct Options {
    /// Leave the server running at the end, and say how to reach it
    #[arg(long)]
    keep: bool,
    /// Cato's own provider, an executable, to show a site there too
    #[arg(long, value_name = "FILE")]
    cato_provider: Option<PathBuf>,
}

pub async fn run(options: Options) -> Result<(), Failure> {
    let begin = Instant::now();
    let files = [("versa-branch/main.tf", TEMPLATE), ("versa-branch/vendor.json", VENDOR), ("branch.json", EXAMPLE)];
    let mut stage = Stage::set(&files)?;
    stage.say("An SD-WAN vendor's management system, simulated: nobody has the real one on a laptop.");
    let director = Director::start(&stage).await?;
    stage.say("Landform on SQLite, with nothing to set up; it makes its own admin token.");
    stage.start_server().await?;

    three_customers(&stage, &director).await?;
    change_and_approve(&mut stage).await?;
    drift(&stage, &director).await?;
    storm(&stage, &director).await?;
    kill_and_recover(&mut stage, &director).await?;
    cato::a_site(&stage, options.cato_provider.as_deref()).await?;

    if !options.keep {
        stage.say("Everything goes the way it came: what needs approval needs it for its end too.");
        approve(&stage, &["destroy", "acme/berlin"]).await?;
        for (tenant, branch) in BRANCHES.iter().skip(1).chain(&[("acme", "hamburg"), ("globex", "lyon")]) {
            stage.run(&["destroy", &format!("{tenant}/{branch}"), "--wait"]).await?;
        }
        director.0.expect_nothing().await?;
        println!(
            "\nDone in {:.1} s: the vendor has nothing left, and nothing was lost.",
            begin.elapsed().as_secs_f64()
        );
        drop(director);
        return stage.stop_server().await;
    }
    println!("\nDone in {:.1} s: five branches are at the vendor.", begin.elapsed().as_secs_f64());
    println!("The vendor's side: {}", director.0.ledger_address());
    stage.stay().await
}

async fn three_customers(stage: &Stage, director: &Director) -> Result<(), Failure> {
    stage.say("A template is a folder of .tf files. This one makes a branch: template, group, device, tunnel, BGP.");
    stage.run(&["template", "push", "versa-branch"]).await?;
    stage.say("Three customers, each with credentials of its own, which are sealed and never shown again.");
    let credentials = json!({"variables":
        {"versa_url": director.0.endpoint(), "versa_username": "admin", "versa_password": "made-up-for-the-demo"}});
    stage.write("credentials.json", &credentials.to_string())?;
    for (tenant, _) in BRANCHES {
        stage.run(&["tenant", "put", tenant]).await?;
        stage.run(&["connection", "put", &format!("{tenant}/versa"), "--values", "credentials.json"]).await?;
    }
    stage.say("A deployment is a template with a customer's inputs. Native engine, no process; the outputs come back.");
    for (tenant, branch) in BRANCHES {
        stage.run(&deploy(&format!("{tenant}/{branch}"), branch, &["--wait"])).await?;
        stage.show_output(&format!("{tenant}/{branch}"), "site_id").await?;
    }
    director.expect_branches(BRANCHES.len()).await
}

/// The words of a command that asks for a branch.
fn deploy(place: &str, branch: &str, more: &[&str]) -> Vec<String> {
    let name = format!("name={branch}");
    let words = ["deploy", place, "--template", "versa-branch", "--connection", "versa"];
    let words = words.into_iter().chain(["--var-file", "branch.json", "--var", &name]);
    words.chain(more.iter().copied()).map(str::to_owned).collect()
}

async fn change_and_approve(stage: &mut Stage) -> Result<(), Failure> {
    stage.say("The same wish again changes nothing; another one is an update.");
    stage.run(&deploy("acme/berlin", "berlin", &["--wait"])).await?;
    stage.run(&deploy("acme/berlin", "berlin", &["--var", "bandwidth_mbps:=500", "--wait"])).await?;
    stage.say("A change can wait for approval. It is then applied exactly as planned, or refused as stale.");
    approve(stage, &deploy("acme/berlin", "berlin", &["--var", "bandwidth_mbps:=1000", "--approval"])).await
}

/// A change that a person has to approve waits as a plan, and is then applied exactly as it was shown.
async fn approve(stage: &Stage, words: &[impl AsRef<str>]) -> Result<(), Failure> {
    let run = stage.accepted(words).await?;
    let planned = stage.until(&run, |run| run["status"] == "awaiting_approval").await?;
    println!("  the plan: {} to change, {} to destroy", planned["plan"]["updates"], planned["plan"]["deletes"]);
    stage.run(&["run", "approve", &run]).await?;
    stage.run(&["run", "watch", &run]).await
}

async fn drift(stage: &Stage, director: &Director) -> Result<(), Failure> {
    stage.say("Somebody deletes a BGP peer at the vendor, behind our back …");
    director.delete_bgp("paris").await?;
    stage.say("… a drift check, which changes nothing, finds it. It could be asked for on a schedule.");
    stage.run(&["drift", "check", "globex/paris", "--wait"]).await?;
    let drift = stage.ask(&["drift", "show", "globex/paris"]).await?;
    if drift["status"] != "drifted" || drift["summary"]["gone"] != json!(1) {
        return Err(surprise(format!("the drift was not found: {drift}")));
    }
    stage.say("It is a fact about the deployment, for the whole fleet; to heal it is an ordinary run.");
    stage.run(&["drift", "list"]).await?;
    stage.run(&["drift", "heal", "globex/paris", "--wait"]).await?;
    let drift = stage.ask(&["drift", "show", "globex/paris"]).await?;
    if drift["status"] != "none" {
        return Err(surprise(format!("the drift was not healed: {drift}")));
    }
    director.expect_branches(BRANCHES.len()).await
}

async fn storm(stage: &Stage, director: &Director) -> Result<(), Failure> {
    stage.say(
        "All calls to the vendor go through the gateway. The vendor answers the next 4 with 429, too many requests:",
    );
    stage.say("the gateway sends them again when the vendor says so, and the run's log tells what was asked.");
    director.0.order(json!({"kind": "too_many_requests", "times": 4})).await?;
    let run = stage.accepted(&deploy("globex/lyon", "lyon", &[])).await?;
    stage.show_lines(&["run", "watch", &run], "rate limit").await?;
    director.expect_branches(BRANCHES.len() + 1).await
}

/// The server dies while the vendor works. Nothing is lost, and nothing is made twice.
async fn kill_and_recover(stage: &mut Stage, director: &Director) -> Result<(), Failure> {
    stage.say("The server is killed (kill -9) while the vendor deploys a device …");
    let begun = director.0.calls("device.deploy").await?;
    let run = stage.accepted(&deploy("acme/hamburg", "hamburg", &[])).await?;
    while director.0.calls("device.deploy").await? == begun {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stage.kill_server().await?;
    stage.say("… and started again. The journal knows what was done; what is in doubt is said, never guessed.");
    stage.start_server().await?;
    let settled = stage.until(&run, |run| run["finished"] == true || run["status"] == "needs_recovery").await?;
    if settled["status"] == "needs_recovery" {
        let mut words = vec!["run".to_owned(), "recover".to_owned(), run.clone()];
        for doubt in settled["doubts"].as_array().into_iter().flatten() {
            let address = doubt["address"].as_str().unwrap_or_default();
            let answer = match director.id_of(address, "hamburg").await? {
                Some(id) => ["--adopt".to_owned(), format!("{address}={id}")],
                None => ["--absent".to_owned(), address.to_owned()],
            };
            println!("  in doubt: {address}; a look at the vendor tells: {}", answer[0].trim_start_matches('-'));
            words.extend(answer);
        }
        stage.run(&words).await?;
        stage.run(&["run", "watch", &run]).await?;
    }
    stage.show_output("acme/hamburg", "site_id").await?;
    director.expect_branches(BRANCHES.len() + 2).await
}

/// Where the demo keeps its things.
fn folder() -> Result<PathBuf, Failure> {
    let folder = tempfile::Builder::new().prefix("landform-demo-").tempdir();
    Ok(folder.map_err(|error| Failure::broken(format!("no folder for the demo: {error}"), "Set TMPDIR."))?.keep())
}

/// How many entries a part of a JSON document has.
fn size(json: &Value) -> usize {
    json.as_object().map_or_else(|| json.as_array().map_or(0, Vec::len), serde_json::Map::len)
}
