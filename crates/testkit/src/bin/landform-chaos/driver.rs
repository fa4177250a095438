//! One deployment after the other: made, changed, replaced, destroyed, whatever dies meanwhile.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use landform_testkit::judge;
use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use crate::cluster::Door;

const PATIENCE: Duration = Duration::from_secs(300);

/// What the judge has seen.
#[derive(Default)]
pub struct Tally {
    runs: u32,
    attempts: u64,
    failed: u32,
    adopted: u32,
    absent: u32,
    objects: usize,
}

impl std::ops::Add for Tally {
    type Output = Tally;

    fn add(self, other: Tally) -> Tally {
        Tally {
            runs: self.runs + other.runs,
            attempts: self.attempts + other.attempts,
            failed: self.failed + other.failed,
            adopted: self.adopted + other.adopted,
            absent: self.absent + other.absent,
            objects: self.objects + other.objects,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} runs ended well after {} attempts; {} failed and were sent again; {} objects in doubt ({} existed and \
             were adopted, {} were absent); {} objects exist",
            self.runs,
            self.attempts,
            self.failed,
            self.adopted + self.absent,
            self.adopted,
            self.absent,
            self.objects,
        )
    }
}

/// How a run ended. What fails has changed nothing, or what it changed is known.
enum End {
    Well,
    Failed(String),
}

pub struct Driver {
    number: usize,
    engine: &'static str,
    ledgers: PathBuf,
    door: Door,
    random: StdRng,
    lives: u32,
    requests: u32,
    tally: Tally,
}

impl Driver {
    pub fn new(number: usize, engine: &'static str, ledgers: &Path, door: Door, random: StdRng) -> Driver {
        let ledgers = ledgers.to_owned();
        Driver { number, engine, ledgers, door, random, lives: 0, requests: 0, tally: Tally::default() }
    }

    /// Until it is over, and then once more, so that the last word is spoken in peace.
    pub async fn live(mut self, over: Arc<AtomicBool>) -> Result<Tally> {
        loop {
            self.lives += 1;
            let name = format!("site-{}-{}", self.number, self.lives);
            let (mut size, mut kind) = (1, 0);
            // One ledger for each life: the provider reads all of it for each call.
            for _ in 0..self.random.random_range(2..6) {
                self.reach(&name, Some((size, kind))).await?;
                match self.random.random_range(0..3) {
                    0 => kind += 1,
                    _ => size += 1,
                }
            }
            if over.load(Ordering::Relaxed) {
                self.reach(&name, Some((size + 1, kind))).await?;
                self.tally.objects += self.objects_in_state(&name).await?.len();
                return Ok(self.tally);
            }
            self.reach(&name, None).await?;
        }
    }

    /// Brings the deployment there (`None`: away), and then what exists must be what its state has.
    async fn reach(&mut self, name: &str, wanted: Option<(u32, u32)>) -> Result<()> {
        let begin = Instant::now();
        let mut reasons: BTreeMap<String, u32> = BTreeMap::new();
        loop {
            self.requests += 1;
            let key = format!("{name}-{}", self.requests);
            let path = format!("/v1/tenants/chaos/deployments/{name}");
            let accepted = match wanted {
                None => self.door.call("DELETE", &path, None, Some(&key)).await?,
                Some((size, kind)) => {
                    let inputs = json!({"ledger": self.ledger(name), "name": name, "size": size,
                        "kind": format!("kind{kind}")});
                    let body = json!({"template": "chaos", "engine": self.engine, "inputs": inputs});
                    self.door.call("PUT", &path, Some(body), Some(&key)).await?
                }
            };
            let run = accepted["run"]["id"].as_str().with_context(|| format!("no run in {accepted}"))?.to_owned();
            match self.end(&run, name).await.with_context(|| format!("{name}, run {run}"))? {
                End::Well => break,
                End::Failed(reason) => *reasons.entry(reason).or_default() += 1,
            }
            self.tally.failed += 1;
            ensure!(begin.elapsed() < PATIENCE, "{name} does not get there; its runs failed like this: {reasons:#?}");
        }
        let (state, expected) = match wanted {
            Some(_) => (self.objects_in_state(name).await?, 3),
            None => (BTreeMap::new(), 0),
        };
        ensure!(state.len() == expected, "{name}: the state has {state:?}");
        judge::agree(name, &state, &self.ledger(name))
    }

    async fn end(&mut self, run: &str, name: &str) -> Result<End> {
        let begin = Instant::now();
        loop {
            let now = self.door.call("GET", &format!("/v1/runs/{run}"), None, None).await?;
            match now["status"].as_str() {
                Some("queued" | "planning" | "applying") => {}
                Some("needs_recovery") => self.recover(run, name, &now).await?,
                Some("succeeded" | "unchanged") => {
                    self.tally.runs += 1;
                    self.tally.attempts += now["attempt"].as_u64().unwrap_or(1);
                    return Ok(End::Well);
                }
                // A provider that dies while a plan is made is a reason to fail; nothing was changed.
                Some("failed") => return Ok(End::Failed(now["problem"].to_string())),
                _ => bail!("it ended badly: {now}"),
            }
            ensure!(begin.elapsed() < PATIENCE, "it does not come to an end: {now}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Answers as an operator would who can look at the vendor.
    async fn recover(&mut self, run: &str, name: &str, now: &Value) -> Result<()> {
        let state = self.objects_in_state(name).await?;
        let existing = judge::ids_by_name(&self.ledger(name))?;
        let (mut answers, mut adopted, mut absent) = (serde_json::Map::new(), 0, 0);
        for doubt in now["doubts"].as_array().context("doubts")? {
            let address = doubt["address"].as_str().context("a doubt names an address")?;
            let object = judge::name_of(name, address)?;
            let unknown = existing.get(&object).into_iter().flatten().filter(|id| state.get(&object) != Some(id));
            let answer = match unknown.collect::<Vec<_>>().as_slice() {
                [] => {
                    absent += 1;
                    json!("absent")
                }
                [id] => {
                    adopted += 1;
                    json!({"adopt": id})
                }
                several => bail!("{object} exists {} times: {several:?}", several.len()),
            };
            answers.insert(address.to_owned(), answer);
        }
        ensure!(!answers.is_empty(), "a run that needs recovery must say what is in doubt: {now}");
        let key = format!("recover-{run}-{}", self.tally.adopted + self.tally.absent);
        let path = format!("/v1/runs/{run}/recover");
        match self.door.call("POST", &path, Some(json!({ "answers": answers })), Some(&key)).await {
            Ok(_) => {
                self.tally.adopted += adopted;
                self.tally.absent += absent;
            }
            // The answer to an earlier try was lost, and the run has gone on.
            Err(error) if error.to_string().contains("run_not_in_doubt") => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn objects_in_state(&self, name: &str) -> Result<BTreeMap<String, String>> {
        let path = format!("/v1/tenants/chaos/deployments/{name}/state");
        judge::objects_of(name, &self.door.call("GET", &path, None, None).await?)
    }

    fn ledger(&self, name: &str) -> PathBuf {
        self.ledgers.join(name)
    }
}
