//! The Versa simulator, as a client of the Director sees it.

use std::time::Duration;

use landform_sim::{Options, Running, Vendor};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;

struct Director {
    _running: Running,
    root: String,
    http: reqwest::Client,
}

impl Director {
    async fn start(task: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let options = Options { task, ..Options::default() };
        let running = Running::start(Vendor::Versa, listener, options).await.expect("a simulator");
        let root = format!("http://{}", running.address());
        Self { _running: running, root, http: landform_testkit::http_client(Duration::from_secs(60)) }
    }

    async fn call(&self, method: Method, path: &str, body: Value) -> (StatusCode, Value) {
        let request = self.http.request(method, format!("{}{path}", self.root)).basic_auth("admin", Some("secret"));
        let request = if body.is_null() { request } else { request.json(&body) };
        let answer = request.send().await.expect("an answer");
        let status = answer.status();
        let text = answer.text().await.expect("a body");
        (status, if text.is_empty() { Value::Null } else { serde_json::from_str(&text).expect("JSON") })
    }

    async fn done(&self, method: Method, path: &str, body: Value) -> Value {
        let (status, body) = self.call(method.clone(), path, body).await;
        assert!(status.is_success(), "{method} {path}: {status} {body}");
        body
    }

    async fn task(&self, answer: &Value) -> Value {
        let id = answer["TaskResponse"]["task-id"].as_str().expect("a task");
        loop {
            let task = self.done(Method::GET, &format!("/vnms/tasks/task/{id}"), Value::Null).await;
            let status = task["versa-tasks.task"]["versa-tasks.task-status"].clone();
            if status != "IN_PROGRESS" {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// A template, a group and a device that is saved and not deployed.
    async fn branch(&self) {
        self.done(Method::POST, "/vnms/sdwan/workflow/templates/template", template("Customer-A")).await;
        self.done(Method::POST, "/vnms/sdwan/workflow/templates/template/deploy/spoke", Value::Null).await;
        let group = json!({"device-group": {"name": "spokes", "dg:organization": "Customer-A", "dg:poststaging-template": "spoke"}});
        self.done(Method::POST, "/nextgen/deviceGroup", group).await;
        let free = self.done(Method::GET, "/vnms/sdwan/global/Branch/availableId/withSerialNumber", Value::Null).await
            ["AvailableIDResponseModel"]["branchId"]
            .clone();
        self.done(Method::POST, "/vnms/sdwan/workflow/devices/device", device("berlin", &free)).await;
    }

    async fn ledger(&self) -> Value {
        let answer = self.http.get(format!("{}/_sim/ledger", self.root)).send().await.expect("an answer");
        answer.json().await.expect("JSON")
    }

    async fn order(&self, fault: Value) {
        let answer = self.http.post(format!("{}/_sim/faults", self.root)).json(&fault).send().await.expect("an answer");
        assert_eq!(answer.status(), 204);
    }
}

fn template(organization: &str) -> Value {
    json!({"versanms.sdwan-template-workflow": {"templateName": "spoke", "providerOrg": {"name": organization}}})
}

fn device(name: &str, site: &Value) -> Value {
    json!({"versanms.sdwan-device-workflow": {"deviceName": name, "siteId": site, "orgName": "Customer-A",
        "serialNumber": "SN1", "deviceGroup": "spokes", "locationInfo": {"country": "de"}}})
}

const DEPLOY: &str = "/vnms/sdwan/workflow/devices/device/deploy/berlin";
const BERLIN: &str = "/vnms/sdwan/workflow/devices/device/berlin";
const PROFILE: &str =
    "/api/config/devices/template/spoke/config/orgs/org-services/Customer-A/ipsec/vpn-profile/to%20cato";
const BGP: &str =
    "/api/config/devices/device/berlin/config/routing-instances/routing-instance/Customer-A-LAN-VR/protocols/bgp";

#[tokio::test]
async fn a_branch_from_template_to_bgp_and_back() {
    let director = Director::start(Duration::from_millis(20)).await;
    director.branch().await;
    assert_eq!(
        director.done(Method::GET, BERLIN, Value::Null).await["versanms.sdwan-device-workflow"]["status"],
        "Saved"
    );
    let (status, task) = director.call(Method::POST, DEPLOY, Value::Null).await;
    assert_eq!(status, 202);
    assert_eq!(director.ledger().await["deployedDevices"], json!([]), "not before the task has ended");
    assert_eq!(director.task(&task).await, "COMPLETED");
    let berlin = director.done(Method::GET, BERLIN, Value::Null).await;
    assert_eq!(berlin["versanms.sdwan-device-workflow"]["status"], "Deployed");
    director.done(Method::PUT, PROFILE, json!({"vpn-profile": {"name": "to cato"}})).await;
    let apply = director.done(Method::POST, "/vnms/template/applyTemplate/spoke", Value::Null).await;
    assert_eq!(director.task(&apply).await, "COMPLETED");
    director.done(Method::POST, BGP, json!({"rti-bgp": [{"instance-id": 7}]})).await;
    let ledger = director.ledger().await;
    assert_eq!(ledger["vpnProfiles"]["spoke/Customer-A/to cato"]["vpn-profile"]["name"], "to cato");
    assert!(ledger["bgp"]["berlin/Customer-A-LAN-VR/7"].is_object());
    director.done(Method::DELETE, &format!("{BGP}/rti-bgp/7"), Value::Null).await;
    director.done(Method::DELETE, PROFILE, Value::Null).await;
    director.done(Method::DELETE, "/vnms/sdwan/workflow/devices/berlin", Value::Null).await;
    director.done(Method::DELETE, "/nextgen/deviceGroup/spokes", Value::Null).await;
    director.done(Method::DELETE, "/vnms/sdwan/workflow/templates/template/spoke", Value::Null).await;
    let left = director.ledger().await;
    assert!(left.as_object().expect("a ledger").values().all(|kind| kind.as_object().is_none_or(|it| it.is_empty())));
    assert_eq!((&left["deployedDevices"], &left["deployedTemplates"]), (&json!([]), &json!([])));
}

#[tokio::test]
async fn what_is_needed_cannot_be_deleted_and_what_is_missing_is_named() {
    let director = Director::start(Duration::ZERO).await;
    director.branch().await;
    for (method, path, body, status, word) in [
        (Method::DELETE, "/vnms/sdwan/workflow/templates/template/spoke", Value::Null, 409, "spokes"),
        (Method::DELETE, "/nextgen/deviceGroup/spokes", Value::Null, 409, "berlin"),
        (Method::POST, "/vnms/sdwan/workflow/templates/template", template("Customer-B"), 409, "exists"),
        (Method::POST, "/vnms/sdwan/workflow/devices/device", device("munich", &json!("101")), 409, "berlin"),
        (Method::POST, "/vnms/sdwan/workflow/devices/device/deploy/paris", Value::Null, 404, "paris"),
        (Method::GET, "/vnms/tasks/task/99", Value::Null, 404, "99"),
        (Method::PUT, BERLIN, json!({"versanms.sdwan-device-workflow": {}}), 404, "device group"),
        (Method::POST, "/nowhere", Value::Null, 404, "not simulated"),
    ] {
        let (got, answer) = director.call(method, path, body).await;
        assert_eq!(got.as_u16(), status, "{path} {answer}");
        assert!(answer["message"].as_str().expect("a message").contains(word), "{answer}");
    }
}

#[tokio::test]
async fn a_task_can_fail_after_it_was_accepted() {
    let director = Director::start(Duration::from_millis(10)).await;
    director.branch().await;
    director.order(json!({"operation": "device.deploy", "kind": "fail_later"})).await;
    let failing = director.done(Method::POST, DEPLOY, Value::Null).await;
    assert_eq!(director.task(&failing).await, "FAILED");
    assert_eq!(director.ledger().await["deployedDevices"], json!([]));
    let again = director.done(Method::POST, DEPLOY, Value::Null).await;
    assert_eq!(director.task(&again).await, "COMPLETED");
    assert_eq!(director.ledger().await["deployedDevices"], json!(["berlin"]));
}

#[tokio::test]
async fn users_log_in_with_a_password_or_a_token() {
    let director = Director::start(Duration::ZERO).await;
    let organizations = format!("{}/nextgen/organization", director.root);
    let anonymous = director.http.get(&organizations).send().await.expect("an answer");
    assert_eq!(anonymous.status(), 401);
    let wrong = director.http.get(&organizations).basic_auth("admin", Some("wrong")).send().await.expect("an answer");
    assert_eq!(wrong.status(), 401);
    let login =
        json!({"grant_type": "password", "client_id": "c", "client_secret": "s", "username": "u", "password": "p"});
    let token = director.done(Method::POST, "/auth/token", login).await;
    let bearer = token["access_token"].as_str().expect("a token");
    let known = director.http.get(&organizations).bearer_auth(bearer).send().await.expect("an answer");
    assert_eq!(known.status(), 200);
    let refresh = json!({"grant_type": "refresh_token", "refresh_token": token["refresh_token"]});
    assert!(director.done(Method::POST, "/auth/token", refresh).await["access_token"].is_string());
    let unknown = director.http.get(&organizations).bearer_auth("access-99").send().await.expect("an answer");
    assert_eq!(unknown.status(), 401);
}
