//! Templates and payloads that mean harm.

use std::os::unix::fs::PermissionsExt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};

use crate::house::{House, Memory, ONE_OBJECT, wait_for};

/// The status and the code of an answer that is a refusal.
async fn refused(house: &House, name: &str, files: &[(&str, &str)]) -> String {
    house.landform().push_template(name, files).await.unwrap_err().to_string()
}

#[tokio::test]
async fn programs_in_templates_are_denied_at_their_push() {
    let house = House::build(Memory::Sqlite).await;
    let provisioner =
        "resource \"terraform_data\" \"x\" {\n  provisioner \"local-exec\" {\n    command = \"id\"\n  }\n}";
    let external = "data \"external\" \"x\" {\n  program = [\"id\"]\n}";
    let far = "module \"x\" {\n  source = \"git::https://169.254.169.254/latest\"\n}";
    let json = r#"{"resource": {"terraform_data": {"x": {"provisioner": {"local-exec": {"command": "id"}}}}}}"#;
    for (file, text) in [("a.tf", provisioner), ("a.tf", external), ("a.tf", far), ("a.tf.json", json)] {
        let error = refused(&house, "evil", &[("main.tf", "# empty"), (file, text)]).await;
        assert!(error.contains("422") && error.contains("template_denied"), "{error}");
    }
    let nested = refused(&house, "evil", &[("main.tf", "# empty"), ("modules/a/main.tf", provisioner)]).await;
    assert!(nested.contains("modules/a/main.tf:2"), "{nested}");
    let unknown = "terraform {\n  required_providers {\n    no = { source = \"nobody/no\" }\n  }\n}\nresource \"no_thing\" \"x\" {}";
    house.landform().push_template("unknown", &[("main.tf", unknown)]).await.unwrap();
    for engine in ["native", "cli"] {
        let body = json!({"template": "unknown", "engine": engine, "inputs": {}});
        let path = format!("/v1/tenants/acme/deployments/{engine}");
        let accepted = house.landform().call("PUT", &path, Some(body)).await.unwrap();
        let ended = house.until(accepted["run"]["id"].as_str().unwrap(), &["failed"]).await;
        assert!(ended["problem"].to_string().contains("nobody/no"), "{ended}");
    }
}

#[tokio::test]
async fn text_in_a_payload_is_never_a_template() {
    let house = House::build(Memory::Sqlite).await;
    let hostile = "${file(\"/etc/passwd\")} %{ if true }x%{ endif } $${a} \"q\" \\ <<EOT\nheredoc\nEOT\n<script>alert(1)</script>";
    for engine in ["native", "cli"] {
        let path = format!("/v1/tenants/acme/deployments/text-{engine}");
        let mut body = house.body(engine, "x", 1, 0);
        body["inputs"]["name"] = json!(hostile);
        let accepted = house.landform().call("PUT", &path, Some(body)).await.unwrap();
        house.until(accepted["run"]["id"].as_str().unwrap(), &["succeeded"]).await;
        let outputs = house.landform().call("GET", &format!("{path}/outputs"), None).await.unwrap();
        assert_eq!(outputs["name"]["value"], hostile, "{engine}: {outputs}");
    }
    assert_eq!(landform_testkit::ledger::read(&house.ledger()).unwrap().named(hostile).len(), 2);
}

#[tokio::test]
async fn a_name_with_a_script_in_it_is_refused_and_inert() {
    let house = House::build(Memory::Sqlite).await;
    let path = "/v1/tenants/%3Cscript%3Ealert(1)%3C%2Fscript%3E";
    let answer = house.landform().request(Method::PUT, path).json(&json!({})).send().await.unwrap();
    assert_eq!(answer.status(), 400);
    assert_eq!(answer.headers()["content-type"], "application/problem+json", "no browser runs that");
}

#[tokio::test]
async fn very_deep_text_is_refused_in_bounded_time() {
    let house = House::build(Memory::Sqlite).await;
    let (open, close) = ("[".repeat(200_000), "]".repeat(200_000));
    let hcl = format!("output \"x\" {{\n  value = {open}{close}\n}}");
    let json = format!("{{\"output\": {{\"x\": {{\"value\": {open}{close}}}}}}}");
    for files in [[("main.tf", hcl.as_str())], [("main.tf.json", json.as_str())]] {
        let pushed = house.landform().push_template("deep", &files).await;
        let refusal = pushed.err().map(|error| error.to_string());
        assert!(refusal.as_ref().is_none_or(|error| error.contains("422")), "{refusal:?}");
    }
    let body = format!("{{\"template\": \"one\", \"inputs\": {{\"name\": {open}{close}}}}}");
    let request = house.landform().request(Method::PUT, "/v1/tenants/acme/deployments/deep");
    let answer = request.header("content-type", "application/json").body(body).send().await.unwrap();
    assert!(answer.status().is_client_error(), "{}", answer.status());
    let run = house.put("native", "site", 0).await;
    house.settle(&run, "site").await;
}

const CANARY: &str = "canary-7f3a9c51e2d84b60";

/// Everything that was ever written down for this house.
fn everything(folder: &std::path::Path, found: &mut Vec<u8>) {
    // A run's folder goes away while it is looked at.
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => everything(&entry.path(), found),
            Ok(kind) if kind.is_file() => found.extend(std::fs::read(entry.path()).unwrap_or_default()),
            _ => {}
        }
    }
}

/// The bytes that a folder takes on the disk; holes take none.
fn on_disk(folder: &std::path::Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => on_disk(&entry.path()),
        Ok(found) => found.blocks() * 512,
        Err(_) => 0,
    };
    entries.map(size).sum()
}

const LEAKY: &str = r#"
variable "secret" {
  type      = string
  sensitive = true
}
resource "terraform_data" "it" {
  input = var.secret
  provisioner "local-exec" {
    command = "env; printf %s '${substr(nonsensitive(var.secret), 0, 9)}'; sleep 0.3; echo '${substr(nonsensitive(var.secret), 9, -1)}'; echo ${nonsensitive(var.secret)} ${base64encode(nonsensitive(var.secret))}; exit 1"
  }
}
output "secret" {
  value     = terraform_data.it.output
  sensitive = true
}
"#;

#[tokio::test]
async fn canaries_and_the_servers_own_secrets_are_nowhere() {
    let house = House::build_with(Memory::Sqlite, &["--allow", "local-exec"]).await;
    house.landform().push_template("leaky", &[("main.tf", LEAKY)]).await.unwrap();
    let path = "/v1/tenants/acme/deployments/leaky";
    let body = json!({"template": "leaky", "engine": "cli", "inputs": {"secret": CANARY}});
    let accepted = house.landform().call("PUT", path, Some(body)).await.unwrap();
    let run = accepted["run"]["id"].as_str().unwrap();
    let ended = house.until(run, &["failed"]).await;
    let events = house.landform().call("GET", &format!("/v1/runs/{run}/events"), None).await.unwrap();
    let said = format!("{ended}{events}");
    let token = std::fs::read_to_string(house.setup.data.join("admin.token")).unwrap();
    for secret in [CANARY, &STANDARD.encode(CANARY)[..24], token.trim(), "CARGO_MANIFEST_DIR"] {
        assert!(!said.contains(secret), "{said}");
    }
    // What a run has on disk goes away right after its end.
    let runs = house.setup.data.join("worker/runs");
    wait_for("the run's folder to go", async || std::fs::read_dir(&runs).unwrap().next().is_none().then_some(())).await;
    let mut written = Vec::new();
    everything(&house.setup.data, &mut written);
    let found = written.windows(CANARY.len()).any(|bytes| bytes == CANARY.as_bytes());
    assert!(!found, "the canary lies open in the data folder");
}

/// However an address is written, what is not public is refused when it is connected to, and nothing was sent.
#[tokio::test]
async fn webhooks_reach_no_metadata_service() {
    let house = House::build(Memory::Sqlite).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let addresses = [
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://[::ffff:169.254.169.254]/".to_owned(),
        "http://0xa9fea9fe/".to_owned(),
        "http://2852039166/".to_owned(),
        format!("http://127.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://0:{port}/"),
    ];
    let mut webhooks = Vec::new();
    for url in &addresses {
        let spec = json!({"url": url, "events": ["succeeded"]});
        let made = house.landform().call("POST", "/v1/tenants/acme/webhooks", Some(spec)).await.unwrap();
        webhooks.push(made["webhook"]["id"].as_str().unwrap().to_owned());
    }
    let run = house.put("native", "site", 0).await;
    house.settle(&run, "site").await;
    for (webhook, address) in webhooks.iter().zip(&addresses) {
        let path = format!("/v1/tenants/acme/webhooks/{webhook}/deliveries");
        let error = wait_for("the delivery to be tried", async || {
            let list = house.landform().call("GET", &path, None).await.unwrap();
            list["deliveries"][0]["error"].as_str().map(str::to_owned)
        })
        .await;
        assert!(error.contains("is not a public address"), "{address}: {error}");
    }
    let knock = std::future::poll_fn(|context| std::task::Poll::Ready(listener.poll_accept(context).is_ready())).await;
    assert!(!knock, "somebody connected");
}

/// A provider writes a gigabyte to its log while it works.
#[tokio::test]
async fn a_gigabyte_of_a_providers_log_is_let_go() {
    let house = House::build(Memory::Sqlite).await;
    let mut found = Vec::new();
    programs(&house.setup.providers, &mut found);
    let [program] = &found[..] else { panic!("one provider: {found:?}") };
    let real = house.root.path().join("real-provider");
    std::fs::rename(program, &real).unwrap();
    let line = "x".repeat(1000);
    let script = format!("#!/bin/sh\nyes {line} | head -c 1000000000 >&2 &\nexec '{}' \"$@\"\n", real.display());
    std::fs::write(program, script).unwrap();
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
    house.landform().push_template("loud", &[("main.tf", ONE_OBJECT)]).await.unwrap();
    for engine in ["native", "cli"] {
        let mut body = house.body(engine, engine, 1, 500);
        body["template"] = json!("loud");
        let path = format!("/v1/tenants/acme/deployments/{engine}");
        let accepted = house.landform().call("PUT", &path, Some(body)).await.unwrap();
        house.settle(accepted["run"]["id"].as_str().unwrap(), engine).await;
    }
    let taken = on_disk(&house.setup.data);
    assert!(taken < 30_000_000, "{taken} bytes are taken");
}

/// The files below a folder that can be started.
fn programs(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let metadata = entry.metadata().unwrap();
        if metadata.is_dir() {
            programs(&entry.path(), found);
        } else if metadata.permissions().mode() & 0o111 != 0 {
            found.push(entry.path());
        }
    }
}

#[tokio::test]
async fn a_flood_of_output_is_capped_and_the_apply_unaffected() {
    let house = House::build_with(Memory::Sqlite, &["--allow", "local-exec"]).await;
    let flood = format!(
        "resource \"terraform_data\" \"it\" {{\n  provisioner \"local-exec\" {{\n    \
         command = \"yes {} | head -c 20000000\"\n  }}\n}}",
        "x".repeat(1000)
    );
    house.landform().push_template("flood", &[("main.tf", &flood)]).await.unwrap();
    let body = json!({"template": "flood", "engine": "cli", "inputs": {}});
    let accepted = house.landform().call("PUT", "/v1/tenants/acme/deployments/flood", Some(body)).await.unwrap();
    let run = accepted["run"]["id"].as_str().unwrap();
    let ended: Value = house.until(run, &["succeeded", "failed"]).await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    let taken = on_disk(&house.setup.data);
    assert!(taken < 15_000_000, "{taken} bytes are taken");
}
