//! Drift at a vendor: found by looks that change nothing, told, healed. Through both engines, on both stores.

use landform_testkit::postgres;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::versa::{SITE, change, director, login};
use crate::{Scene, mirror_of_built_in, status};

const BERLIN: &str = "/v1/tenants/acme/deployments/berlin";

async fn scene(postgres: Option<postgres::Server>) -> Scene {
    let director = director().await;
    let variables = login(&director);
    Scene::set_on(postgres, director, SITE, variables, mirror_of_built_in).await
}

impl Scene {
    async fn get(&self, path: &str) -> Value {
        self.landform.call("GET", path, None).await.unwrap()
    }

    /// Posts and waits for the run's end, or until it waits for a person.
    async fn post(&self, path: &str) -> Value {
        let request = self.landform.request(reqwest::Method::POST, path).header("prefer", "wait=100");
        request.send().await.unwrap().json().await.unwrap()
    }

    async fn check(&self) -> Value {
        let checked = self.post(&format!("{BERLIN}/drift/check")).await;
        assert_eq!(status(&checked), "succeeded", "{checked}");
        assert_eq!(checked["run"]["kind"], "check", "{checked}");
        self.get(&format!("{BERLIN}/drift")).await
    }

    /// A peer that is deleted, a template with less bandwidth, and a tunnel to somewhere else: its address is sensitive.
    async fn meddle(&self) {
        let bgp = "/api/config/devices/device/berlin/config/routing-instances/routing-instance/Customer-A-LAN-VR";
        change(self, "DELETE", &format!("{bgp}/protocols/bgp/rti-bgp/1"), Value::Null).await;
        let ledger = self.ledger().await;
        let mut template = ledger["templates"]["berlin-template"].clone();
        template["versanms.sdwan-template-workflow"]["bandwidth"] = json!(50);
        change(self, "PUT", "/vnms/sdwan/workflow/templates/template/berlin-template", template).await;
        let mut profile = ledger["vpnProfiles"]["berlin-template/Customer-A/berlin-tunnel"].clone();
        profile["vpn-profile"]["peer"]["address"] = json!(["203.0.113.99"]);
        let place =
            "/api/config/devices/template/berlin-template/config/orgs/org-services/Customer-A/ipsec/vpn-profile";
        change(self, "PUT", &format!("{place}/berlin-tunnel"), profile).await;
    }

    async fn state_version(&self) -> Value {
        self.get(&format!("{BERLIN}/state/versions")).await["versions"][0]["version"].clone()
    }
}

/// Where messages go; the types of those that came.
async fn listener() -> (String, tokio::sync::mpsc::Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/hook", listener.local_addr().unwrap());
    let (sender, receiver) = tokio::sync::mpsc::channel(16);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut text = String::new();
            let message = loop {
                let mut buffer = [0; 4096];
                let read = stream.read(&mut buffer).await.unwrap();
                text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
                let body = text.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
                match serde_json::from_str::<Value>(body) {
                    Ok(message) => break message,
                    Err(_) => assert_ne!(read, 0, "{text}"),
                }
            };
            stream.write_all(b"HTTP/1.1 204 Thanks\r\nconnection: close\r\n\r\n").await.unwrap();
            let _ = sender.send(message).await;
        }
    });
    (address, receiver)
}

async fn drift_is_found_told_and_healed(engine: &str, postgres: Option<postgres::Server>) {
    let scene = scene(postgres).await;
    let made = scene.wish("berlin", engine, |_| ()).await;
    assert_eq!(status(&made), "succeeded", "{made}");
    let (address, mut heard) = listener().await;
    let spec = json!({"url": address, "events": ["drifted", "drift_resolved"]});
    scene.landform.call("POST", "/v1/tenants/acme/webhooks", Some(spec)).await.unwrap();
    let (address, mut heard_of_all) = listener().await;
    let spec = json!({"url": address, "events": ["drifted"]});
    scene.landform.call("POST", "/v1/webhooks", Some(spec)).await.unwrap();
    assert_eq!(scene.get(BERLIN).await["drift"]["status"], "unknown");
    assert_eq!(scene.check().await["status"], "none");

    scene.meddle().await;
    let version = scene.state_version().await;
    let drift = scene.check().await;
    assert_eq!(drift["status"], "drifted", "{drift}");
    assert_eq!(drift["summary"], json!({"changed": 2, "gone": 1}), "{drift}");
    let diff = &drift["diff"];
    assert_eq!((&diff[0]["address"], &diff[0]["gone"]), (&json!("versa_bgp_peer.branch"), &json!(true)), "{diff}");
    let hidden = &diff[1]["changes"][0];
    assert_eq!((&hidden["path"], &hidden["sensitive"]), (&json!("peer_address"), &json!(true)), "{diff}");
    let less = json!([{"path": "bandwidth_mbps", "before": 200, "after": 50, "sensitive": false}]);
    assert_eq!((&diff[2]["address"], &diff[2]["changes"]), (&json!("versa_template.branch"), &less), "{diff}");
    let text = scene.get(BERLIN).await.to_string() + &drift.to_string() + &scene.get("/v1/drift").await.to_string();
    for secret in ["203.0.113.99", "198.51.100.7", "battery", "s3cret"] {
        assert!(!text.contains(secret), "{secret} is in {text}");
    }
    // A look changes nothing: not the state, not the generation, not what the last change was.
    let shown = scene.get(BERLIN).await;
    assert_eq!(scene.state_version().await, version);
    assert_eq!((&shown["generation"], &shown["last_run"]["id"]), (&json!(1), &made["run"]["id"]), "{shown}");
    let events = scene.get(&format!("/v1/runs/{}/events", drift["run"].as_str().unwrap())).await;
    assert!(events.to_string().contains(r#""drift":{"changed":2,"gone":1}"#), "{events}");
    let told = heard.recv().await.unwrap();
    assert_eq!((&told["type"], &told["run"]), (&json!("deployment.drifted"), &drift["run"]), "{told}");
    let told = heard_of_all.recv().await.unwrap();
    assert_eq!((&told["type"], &told["tenant"]), (&json!("deployment.drifted"), &json!("acme")), "{told}");
    let fleet = scene.get("/v1/drift").await;
    assert_eq!(fleet["deployments"][0]["deployment"], "berlin", "{fleet}");
    assert_eq!(fleet["groups"].as_array().map(Vec::len), Some(3), "{fleet}");
    assert_eq!(scene.get("/v1/drift?status=none").await["deployments"], json!([]));

    let healed = scene.post(&format!("{BERLIN}/drift/heal")).await;
    assert_eq!(status(&healed), "succeeded", "{healed}");
    let ledger = scene.ledger().await;
    assert!(ledger["bgp"]["berlin/Customer-A-LAN-VR/1"].is_object(), "{ledger}");
    let drift = &scene.get(BERLIN).await["drift"];
    assert_eq!((&drift["status"], &drift["run"]), (&json!("none"), &healed["run"]["id"]), "{drift}");
    let told = heard.recv().await.unwrap();
    assert_eq!((&told["type"], &told["run"]), (&json!("deployment.drift_resolved"), &healed["run"]["id"]), "{told}");
    assert_eq!(scene.check().await["status"], "none");

    // A schedule stays until it is taken away, and goes with the deployment.
    let path = format!("{BERLIN}/drift/schedule");
    let often = scene.landform.call("PUT", &path, Some(json!({"every": 60}))).await.unwrap();
    assert_eq!(often["schedule"]["every"], 60, "{often}");
    let never = scene.landform.call("PUT", &path, Some(json!({"every": null}))).await.unwrap();
    assert_eq!(never["schedule"], Value::Null, "{never}");
    assert_eq!(status(&scene.destroy("berlin").await), "succeeded");
}

#[tokio::test]
async fn drift_is_found_told_and_healed_natively_on_sqlite() {
    drift_is_found_told_and_healed("native", None).await;
}

#[tokio::test]
async fn drift_is_found_told_and_healed_through_the_cli_on_postgres() {
    drift_is_found_told_and_healed("cli", Some(postgres::Server::start().unwrap())).await;
}

/// Where changes need approval, healing does too; and a look makes no plan stale that waits for it.
async fn approval_and_drift_go_together(engine: &str, postgres: Option<postgres::Server>) {
    let scene = scene(postgres).await;
    assert_eq!(status(&scene.wish("berlin", engine, |_| ()).await), "succeeded");
    let mut spec: Value = json!({"template": "versa-branch", "engine": engine, "connections": ["versa"],
        "requires_approval": true, "inputs": serde_json::from_str::<Value>(SITE.example).unwrap()});
    spec["inputs"]["bandwidth_mbps"] = json!(500);
    let put = scene.landform.request(reqwest::Method::PUT, BERLIN).header("prefer", "wait=100").json(&spec);
    let waiting: Value = put.send().await.unwrap().json().await.unwrap();
    assert_eq!(status(&waiting), "awaiting_approval", "{waiting}");
    let run = format!("/v1/runs/{}", waiting["run"]["id"].as_str().unwrap());

    // Scheduled: the first look comes by itself.
    let path = format!("{BERLIN}/drift/schedule");
    scene.landform.call("PUT", &path, Some(json!({"every": 3600}))).await.unwrap();
    let known = loop {
        let known = scene.get(&format!("{BERLIN}/drift")).await;
        if known["status"] != "unknown" {
            break known;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    };
    assert_eq!(known["status"], "none", "{known}");
    let looked = scene.get(&format!("/v1/runs/{}", known["run"].as_str().unwrap())).await;
    assert_eq!((&looked["kind"], &looked["author"]), (&json!("check"), &json!("schedule")), "{looked}");
    assert_eq!(scene.check().await["status"], "none");
    assert_eq!(scene.get(&run).await["status"], "awaiting_approval");
    scene.landform.call("POST", &format!("{run}/approve"), None).await.unwrap();
    let applied = scene.ended(&run).await;
    assert_eq!(applied["status"], "succeeded", "{applied}");

    scene.meddle().await;
    assert_eq!(scene.check().await["summary"], json!({"changed": 2, "gone": 1}));
    let healing = scene.post(&format!("{BERLIN}/drift/heal")).await;
    assert_eq!(status(&healing), "awaiting_approval", "{healing}");
    assert_eq!(healing["run"]["plan"]["creates"], 1, "{healing}");
    let run = format!("/v1/runs/{}", healing["run"]["id"].as_str().unwrap());
    assert_eq!(scene.get(BERLIN).await["drift"]["status"], "drifted", "nobody has decided yet");
    // Somebody looks again in the meantime, and the plan is still good.
    assert_eq!(scene.check().await["status"], "drifted");
    scene.landform.call("POST", &format!("{run}/approve"), None).await.unwrap();
    let healed = scene.ended(&run).await;
    assert_eq!(healed["status"], "succeeded", "{healed}");
    assert_eq!(scene.get(BERLIN).await["drift"]["status"], "none");
    assert_eq!(scene.check().await["status"], "none");
}

impl Scene {
    async fn ended(&self, run: &str) -> Value {
        loop {
            let now = self.get(run).await;
            if now["finished"] == true {
                return now;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test]
async fn approval_and_drift_go_together_natively_on_postgres() {
    approval_and_drift_go_together("native", Some(postgres::Server::start().unwrap())).await;
}

#[tokio::test]
async fn approval_and_drift_go_together_through_the_cli_on_sqlite() {
    approval_and_drift_go_together("cli", None).await;
}

/// What makes no sense is said, with a code.
#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let scene = scene(None).await;
    let ask = async |method: &str, path: &str, body: Option<Value>| -> (u16, String) {
        let mut request = scene.landform.request(method.parse().unwrap(), path);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap();
        let code = answer.status().as_u16();
        (code, answer.json::<Value>().await.unwrap()["code"].as_str().unwrap_or_default().to_owned())
    };
    let nowhere = "/v1/tenants/acme/deployments/nowhere/drift";
    for (method, path, body) in [
        ("GET", nowhere.to_owned(), None),
        ("POST", format!("{nowhere}/check"), None),
        ("POST", format!("{nowhere}/heal"), None),
        ("PUT", format!("{nowhere}/schedule"), Some(json!({"every": 3600}))),
    ] {
        assert_eq!(ask(method, &path, body).await, (404, "deployment_unknown".to_owned()), "{method} {path}");
    }
    assert_eq!(status(&scene.wish("berlin", "native", |_| ()).await), "succeeded");
    for every in [json!(1), json!(1_099_511_627_776i64), json!("6h")] {
        let refused = ask("PUT", &format!("{BERLIN}/drift/schedule"), Some(json!({"every": every}))).await;
        assert_eq!(refused, (400, "request_invalid".to_owned()), "{every}");
    }
    for query in ["status=healed", "after=x", "nonsense=1"] {
        assert_eq!(ask("GET", &format!("/v1/drift?{query}"), None).await, (400, "request_invalid".to_owned()));
    }
}
