//! The vendors' side of the demo: `landform sim`, and a hand at it.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;

use super::size;
use super::stage::{Stage, surprise};
use crate::failure::Failure;

/// A simulated vendor: a process of its own, which ends with the demo.
pub struct Simulator {
    _process: Child,
    /// What clients are told.
    endpoint: String,
    control: String,
    http: reqwest::Client,
}

impl Simulator {
    pub async fn start(stage: &Stage, words: &[&str]) -> Result<Simulator, Failure> {
        println!("$ landform sim {}", words.join(" "));
        let mut command = stage.command(&[&["sim"], words, &["--json"]].concat());
        let lost = |error: std::io::Error| surprise(format!("the simulator did not start: {error}"));
        let mut process = command.stdout(std::process::Stdio::piped()).spawn().map_err(lost)?;
        let out = process.stdout.take().ok_or_else(|| surprise("the simulator has no output"))?;
        let line = BufReader::new(out).lines().next_line().await.map_err(lost)?.unwrap_or_default();
        let said: Value = serde_json::from_str(&line).unwrap_or_default();
        let (Some(endpoint), Some(control)) = (said["endpoint"].as_str(), said["control"].as_str()) else {
            return Err(surprise(format!("the simulator said {line:?}")));
        };
        println!("  it answers at {endpoint}");
        landform_api::install_cryptography();
        let http = reqwest::Client::builder().timeout(Duration::from_secs(30)).tls_certs_only([]).build();
        let http = http.map_err(|error| surprise(error.to_string()))?;
        let (endpoint, control) = (endpoint.trim_end_matches('/').to_owned(), control.to_owned());
        Ok(Simulator { _process: process, endpoint, control, http })
    }

    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    pub fn ledger_address(&self) -> String {
        format!("{}/ledger", self.control)
    }

    async fn ask(&self, request: reqwest::RequestBuilder) -> Result<Value, Failure> {
        let failed = |error: reqwest::Error| surprise(format!("the simulator: {error}"));
        let answer = request.send().await.and_then(reqwest::Response::error_for_status).map_err(failed)?;
        let text = answer.text().await.map_err(failed)?;
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    pub async fn ledger(&self) -> Result<Value, Failure> {
        self.ask(self.http.get(self.ledger_address())).await
    }

    /// The vendor must have nothing left.
    pub async fn expect_nothing(&self) -> Result<(), Failure> {
        println!("$ curl {}", self.ledger_address());
        let ledger = self.ledger().await?;
        println!("  {ledger}");
        match ledger.as_object().is_some_and(|kinds| kinds.values().all(|kind| size(kind) == 0)) {
            true => Ok(()),
            false => Err(surprise("the vendor still has something")),
        }
    }

    pub async fn order(&self, fault: Value) -> Result<(), Failure> {
        let address = format!("{}/faults", self.control);
        println!("$ curl -X POST {address} -H 'content-type: application/json' -d '{fault}'");
        self.ask(self.http.post(address).json(&fault)).await.map(drop)
    }

    /// How often an operation was asked for.
    pub async fn calls(&self, operation: &str) -> Result<u64, Failure> {
        let calls = self.ask(self.http.get(format!("{}/calls?limit=1", self.control))).await?;
        let outcomes = calls["totals"][operation].as_object();
        Ok(outcomes.into_iter().flatten().filter_map(|(_, count)| count.as_u64()).sum())
    }
}

/// A Versa Director.
pub struct Director(pub Simulator);

impl Director {
    pub async fn start(stage: &Stage) -> Result<Director, Failure> {
        Simulator::start(stage, &["versa", "--task-ms", "300"]).await.map(Director)
    }

    /// What an operator finds at the vendor for an object in doubt: its id, or that there is none.
    pub async fn id_of(&self, address: &str, branch: &str) -> Result<Option<String>, Failure> {
        let (kind, id) = match address.split('.').next().unwrap_or_default() {
            "versa_template" => ("templates", format!("{branch}-template")),
            "versa_device_group" => ("deviceGroups", format!("{branch}-group")),
            "versa_device" => ("devices", branch.to_owned()),
            "versa_ipsec_tunnel" => ("vpnProfiles", format!("{branch}-template/Customer-A/{branch}-tunnel")),
            _ => ("bgp", format!("{branch}/Customer-A-LAN-VR/1")),
        };
        Ok(self.0.ledger().await?[kind].get(&id).map(|_| id))
    }

    /// Every branch has one of each of its five objects at the vendor, and there is nothing else.
    pub async fn expect_branches(&self, count: usize) -> Result<(), Failure> {
        let ledger = self.0.ledger().await?;
        let kinds = ["templates", "deviceGroups", "devices", "deployedDevices", "vpnProfiles", "bgp"];
        if let Some(kind) = kinds.iter().find(|kind| size(&ledger[**kind]) != count) {
            return Err(surprise(format!("the vendor has {} {kind}, not {count}: {ledger}", size(&ledger[*kind]))));
        }
        println!("  the vendor's ledger: {count} branches, five objects each");
        Ok(())
    }

    pub async fn delete_bgp(&self, device: &str) -> Result<(), Failure> {
        let instance = "routing-instances/routing-instance/Customer-A-LAN-VR/protocols/bgp/rti-bgp/1";
        let path = format!("{}/api/config/devices/device/{device}/config/{instance}", self.0.endpoint);
        println!("$ curl -u somebody:else -X DELETE {path}");
        self.0.ask(self.0.http.delete(path).basic_auth("somebody", Some("else"))).await.map(drop)
    }
}
