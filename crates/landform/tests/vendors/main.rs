//! Templates for vendors, from the front door to the vendor's ledger. The vendors are simulators; the ledger is the judge.

mod accounts;
mod cato;
mod deaths;
mod drift;
mod gateway;
mod third;
mod versa;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use landform_sim::{Limits, Options, Running, Vendor};
use landform_testkit::landform::{Landform, Setup};
use landform_testkit::{parts, postgres};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// A template of this repository.
struct Site {
    template: &'static str,
    files: &'static [(&'static str, &'static str)],
    example: &'static str,
    connection: &'static str,
}

/// A vendor, a Landform with a customer of it, and a mirror of providers for the CLI.
struct Scene {
    vendor: Running,
    landform: Landform,
    setup: Setup,
    site: Site,
    http: reqwest::Client,
    _folder: tempfile::TempDir,
    _postgres: Option<postgres::Server>,
}

fn binary() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_landform"))
}

fn add_provider(folder: &Path, words: &[&str]) -> PathBuf {
    let mirror = folder.join("mirror");
    let mut command = Command::new(binary());
    let added = command.args(["provider", "add"]).args(words).arg("--providers").arg(&mirror).output().unwrap();
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    mirror
}

fn mirror_of_built_in(folder: &Path) -> PathBuf {
    add_provider(folder, &["--built-in", "versa"])
}

async fn vendor(vendor: Vendor, task: Duration) -> Running {
    vendor_with(vendor, task, Limits::none()).await
}

async fn vendor_with(vendor: Vendor, task: Duration, limits: Limits) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options = Options { task, limits, ..Options::default() };
    Running::start(vendor, listener, options).await.unwrap()
}

impl Scene {
    async fn set(vendor: Running, site: Site, variables: Value, mirror: impl FnOnce(&Path) -> PathBuf) -> Scene {
        Scene::set_on(None, vendor, site, variables, mirror).await
    }

    /// On SQLite without a server of its own.
    async fn set_on(
        postgres: Option<postgres::Server>,
        vendor: Running,
        site: Site,
        variables: Value,
        mirror: impl FnOnce(&Path) -> PathBuf,
    ) -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let setup = Setup {
            binary: binary(),
            data,
            database: postgres.as_ref().map(|server| server.url()),
            providers: mirror(folder.path()),
            tofu: Some(parts::tofu()),
            workers: 2,
            more: vec!["--allow-webhook-host".to_owned(), "127.0.0.1".to_owned()],
        };
        let landform = Landform::start(&setup).await.unwrap();
        let http = landform_testkit::http_client(Duration::from_secs(60));
        let scene = Scene { vendor, landform, setup, site, http, _folder: folder, _postgres: postgres };
        scene.landform.call("PUT", "/v1/tenants/acme", None).await.unwrap();
        scene.landform.push_template(scene.site.template, scene.site.files).await.unwrap();
        let path = format!("/v1/tenants/acme/connections/{}", scene.site.connection);
        scene.landform.call("PUT", &path, Some(json!({ "variables": variables }))).await.unwrap();
        scene
    }

    fn url(&self) -> String {
        format!("http://{}", self.vendor.address())
    }

    async fn ledger(&self) -> Value {
        self.http.get(format!("{}/_sim/ledger", self.url())).send().await.unwrap().json().await.unwrap()
    }

    async fn calls(&self) -> Value {
        let url = format!("{}/_sim/calls?limit=10000", self.url());
        self.http.get(url).send().await.unwrap().json().await.unwrap()
    }

    async fn sent_by_the_gateway(&self) -> BTreeMap<String, u64> {
        sent_by(&self.landform).await
    }

    async fn order(&self, fault: Value) {
        let answer = self.http.post(format!("{}/_sim/faults", self.url())).json(&fault).send().await.unwrap();
        assert_eq!(answer.status(), 204);
    }

    /// Wishes for a site, and waits for the end of the run.
    async fn wish(&self, name: &str, engine: &str, change: impl FnOnce(&mut Value)) -> Value {
        let mut inputs: Value = serde_json::from_str(self.site.example).unwrap();
        inputs["name"] = json!(name);
        change(&mut inputs);
        let body = json!({"template": self.site.template, "engine": engine,
            "connections": [self.site.connection], "inputs": inputs});
        let path = format!("/v1/tenants/acme/deployments/{name}");
        let request = self.landform.request(reqwest::Method::PUT, &path).header("prefer", "wait=100");
        request.json(&body).send().await.unwrap().json().await.unwrap()
    }

    async fn again(&self, name: &str) -> Value {
        let path = format!("/v1/tenants/acme/deployments/{name}/runs");
        let request = self.landform.request(reqwest::Method::POST, &path).header("prefer", "wait=100");
        request.json(&json!({})).send().await.unwrap().json().await.unwrap()
    }

    async fn destroy(&self, name: &str) -> Value {
        let path = format!("/v1/tenants/acme/deployments/{name}");
        let request = self.landform.request(reqwest::Method::DELETE, &path).header("prefer", "wait=100");
        request.send().await.unwrap().json().await.unwrap()
    }
}

/// How many calls of each operation a process's gateway has sent, whatever came of them.
async fn sent_by(landform: &Landform) -> BTreeMap<String, u64> {
    let request = landform.request(reqwest::Method::GET, "/metrics");
    let figures = request.send().await.unwrap().text().await.unwrap();
    let mut sent = BTreeMap::new();
    for line in figures.lines().filter(|line| line.starts_with("landform_vendor_calls_total{")) {
        if ["refused", "again", "unreachable"].iter().any(|word| line.contains(&format!("outcome=\"{word}\""))) {
            continue;
        }
        let (_, operation) = line.split_once("operation=\"").unwrap();
        let operation = operation.split_once('"').unwrap().0.to_owned();
        *sent.entry(operation).or_default() += line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
    }
    sent
}

fn status(answer: &Value) -> &str {
    answer["run"]["status"].as_str().unwrap_or_default()
}
