//! The Cato simulator, as its clients see it.

mod any_query;
mod limits_and_faults;
mod vendor;

use landform_sim::{Limits, Options, Running, Vendor};
use serde_json::{Value, json};
use tokio::net::TcpListener;

struct Cato {
    _running: Running,
    root: String,
    http: reqwest::Client,
}

impl Cato {
    async fn start(limits: Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let options = Options { limits, ..Options::default() };
        let running = Running::start(Vendor::Cato, listener, options).await.expect("a simulator");
        let root = format!("http://{}", running.address());
        Self { _running: running, root, http: landform_testkit::http_client(std::time::Duration::from_secs(60)) }
    }

    fn endpoint(&self) -> String {
        format!("{}/api/v1/graphql2", self.root)
    }

    async fn ask(&self, query: &str, variables: Value) -> reqwest::Result<reqwest::Response> {
        let request = self.http.post(self.endpoint()).header("x-api-key", "a-key").header("x-account-id", "1");
        request.json(&json!({"query": query, "variables": variables})).send().await
    }

    async fn answer(&self, query: &str, variables: Value) -> Value {
        self.ask(query, variables).await.expect("an answer").json().await.expect("JSON")
    }

    async fn add_site(&self, name: &str) -> Value {
        self.answer(ADD_SITE, json!({"name": name})).await
    }

    async fn control(&self, path: &str) -> Value {
        let answer = self.http.get(format!("{}/_sim/{path}", self.root)).send().await.expect("an answer");
        answer.json().await.expect("JSON")
    }

    async fn order(&self, fault: Value) {
        let answer = self.http.post(format!("{}/_sim/faults", self.root)).json(&fault).send().await.expect("an answer");
        assert_eq!(answer.status(), 204);
    }

    async fn sites(&self) -> usize {
        let ledger = self.control("ledger").await;
        ledger["accounts"]["1"]["sites"].as_array().map_or(0, Vec::len)
    }
}

const ADD_SITE: &str = r#"mutation add($name: String!) {
  site(accountId: "1") {
    made: addIpsecIkeV2Site(input: {
      name: $name, nativeNetworkRange: "10.0.0.0/24", siteLocation: {countryCode: "DE", timezone: "Europe/Berlin"}
    }) { siteId }
  }
}"#;
