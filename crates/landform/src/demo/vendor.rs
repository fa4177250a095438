//! The vendor's side of the demo: `landform sim versa`, and a hand at it.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;

use super::size;
use super::stage::{Stage, surprise};
use crate::failure::Failure;

/// A Director of its own process, which ends with the demo.
pub struct Director {
    _process: Child,
    url: String,
    http: reqwest::Client,
}

impl Director {
    pub async fn start(stage: &Stage) -> Result<Director, Failure> {
        println!("$ landform sim versa --task-ms 300");
        let mut command = stage.command(&["sim", "versa", "--task-ms", "300", "--json"]);
        let lost = |error: std::io::Error| surprise(format!("the simulator did not start: {error}"));
        let mut process = command.stdout(std::process::Stdio::piped()).spawn().map_err(lost)?;
        let out = process.stdout.take().ok_or_else(|| surprise("the simulator has no output"))?;
        let line = BufReader::new(out).lines().next_line().await.map_err(lost)?.unwrap_or_default();
        let said: Value = serde_json::from_str(&line).unwrap_or_default();
        let url = said["endpoint"].as_str().ok_or_else(|| surprise(format!("the simulator said {line:?}")))?;
        let url = url.trim_end_matches('/').to_owned();
        println!("  the Director answers at {url}");
        landform_api::install_cryptography();
        let http = reqwest::Client::builder().timeout(Duration::from_secs(30)).tls_certs_only([]).build();
        let http = http.map_err(|error| surprise(error.to_string()))?;
        Ok(Director { _process: process, url, http })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn ledger_address(&self) -> String {
        format!("{}/_sim/ledger", self.url)
    }

    async fn ask(&self, request: reqwest::RequestBuilder) -> Result<Value, Failure> {
        let failed = |error: reqwest::Error| surprise(format!("the simulator: {error}"));
        let answer = request.send().await.and_then(reqwest::Response::error_for_status).map_err(failed)?;
        let text = answer.text().await.map_err(failed)?;
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    async fn ledger(&self) -> Result<Value, Failure> {
        self.ask(self.http.get(self.ledger_address())).await
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
        Ok(self.ledger().await?[kind].get(&id).map(|_| id))
    }

    /// Every branch has one of each of its five objects at the vendor, and there is nothing else.
    pub async fn expect_branches(&self, count: usize) -> Result<(), Failure> {
        let ledger = self.ledger().await?;
        let kinds = ["templates", "deviceGroups", "devices", "deployedDevices", "vpnProfiles", "bgp"];
        if let Some(kind) = kinds.iter().find(|kind| size(&ledger[**kind]) != count) {
            return Err(surprise(format!("the vendor has {} {kind}, not {count}: {ledger}", size(&ledger[*kind]))));
        }
        println!("  the vendor's ledger: {count} branches, five objects each");
        Ok(())
    }

    pub async fn expect_nothing(&self) -> Result<(), Failure> {
        println!("$ curl {}", self.ledger_address());
        let ledger = self.ledger().await?;
        println!("  {ledger}");
        match ledger.as_object().is_some_and(|kinds| kinds.values().all(|kind| size(kind) == 0)) {
            true => Ok(()),
            false => Err(surprise("the vendor still has something")),
        }
    }

    pub async fn delete_bgp(&self, device: &str) -> Result<(), Failure> {
        let instance = "routing-instances/routing-instance/Customer-A-LAN-VR/protocols/bgp/rti-bgp/1";
        let path = format!("{}/api/config/devices/device/{device}/config/{instance}", self.url);
        println!("$ curl -u somebody:else -X DELETE {path}");
        self.ask(self.http.delete(path).basic_auth("somebody", Some("else"))).await.map(drop)
    }

    pub async fn order(&self, fault: Value) -> Result<(), Failure> {
        println!("$ curl -X POST {}/_sim/faults -H 'content-type: application/json' -d '{fault}'", self.url);
        self.ask(self.http.post(format!("{}/_sim/faults", self.url)).json(&fault)).await.map(drop)
    }

    /// How often an operation was asked for.
    pub async fn calls(&self, operation: &str) -> Result<u64, Failure> {
        let calls = self.ask(self.http.get(format!("{}/_sim/calls?limit=1", self.url))).await?;
        let outcomes = calls["totals"][operation].as_object();
        Ok(outcomes.into_iter().flatten().filter_map(|(_, count)| count.as_u64()).sum())
    }
}
