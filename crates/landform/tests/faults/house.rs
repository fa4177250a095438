//! A Landform with the ledger provider, to be broken.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use landform_testkit::landform::{Landform, Setup};
use landform_testkit::{judge, ledger, parts, postgres};
use serde_json::{Value, json};

/// One object whose making takes so long: half of it before the ledger has it, half after.
pub const ONE_OBJECT: &str = r#"
terraform {
  required_providers {
    ledger = { source = "landform/ledger" }
  }
}
variable "ledger" { type = string }
variable "name" { type = string }
variable "size" { type = number }
variable "delay" { type = number }
provider "ledger" { ledger = var.ledger }
resource "ledger_object" "it" {
  name     = var.name
  size     = var.size
  delay_ms = var.delay
}
output "id" { value = ledger_object.it.id }
output "name" { value = ledger_object.it.name }
"#;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    Sqlite,
    Postgres,
}

pub struct House {
    pub root: tempfile::TempDir,
    pub database: Option<postgres::Server>,
    pub setup: Setup,
    pub landform: Option<Landform>,
}

impl House {
    pub async fn build(memory: Memory) -> House {
        House::build_with(memory, &[]).await
    }

    pub async fn build_with(memory: Memory, more: &[&str]) -> House {
        let database = (memory == Memory::Postgres).then(|| postgres::Server::start_durable().unwrap());
        let url = database.as_ref().map(postgres::Server::url);
        House::build_on(database, url, more).await
    }

    /// On a database that is reached through this address.
    pub async fn build_on(database: Option<postgres::Server>, url: Option<String>, more: &[&str]) -> House {
        let root = tempfile::tempdir().unwrap();
        let setup = Setup {
            binary: env!("CARGO_BIN_EXE_landform").into(),
            data: root.path().join("data"),
            database: url,
            providers: root.path().join("mirror"),
            tofu: Some(parts::tofu()),
            workers: 50,
            more: ["--cli-may-write", &root.path().display().to_string()]
                .iter()
                .chain(more)
                .map(|argument| (*argument).to_owned())
                .collect(),
        };
        std::fs::create_dir(&setup.data).unwrap();
        ledger::install(&setup.providers).unwrap();
        let landform = Landform::start(&setup).await.unwrap();
        landform.call("PUT", "/v1/tenants/acme", Some(json!({}))).await.unwrap();
        landform.push_template("one", &[("main.tf", ONE_OBJECT)]).await.unwrap();
        House { root, database, setup, landform: Some(landform) }
    }

    pub fn landform(&self) -> &Landform {
        self.landform.as_ref().expect("it runs")
    }

    pub fn ledger(&self) -> PathBuf {
        self.root.path().join("ledger")
    }

    pub fn body(&self, engine: &str, name: &str, size: u32, delay: u32) -> Value {
        let inputs = json!({"ledger": self.ledger(), "name": name, "size": size, "delay": delay});
        json!({"template": "one", "engine": engine, "inputs": inputs})
    }

    /// Asks for a deployment and returns its run's id.
    pub async fn put(&self, engine: &str, name: &str, delay: u32) -> String {
        let path = format!("/v1/tenants/acme/deployments/{name}");
        let answer = self.landform().call("PUT", &path, Some(self.body(engine, name, 1, delay))).await.unwrap();
        answer["run"]["id"].as_str().unwrap().to_owned()
    }

    pub async fn run(&self, run: &str) -> Value {
        self.landform().call("GET", &format!("/v1/runs/{run}"), None).await.unwrap()
    }

    /// Waits until the run is in one of these states.
    pub async fn until(&self, run: &str, wanted: &[&str]) -> Value {
        let path = format!("/v1/runs/{run}");
        wait_for(&format!("{run} to be {wanted:?}"), async || {
            // While the database is away there is no answer.
            let now = self.landform().call("GET", &path, None).await.ok()?;
            let status = now["status"].as_str()?;
            let under_way = ["queued", "planning", "awaiting_approval", "applying"].contains(&status);
            assert!(under_way || wanted.contains(&status), "it should become {wanted:?}: {now}");
            wanted.contains(&status).then_some(now)
        })
        .await
    }

    /// Waits until the provider is at work on something.
    pub async fn until_touched(&self, run: &str) {
        self.until(run, &["applying"]).await;
        let path = format!("/v1/runs/{run}/events");
        wait_for("an object to be started", async || {
            let events = self.landform().call("GET", &path, None).await.ok()?;
            events.to_string().contains("\"started\"").then_some(())
        })
        .await;
    }

    /// Answers the run's only doubt from the ledger, as an operator would, and waits for its end.
    pub async fn recover(&self, run: &str, name: &str) {
        let found: Vec<String> =
            ledger::read(&self.ledger()).unwrap().named(name).iter().map(|o| o.id.clone()).collect();
        let answer = match found.as_slice() {
            [] => json!("absent"),
            [id] => json!({"adopt": id}),
            several => panic!("{name} exists {} times", several.len()),
        };
        let body = json!({"answers": {"ledger_object.it": answer}});
        self.landform().call("POST", &format!("/v1/runs/{run}/recover"), Some(body)).await.unwrap();
        self.until(run, &["succeeded", "unchanged"]).await;
    }

    /// Lets the run end, with an operator's help if it asks for that, and compares what exists with the state.
    pub async fn settle(&self, run: &str, name: &str) {
        let now = self.until(run, &["succeeded", "unchanged", "needs_recovery"]).await;
        if now["status"] == "needs_recovery" {
            self.recover(run, name).await;
        }
        self.agree(name).await;
    }

    pub async fn agree(&self, name: &str) {
        let path = format!("/v1/tenants/acme/deployments/{name}/state");
        let state = self.landform().call("GET", &path, None).await.unwrap();
        let known: Vec<String> = judge::objects_of(name, &state).unwrap().into_values().collect();
        let ledger = ledger::read(&self.ledger()).unwrap();
        let existing: Vec<String> = ledger.named(name).iter().map(|object| object.id.clone()).collect();
        assert_eq!((existing.len(), existing), (1, known), "what exists, and what the state has");
    }

    pub async fn restart(&mut self) {
        self.landform = Some(Landform::start(&self.setup).await.unwrap());
    }

    /// A second Landform on the same database, with the same key.
    pub async fn another(&self) -> Landform {
        Landform::start(&self.another_setup()).await.unwrap()
    }

    pub fn another_setup(&self) -> Setup {
        let data = self.root.path().join("another");
        std::fs::create_dir(&data).unwrap();
        for secret in ["master.key", "admin.token"] {
            std::fs::copy(self.setup.data.join(secret), data.join(secret)).unwrap();
        }
        let Setup { binary, database, providers, tofu, more, .. } = &self.setup;
        Setup {
            binary: binary.clone(),
            data,
            database: database.clone(),
            providers: providers.clone(),
            tofu: tofu.clone(),
            workers: 4,
            more: more.clone(),
        }
    }

    /// Processes that run a program of the mirror, or an OpenTofu that works below this house.
    pub fn children(&self, of: &str) -> Vec<u32> {
        let (mirror, root, tofu) = (&self.setup.providers, self.root.path(), parts::tofu());
        processes(|program, folder| match of {
            "tofu" => program == tofu && folder.starts_with(root),
            _ => program.starts_with(mirror),
        })
    }
}

/// Results that a worker keeps beside the store.
pub fn kept(spool: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(spool).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|of| of == "json")).collect()
}

pub fn processes(wanted: impl Fn(&Path, &Path) -> bool) -> Vec<u32> {
    let link = |pid: u32, name: &str| std::fs::read_link(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| wanted(&link(*pid, "exe"), &link(*pid, "cwd"))).collect()
}

pub fn signal(name: &str, pid: u32) {
    let sent = std::process::Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(sent.unwrap().success(), "{name} to {pid}");
}

const PATIENCE: Duration = Duration::from_secs(120);

pub async fn wait_for<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "waiting for {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
