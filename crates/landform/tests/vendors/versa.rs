//! Branches at a Versa Director, through both engines and through the real OpenTofu.

use std::time::Duration;

use landform_sim::{Running, Vendor};
use landform_testkit::tofu::Tofu;
use serde_json::{Value, json};

use crate::{Scene, Site, mirror_of_built_in, status, vendor};

pub const SITE: Site = Site {
    template: "versa-branch",
    files: &[
        ("main.tf", include_str!("../../../../templates/versa-branch/main.tf")),
        ("vendor.json", include_str!("../../../../templates/versa-branch/vendor.json")),
    ],
    example: include_str!("../../../../templates/versa-branch/example.json"),
    connection: "versa",
};

pub async fn director() -> Running {
    vendor(Vendor::Versa, Duration::from_millis(30)).await
}

pub async fn scene() -> Scene {
    let director = director().await;
    let variables = login(&director);
    Scene::set(director, SITE, variables, mirror_of_built_in).await
}

pub fn login(director: &Running) -> Value {
    let url = format!("http://{}", director.address());
    json!({"versa_url": url, "versa_username": "admin", "versa_password": "director-s3cret"})
}

/// A hand at the Director itself.
pub async fn change(scene: &Scene, method: &str, path: &str, body: Value) {
    let request = scene.http.request(method.parse().unwrap(), format!("{}{path}", scene.url()));
    let answer = request.basic_auth("somebody", Some("else")).json(&body).send().await.unwrap();
    assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
}

async fn a_branch_lives_and_ends(engine: &str) {
    let scene = scene().await;
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
    change(&scene, "DELETE", &format!("{bgp}/protocols/bgp/rti-bgp/1"), Value::Null).await;
    let group = json!({"device-group": {"name": "berlin-group", "dg:organization": "Customer-A",
        "dg:poststaging-template": ""}});
    change(&scene, "PUT", "/nextgen/deviceGroup/berlin-group", group).await;
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
    let scene = scene().await;
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
    let scene = scene().await;
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
    let tofu = Tofu::new(&folder.path().join("work"), &mirror_of_built_in(folder.path())).unwrap();
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
