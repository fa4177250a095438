//! The gateway between clients and a vendor. The vendor is a simulator that counts exactly, and its log is the judge.

mod answers;
mod budget;
mod once;

use std::sync::Arc;
use std::time::Duration;

use landform_base::secret::SecretString;
use landform_gateway::{Booking, Gateway, Seat, Urgency, Vendor, vendor};
use landform_sim::{Limits, Options, Running};
use serde_json::{Value, json};
use tokio::net::TcpListener;

struct Scene {
    cato: Running,
    gateway: Gateway,
    http: reqwest::Client,
}

/// What is known about the vendor, but for the limits and what else a test wants to be different.
fn data(limits: Value, more: Value) -> Arc<Vendor> {
    let mut vendor = json!({"vendor": "cato", "provider": "catonetworks/cato",
        "endpoint": {"attribute": "baseurl", "variable": "cato_url"}, "account": ["cato_account_id"],
        "operations": {"graphql": {"inside": ["site"]}}, "limits": limits,
        "rate_limited": {"errors": ["rate limit for operation"]}});
    for (name, value) in more.as_object().unwrap() {
        vendor[name] = value.clone();
    }
    vendor::parse(json!({"vendors": [vendor]}).to_string().as_bytes()).unwrap().remove(0)
}

impl Scene {
    async fn set(limits: Value) -> Scene {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let options = Options { limits: Limits::from_json(&limits.to_string()).unwrap(), ..Options::default() };
        let cato = Running::start(landform_sim::Vendor::Cato, listener, options).await.unwrap();
        let http = landform_testkit::http_client(Duration::from_secs(60));
        Scene { cato, gateway: Gateway::start(None).await.unwrap(), http }
    }

    fn seat(&self, tenant: &str, vendor: &Arc<Vendor>) -> Seat {
        self.seat_at(format!("http://{}/api/v1/graphql2", self.cato.address()), tenant, vendor)
    }

    fn seat_at(&self, endpoint: String, tenant: &str, vendor: &Arc<Vendor>) -> Seat {
        let booking = Booking {
            tenant: tenant.to_owned(),
            urgency: Urgency::Person,
            vendor: vendor.clone(),
            endpoint: SecretString::from(endpoint),
            account: vendor.account_key(&["1"]),
            authority: None,
        };
        self.gateway.take_seat(booking).unwrap()
    }

    async fn ask(&self, address: &str, query: &str) -> (u16, Value, reqwest::header::HeaderMap) {
        let request = self.http.post(address).header("x-api-key", "a-key").header("x-account-id", "1");
        let answer = request.json(&json!({ "query": query })).send().await.unwrap();
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        (status, serde_json::from_str(&answer.text().await.unwrap()).unwrap_or_default(), headers)
    }

    async fn control(&self, path: &str) -> Value {
        let url = format!("http://{}/_sim/{path}", self.cato.address());
        self.http.get(url).send().await.unwrap().json().await.unwrap()
    }

    async fn order(&self, fault: Value) {
        let url = format!("http://{}/_sim/faults", self.cato.address());
        assert_eq!(self.http.post(url).json(&fault).send().await.unwrap().status(), 204);
    }

    async fn sites(&self) -> usize {
        self.control("ledger").await["accounts"]["1"]["sites"].as_array().map_or(0, Vec::len)
    }
}

fn address(seat: &Seat) -> &str {
    seat.address().expose()
}

const LOOK: &str = r#"{ entityLookup(accountID: "1", type: site) { total } }"#;

fn add_site(name: &str) -> String {
    let location = r#"siteLocation: {countryCode: "DE", timezone: "Europe/Berlin"}"#;
    let input = format!(r#"{{name: "{name}", nativeNetworkRange: "10.0.0.0/24", {location}}}"#);
    format!(r#"mutation {{ site(accountId: "1") {{ made: addIpsecIkeV2Site(input: {input}) {{ siteId }} }} }}"#)
}
