//! Branches at a Versa Director, through both engines and through the real OpenTofu. The Director is the simulator; its
//! ledger is the judge.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use landform_sim::{Options, Running, Vendor};
use landform_testkit::landform::{Landform, Setup};
use landform_testkit::parts;
use landform_testkit::tofu::Tofu;
use serde_json::{Value, json};
use tokio::net::TcpListener;

const TEMPLATE: &str = include_str!("../../../templates/versa-branch/main.tf");
const EXAMPLE: &str = include_str!("../../../templates/versa-branch/example.json");

/// A Director, a Landform, and a mirror that has the provider for the CLI.
struct Scene {
    director: Running,
    landform: Landform,
    http: reqwest::Client,
    _folder: tempfile::TempDir,
}

fn binary() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_landform"))
}

fn mirror(folder: &Path) -> PathBuf {
    let mirror = folder.join("mirror");
    let words = ["provider", "add", "--built-in", "versa", "--providers"];
    let added = Command::new(binary()).args(words).arg(&mirror).output().unwrap();
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    mirror
}

async fn director() -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options = Options { task: Duration::from_millis(30), ..Options::default() };
    Running::start(Vendor::Versa, listener, options).await.unwrap()
}

impl Scene {
    async fn set() -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let setup = Setup {
            binary: binary(),
            data,
            database: None,
            providers: mirror(folder.path()),
            tofu: Some(parts::tofu()),
            workers: 2,
            more: Vec::new(),
        };
        let landform = Landform::start(&setup).await.unwrap();
        let http = landform_testkit::http_client(Duration::from_secs(60));
        let scene = Scene { director: director().await, landform, http, _folder: folder };
        scene.landform.call("PUT", "/v1/tenants/acme", None).await.unwrap();
        scene.landform.push_template("versa-branch", &[("main.tf", TEMPLATE)]).await.unwrap();
        let variables =
            json!({"versa_url": scene.url(), "versa_username": "admin", "versa_password": "director-s3cret"});
        let connection = json!({ "variables": variables });
        scene.landform.call("PUT", "/v1/tenants/acme/connections/versa", Some(connection)).await.unwrap();
        scene
    }

    fn url(&self) -> String {
        format!("http://{}", self.director.address())
    }

    async fn ledger(&self) -> Value {
        self.http.get(format!("{}/_sim/ledger", self.url())).send().await.unwrap().json().await.unwrap()
    }

    /// A hand at the Director itself.
    async fn change(&self, method: &str, path: &str, body: Value) {
        let request = self.http.request(method.parse().unwrap(), format!("{}{path}", self.url()));
        let answer = request.basic_auth("somebody", Some("else")).json(&body).send().await.unwrap();
        assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
    }

    async fn order(&self, fault: Value) {
        let answer = self.http.post(format!("{}/_sim/faults", self.url())).json(&fault).send().await.unwrap();
        assert_eq!(answer.status(), 204);
    }

    /// Wishes for a branch, and waits for the end of the run.
    async fn wish(&self, name: &str, engine: &str, change: impl FnOnce(&mut Value)) -> Value {
        let mut inputs: Value = serde_json::from_str(EXAMPLE).unwrap();
        inputs["name"] = json!(name);
        change(&mut inputs);
        let body = json!({"template": "versa-branch", "engine": engine, "connections": ["versa"], "inputs": inputs});
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

fn status(answer: &Value) -> &str {
    answer["run"]["status"].as_str().unwrap_or_default()
}

async fn a_branch_lives_and_ends(engine: &str) {
    let scene = Scene::set().await;
    let made = scene.wish("berlin", engine, |_| ()).await;
    assert_eq!(status(&made), "succeeded", "{made}");
    assert_eq!(made["outputs"]["site_id"]["value"], "101", "{made}");
    let ledger = scene.ledger().await;
    assert_eq!(ledger["deployedDevices"], json!(["berlin"]));
    let profile = &ledger["vpnProfiles"]["berlin-template/Customer-A/berlin-tunnel"]["vpn-profile"];
    assert_eq!(profile["local-auth-info"]["key"], "correct horse battery");
    assert_eq!(ledger["bgp"]["berlin/Customer-A-LAN-VR/1"]["rti-bgp"][0]["local-as"]["as-number"], 65010);

    let same = scene.again("berlin").await;
    assert_eq!(status(&same), "unchanged", "{same}");
    let faster = scene.wish("berlin", engine, |inputs| inputs["bandwidth_mbps"] = json!(500)).await;
    assert_eq!(status(&faster), "succeeded", "{faster}");
    let template = &scene.ledger().await["templates"]["berlin-template"]["versanms.sdwan-template-workflow"];
    assert_eq!(template["bandwidth"], 500);

    let bgp = "/api/config/devices/device/berlin/config/routing-instances/routing-instance/Customer-A-LAN-VR";
    scene.change("DELETE", &format!("{bgp}/protocols/bgp/rti-bgp/1"), Value::Null).await;
    let group = json!({"device-group": {"name": "berlin-group", "dg:organization": "Customer-A",
        "dg:poststaging-template": ""}});
    scene.change("PUT", "/nextgen/deviceGroup/berlin-group", group).await;
    let healed = scene.again("berlin").await;
    assert_eq!(status(&healed), "succeeded", "{healed}");
    let ledger = scene.ledger().await;
    assert!(ledger["bgp"]["berlin/Customer-A-LAN-VR/1"].is_object(), "{ledger}");
    let template = &ledger["deviceGroups"]["berlin-group"]["device-group"]["dg:poststaging-template"];
    assert_eq!(template, "berlin-template");

    let gone = scene.destroy("berlin").await;
    assert_eq!(status(&gone), "succeeded", "{gone}");
    assert_eq!(nothing(), scene.ledger().await);
}

fn nothing() -> Value {
    json!({"templates": {}, "deviceGroups": {}, "devices": {}, "deployedTemplates": [], "deployedDevices": [],
        "vpnProfiles": {}, "bgp": {}})
}

#[tokio::test]
async fn a_branch_lives_and_ends_natively() {
    a_branch_lives_and_ends("native").await;
}

#[tokio::test]
async fn a_branch_lives_and_ends_through_the_cli() {
    a_branch_lives_and_ends("cli").await;
}

/// The vendor's own words reach the caller, its secrets do not, and what exists is in the state.
#[tokio::test]
async fn what_goes_wrong_at_the_vendor_is_said_and_nothing_is_lost() {
    let scene = Scene::set().await;
    scene.order(json!({"operation": "device.deploy", "kind": "fail_later"})).await;
    let failed = scene.wish("paris", "native", |_| ()).await;
    assert_eq!(status(&failed), "failed", "{failed}");
    let text = failed.to_string();
    assert!(text.contains("the appliance did not answer"), "{text}");
    assert!(!text.contains("s3cret") && !text.contains("battery"), "{text}");
    // The device exists and is in the state as one that must be made anew; nothing else is by that name.
    assert_eq!(scene.ledger().await["devices"].as_object().unwrap().len(), 1);
    let mended = scene.again("paris").await;
    assert_eq!(status(&mended), "succeeded", "{mended}");
    assert_eq!(scene.ledger().await["deployedDevices"], json!(["paris"]));

    // A time-out after the vendor has done it: looked up, and recognised by its name and content.
    for operation in ["template.create", "device.create", "vpn_profile.put"] {
        scene.order(json!({"operation": operation, "kind": "unavailable_after"})).await;
    }
    scene.order(json!({"operation": "device_group.create", "kind": "broken_body"})).await;
    scene.order(json!({"operation": "bgp.create", "kind": "too_many_requests", "times": 2})).await;
    let lucky = scene.wish("rome", "native", |_| ()).await;
    assert_eq!(status(&lucky), "succeeded", "{lucky}");
    for name in ["paris", "rome"] {
        assert_eq!(status(&scene.destroy(name).await), "succeeded");
    }
    assert_eq!(nothing(), scene.ledger().await);
}

/// Free branch ids are not reserved: who comes at the same moment gets another one.
#[tokio::test]
async fn branches_that_are_made_at_once_get_ids_of_their_own() {
    let scene = Scene::set().await;
    let names: Vec<String> = (0..8).map(|number| format!("branch-{number}")).collect();
    let made = futures::future::join_all(names.iter().map(|name| scene.wish(name, "native", |_| ()))).await;
    let mut sites: Vec<&str> = made.iter().filter_map(|made| made["outputs"]["site_id"]["value"].as_str()).collect();
    sites.sort_unstable();
    sites.dedup();
    assert_eq!(sites.len(), names.len(), "{made:?}");
}

/// An ordinary plugin: the real OpenTofu plans, applies, imports and destroys with it. The Director answers on another
/// thread, since this one waits for OpenTofu.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_provider_works_under_the_real_opentofu() {
    let folder = tempfile::tempdir().unwrap();
    let director = director().await;
    let tofu = Tofu::new(&folder.path().join("work"), &mirror(folder.path())).unwrap();
    let main = format!(
        r#"
terraform {{
  required_providers {{
    versa = {{ source = "landform/versa" }}
  }}
}}
provider "versa" {{
  url           = "http://{}"
  username      = "admin"
  password      = "director-s3cret"
  client_id     = "c"
  client_secret = "s"
}}
data "versa_organizations" "all" {{}}
data "versa_free_branch_id" "next" {{}}
resource "versa_template" "t" {{
  name         = "spoke"
  organization = data.versa_organizations.all.names[1]
}}
output "free" {{ value = data.versa_free_branch_id.next.branch_id }}
"#,
        director.address()
    );
    tofu.write("main.tf", &main).unwrap();
    let run = |words: &[&str]| {
        let output = tofu.run(words).unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    };
    for (words, code) in [
        (&["init", "-no-color"][..], 0),
        (&["apply", "-auto-approve", "-no-color"], 0),
        (&["plan", "-detailed-exitcode", "-no-color"], 0),
        (&["state", "rm", "versa_template.t"], 0),
        (&["import", "-no-color", "versa_template.t", "spoke"], 0),
        (&["plan", "-detailed-exitcode", "-no-color"], 0),
        (&["import", "-no-color", "versa_template.u", "nothing"], 1),
    ] {
        let (got, said) = run(words);
        assert_eq!(got, Some(code), "{words:?}: {said}");
    }
    let wrong = main
        .replace("director-s3cret", "wrong")
        .replace("client_id     = \"c\"", "")
        .replace("client_secret = \"s\"", "");
    tofu.write("main.tf", &wrong).unwrap();
    let (code, said) = run(&["plan", "-no-color"]);
    assert!(code == Some(1) && said.contains("401 Unauthorized: user or password is"), "{said}");
    tofu.write("main.tf", &main).unwrap();
    let (code, said) = run(&["destroy", "-auto-approve", "-no-color"]);
    assert_eq!(code, Some(0), "{said}");
}
