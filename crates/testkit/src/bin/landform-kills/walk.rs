//! The walk: one apply after the other, each with a kill at a random moment of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use landform_testkit::judge;
use landform_testkit::landform::{Landform, Setup, answer};
use landform_testkit::ledger::Kill;
use landform_testkit::tofu::Tofu;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use reqwest::Method;
use serde_json::{Value, json};

const TEMPLATE: &str = include_str!("template.tf");
const PATIENCE: Duration = Duration::from_secs(120);

/// What is left to say when all went well.
#[derive(Default)]
pub struct Summary {
    kills: u32,
    interrupted: u32,
    unanswered: u32,
    adopted: u32,
    absent: u32,
    objects: usize,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} kills, {} of them in the middle of a run; {} requests got no answer and were sent again; \
             {} objects in doubt ({} existed and were adopted, {} were absent); at the end the ledger's {} objects are \
             the states' objects, each once, and no child is left",
            self.kills,
            self.interrupted,
            self.unanswered,
            self.adopted + self.absent,
            self.adopted,
            self.absent,
            self.objects,
        )
    }
}

struct Walk<'a> {
    setup: &'a Setup,
    engine: &'a str,
    ledger: PathBuf,
    random: StdRng,
    landform: Option<Landform>,
    /// Deployments that should exist, with their inputs.
    deployments: BTreeMap<String, Inputs>,
    made: u32,
    summary: Summary,
}

#[derive(Clone)]
struct Inputs {
    size: u32,
    kind: u32,
}

/// One change of one deployment; `None` destroys it.
struct Change {
    deployment: String,
    wanted: Option<Inputs>,
}

pub async fn run(setup: &Setup, engine: &str, applies: u32, seed: u64) -> Result<Summary> {
    let mut walk = Walk::new(setup, engine, seed).await?;
    let usual = walk.usual_duration().await.context("before any kill")?;
    for step in 0..applies {
        let change = walk.next_change();
        let deployment = change.deployment.clone();
        let delay = usual.mul_f64(walk.random.random_range(0.0..1.3));
        let key = format!("apply-{step}");
        walk.kill_during(change, &key, delay)
            .await
            .with_context(|| format!("apply {step}, {deployment}, {delay:.0?}"))?;
        if step % 10 == 9 {
            println!("  {} kills", walk.summary.kills);
        }
    }
    walk.settle_accounts().await?;
    Ok(walk.summary)
}

/// Kills at every call that changes something, before and after the change is made: create, update, replace, destroy.
/// At the end the real OpenTofu finds nothing to do on the states.
pub async fn run_every_call(setup: &Setup, engine: &str) -> Result<Summary> {
    let mut walk = Walk::new(setup, engine, 0).await?;
    let first = || Inputs { size: 1, kind: 0 };
    let stories: [(&str, Option<Inputs>, Option<Inputs>); 4] = [
        ("create", None, Some(first())),
        ("update", Some(first()), Some(Inputs { size: 2, ..first() })),
        ("replace", Some(first()), Some(Inputs { kind: 1, ..first() })),
        ("destroy", Some(first()), None),
    ];
    for (story, before, wanted) in &stories {
        for after in [false, true] {
            for spared in 0.. {
                let deployment = walk.new_name();
                let place = || format!("{story}, call {}, {}", spared + 1, if after { "after" } else { "before" });
                if let Some(before) = before {
                    let change = Change { deployment: deployment.clone(), wanted: Some(before.clone()) };
                    let run = run_of(&walk.submit(&change, &format!("{deployment}-before")).await?)?;
                    walk.finish(&run).await.with_context(place)?;
                    walk.accept(change).await.with_context(place)?;
                }
                Kill { spared, after }.arm(&walk.ledger)?;
                let change = Change { deployment, wanted: wanted.clone() };
                if !walk.killed_by_provider(change).await.with_context(place)? {
                    ensure!(spared > 0, "{story} has at least one call");
                    break;
                }
            }
        }
    }
    walk.hand_over_to_tofu().await?;
    walk.settle_accounts().await?;
    Ok(walk.summary)
}

impl<'a> Walk<'a> {
    async fn new(setup: &'a Setup, engine: &'a str, seed: u64) -> Result<Walk<'a>> {
        let walk = Walk {
            setup,
            engine,
            ledger: setup.data.with_file_name("ledger"),
            random: StdRng::seed_from_u64(seed),
            landform: Some(Landform::start(setup).await?),
            deployments: BTreeMap::new(),
            made: 0,
            summary: Summary::default(),
        };
        walk.landform()?.call("PUT", "/v1/tenants/kills", Some(json!({}))).await?;
        walk.landform()?.push_template("kills", &[("main.tf", TEMPLATE)]).await?;
        Ok(walk)
    }

    /// Makes a change during which the provider kills the server. False: it had fewer calls than that, and all went well.
    async fn killed_by_provider(&mut self, change: Change) -> Result<bool> {
        let key = format!("{}-killed", change.deployment);
        let accepted = self.submit(&change, &key).await?;
        let run = run_of(&accepted)?;
        let killed = loop {
            if self.landform()?.has_ended()? {
                break true;
            }
            let now = self.landform()?.call("GET", &format!("/v1/runs/{run}"), None).await;
            let ended =
                now.is_ok_and(|now| !matches!(now["status"].as_str(), Some("queued" | "planning" | "applying")));
            if ended && !self.landform()?.has_ended()? {
                break false;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        if killed {
            ensure!(Kill::is_over(&self.ledger), "the server died of something else");
            self.summary.kills += 1;
            drop(self.landform.take());
            self.landform = Some(Landform::start(self.setup).await?);
        } else {
            Kill::disarm(&self.ledger)?;
        }
        self.finish(&run).await?;
        self.accept(change).await?;
        Ok(killed)
    }

    /// The real OpenTofu goes on from every state, and finds nothing to do.
    async fn hand_over_to_tofu(&self) -> Result<()> {
        for (deployment, inputs) in &self.deployments {
            let folder = tempfile::tempdir()?;
            let tofu = Tofu::new(&folder.path().join("work"), &self.setup.providers)?;
            tofu.write("main.tf", TEMPLATE)?;
            let path = format!("/v1/tenants/kills/deployments/{deployment}/state");
            let state = self.landform()?.request(Method::GET, &path).send().await?.text().await?;
            tofu.write("terraform.tfstate", &state)?;
            let variables = json!({
                "ledger": self.ledger, "name": deployment, "size": inputs.size, "kind": format!("kind{}", inputs.kind),
            });
            tofu.write("terraform.tfvars.json", &variables.to_string())?;
            let init = tofu.run(["init", "-input=false", "-no-color"])?;
            ensure!(init.status.success(), "tofu init: {}", String::from_utf8_lossy(&init.stderr));
            let plan = tofu.run(["plan", "-detailed-exitcode", "-input=false", "-no-color"])?;
            let said = String::from_utf8_lossy(&plan.stdout);
            ensure!(plan.status.code() == Some(0), "OpenTofu on the state of {deployment}: {said}");
        }
        Ok(())
    }
}

impl Walk<'_> {
    fn landform(&self) -> Result<&Landform> {
        self.landform.as_ref().context("landform is not running")
    }

    /// How long an apply takes that nobody disturbs: the kills are spread over a little more than that.
    async fn usual_duration(&mut self) -> Result<Duration> {
        // The very first run does what is done once for all; a kill reckoned by it would come after most others have ended.
        let mut shortest = Duration::MAX;
        for _ in 0..3 {
            let change = Change { deployment: self.new_name(), wanted: Some(Inputs { size: 1, kind: 0 }) };
            let begin = Instant::now();
            let run = run_of(&self.submit(&change, &change.deployment).await?)?;
            let status = self.settled(&run).await?;
            ensure!(status["status"] == "succeeded", "an undisturbed run: {status}");
            shortest = shortest.min(begin.elapsed());
            self.accept(change).await?;
        }
        Ok(shortest)
    }

    fn new_name(&mut self) -> String {
        self.made += 1;
        format!("site{}", self.made)
    }

    fn next_change(&mut self) -> Change {
        let names: Vec<String> = self.deployments.keys().cloned().collect();
        let dice = self.random.random_range(0..10);
        if names.is_empty() || dice < 4 {
            return Change { deployment: self.new_name(), wanted: Some(Inputs { size: 1, kind: 0 }) };
        }
        let deployment = names[self.random.random_range(0..names.len())].clone();
        let mut inputs = self.deployments[&deployment].clone();
        match dice {
            4..=5 => inputs.size += 1,
            6..=7 => inputs.kind += 1,
            _ => return Change { deployment, wanted: None },
        }
        Change { deployment, wanted: Some(inputs) }
    }

    /// The key makes a repeated request the same request, as a careful client would have it.
    async fn submit(&self, change: &Change, key: &str) -> Result<Value> {
        let path = format!("/v1/tenants/kills/deployments/{}", change.deployment);
        let request = match &change.wanted {
            None => self.landform()?.request(Method::DELETE, &path),
            Some(inputs) => self.landform()?.request(Method::PUT, &path).json(&json!({
                "template": "kills",
                "engine": self.engine,
                "inputs": {
                    "ledger": self.ledger,
                    "name": change.deployment,
                    "size": inputs.size,
                    "kind": format!("kind{}", inputs.kind),
                },
            })),
        };
        answer(request.header("idempotency-key", key)).await
    }

    async fn kill_during(&mut self, change: Change, key: &str, delay: Duration) -> Result<()> {
        let kill_at = tokio::time::Instant::now() + delay;
        let answered = tokio::time::timeout_at(kill_at, self.submit(&change, key)).await;
        tokio::time::sleep_until(kill_at).await;
        self.landform.take().context("landform is not running")?.kill()?;
        self.summary.kills += 1;
        self.landform = Some(Landform::start(self.setup).await?);
        let accepted = match answered {
            Ok(answer) => answer?,
            Err(_) => {
                self.summary.unanswered += 1;
                self.submit(&change, key).await?
            }
        };
        self.finish(&run_of(&accepted)?).await?;
        self.accept(change).await
    }

    /// Waits for the run's end, and answers what it asks, as an operator would who can look into the ledger.
    async fn finish(&mut self, run: &str) -> Result<()> {
        loop {
            let now = self.settled(run).await?;
            match now["status"].as_str() {
                Some("succeeded" | "unchanged") => {
                    self.summary.interrupted += u32::from(now["attempt"].as_u64().context("an attempt")? > 1);
                    return Ok(());
                }
                Some("needs_recovery") => self.recover(run, &now).await?,
                _ => bail!("the run ended badly: {now}"),
            }
        }
    }

    async fn recover(&mut self, run: &str, now: &Value) -> Result<()> {
        let deployment = now["deployment"].as_str().context("a run names its deployment")?;
        let state = self.objects_in_state(deployment).await?;
        let existing = judge::ids_by_name(&self.ledger)?;
        let mut answers = serde_json::Map::new();
        for doubt in now["doubts"].as_array().context("doubts")? {
            let address = doubt["address"].as_str().context("a doubt names an address")?;
            let name = judge::name_of(deployment, address)?;
            let unknown: Vec<&String> =
                existing.get(&name).into_iter().flatten().filter(|id| state.get(&name) != Some(id)).collect();
            let answer = match unknown.as_slice() {
                [] => {
                    self.summary.absent += 1;
                    json!("absent")
                }
                [id] => {
                    self.summary.adopted += 1;
                    json!({"adopt": id})
                }
                several => bail!("{name} exists {} times: {several:?}", several.len()),
            };
            answers.insert(address.to_owned(), answer);
        }
        ensure!(!answers.is_empty(), "a run that needs recovery must say what is in doubt: {now}");
        let path = format!("/v1/runs/{run}/recover");
        self.landform()?.call("POST", &path, Some(json!({"answers": answers}))).await?;
        Ok(())
    }

    async fn objects_in_state(&self, deployment: &str) -> Result<BTreeMap<String, String>> {
        let path = format!("/v1/tenants/kills/deployments/{deployment}/state");
        let response = self.landform()?.request(Method::GET, &path).send().await?;
        judge::objects_of(deployment, &serde_json::from_str(&response.text().await?)?)
    }

    /// The change is done: the ledger must have exactly what the state has.
    async fn accept(&mut self, change: Change) -> Result<()> {
        let state = match change.wanted {
            Some(inputs) => {
                self.deployments.insert(change.deployment.clone(), inputs);
                self.objects_in_state(&change.deployment).await?
            }
            None => {
                self.deployments.remove(&change.deployment);
                BTreeMap::new()
            }
        };
        ensure!(state.len() == if self.deployments.contains_key(&change.deployment) { 3 } else { 0 }, "{state:?}");
        judge::agree(&change.deployment, &state, &self.ledger)
    }

    async fn settled(&self, run: &str) -> Result<Value> {
        let begin = Instant::now();
        loop {
            let now = self.landform()?.call("GET", &format!("/v1/runs/{run}"), None).await?;
            match now["status"].as_str() {
                Some("queued" | "planning" | "applying") => {}
                _ => return Ok(now),
            }
            ensure!(begin.elapsed() < PATIENCE, "run {run} does not come to an end: {now}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Every deployment takes one more change, and then all states together are the ledger.
    async fn settle_accounts(&mut self) -> Result<()> {
        let mut known = BTreeSet::new();
        for (deployment, mut inputs) in self.deployments.clone() {
            inputs.size += 1;
            let change = Change { deployment: deployment.clone(), wanted: Some(inputs) };
            let run = run_of(&self.submit(&change, &format!("last-{deployment}")).await?)?;
            let ended = self.settled(&run).await?;
            ensure!(ended["status"] == "succeeded", "the next run of {deployment}: {ended}");
            self.accept(change).await?;
            known.extend(self.objects_in_state(&deployment).await?.into_values());
        }
        let existing: BTreeSet<String> = judge::ids_by_name(&self.ledger)?.into_values().flatten().collect();
        ensure!(existing == known, "the ledger has {existing:?}, all states together have {known:?}");
        self.summary.objects = existing.len();
        self.landform.take().context("landform is not running")?.stop().await?;
        judge::nobody_is_left(&self.setup.providers).await
    }
}

fn run_of(answer: &Value) -> Result<String> {
    Ok(answer["run"]["id"].as_str().with_context(|| format!("no run in {answer}"))?.to_owned())
}
