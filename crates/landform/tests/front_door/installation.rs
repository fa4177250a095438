//! What an operator does before and beside the server: engines, providers, the doctor.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use landform_testkit::parts;
use serde_json::{Value, json};

use crate::{Door, Memory, binary};

fn landform(data: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.args(args).arg("--data").arg(data).arg("--json").env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).output().unwrap()
}

fn said(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn engines_are_added_and_listed() {
    let data = tempfile::tempdir().unwrap();
    assert_eq!(said(&landform(data.path(), &["engine", "list"])), json!({"engines": []}));
    let tofu = parts::tofu();
    let added = said(&landform(data.path(), &["engine", "add", tofu.to_str().unwrap()]));
    assert_eq!(added["name"], "opentofu");
    assert!(Path::new(added["path"].as_str().unwrap()).starts_with(data.path()));
    assert_eq!(said(&landform(data.path(), &["engine", "list"])), json!({ "engines": [added] }));
    let refused = landform(data.path(), &["engine", "add", "/bin/echo"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn providers_are_added_from_a_binary_and_from_an_archive() {
    let data = tempfile::tempdir().unwrap();
    let provider = parts::provider("hashicorp/time");
    let provider = provider.to_str().unwrap();
    let add = ["provider", "add", provider, "--source", "hashicorp/time", "--version", "1.2.3"];
    said(&landform(data.path(), &add));
    let again = landform(data.path(), &add);
    assert_eq!(again.status.code(), Some(2), "a version never changes");

    let archive = |name: &str, entries: &[&str]| {
        let path = data.path().join(name);
        let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
        for entry in entries {
            let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
            zip.start_file(*entry, options).unwrap();
            zip.write_all(b"program").unwrap();
        }
        zip.finish().unwrap();
        path.to_str().unwrap().to_owned()
    };
    let release =
        archive("terraform-provider-thing_2.0.1_linux_amd64.zip", &["terraform-provider-thing_v2.0.1", "LICENSE"]);
    let no_program = ["provider", "add", "/etc/hostname", "--source", "acme/none", "--version", "1.0.0"];
    let refused = landform(data.path(), &no_program);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is no program"), "{refused:?}");
    said(&landform(data.path(), &["provider", "add", &release, "--source", "acme/thing"]));
    let listed = said(&landform(data.path(), &["provider", "list"]));
    let found: Vec<_> = listed["providers"].as_array().unwrap().iter().map(|p| p["version"].clone()).collect();
    assert_eq!(found, ["2.0.1", "1.2.3"]);
    for (name, entry) in
        [("out", "../outside"), ("deep", "a/terraform-provider-thing"), ("else", "terraform-provider-x")]
    {
        let hostile = archive(&format!("terraform-provider-{name}_1.0.0_linux_amd64.zip"), &[entry]);
        let refused = landform(data.path(), &["provider", "add", &hostile, "--source", "acme/thing"]);
        assert_eq!(refused.status.code(), Some(2), "{entry}");
    }
    assert_eq!(said(&landform(data.path(), &["provider", "list"])), listed, "nothing is left of what was refused");
}

#[tokio::test]
async fn the_doctor_says_what_is_wrong_and_what_to_do() {
    let nothing = tempfile::tempdir().unwrap();
    let missing = nothing.path().join("nowhere");
    let ill = landform(&missing, &["doctor"]);
    assert_eq!(ill.status.code(), Some(6));
    let findings: Value = serde_json::from_slice(&ill.stdout).unwrap();
    let folder = &findings["findings"][0];
    assert_eq!((&folder["what"], &folder["health"]), (&json!("data folder"), &json!("bad")));
    assert!(folder["advice"].as_str().unwrap().contains("landform serve"));

    let door = Door::open(Memory::Postgres).await;
    let url = door.setup.database.clone().unwrap();
    let well = landform(door.data.path(), &["doctor", "--database", &url]);
    let found = said(&well)["findings"].clone();
    let health = |what: &str| found.as_array().unwrap().iter().find(|f| f["what"] == what).unwrap()["health"].clone();
    for what in ["data folder", "master key", "store", "clock", "confinement"] {
        assert_eq!(health(what), "good", "{what}: {found}");
    }
    assert!(!well.stdout.windows(url.len()).any(|text| text == url.as_bytes()), "an address may hold a password");
}

/// What was added since is no use before the next start.
#[tokio::test]
async fn the_doctor_knows_which_engines_a_running_server_has() {
    let no_engine = "/bin/false".into();
    let door = Door::open_with(Memory::Sqlite, no_engine).await;
    let engines = |door: &Door| {
        let found = said(&landform(door.data.path(), &["doctor", "--server", door.landform.base()]));
        let found = found["findings"].as_array().unwrap().iter().find(|f| f["what"] == "CLI engines").unwrap().clone();
        (found["health"].as_str().unwrap().to_owned(), found["found"].as_str().unwrap().to_owned(), found)
    };
    // The door opens before the engines are looked for.
    let looked_for = async |door: &Door, words: &str| {
        for _ in 0..600 {
            let found = engines(door);
            if found.1.contains(words) {
                return found;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("never {words:?}, but {}", engines(door).2);
    };
    let (health, found, _) = looked_for(&door, "the running server has").await;
    assert_eq!((health.as_str(), found.as_str()), ("poor", "the running server has none"));
    said(&landform(door.data.path(), &["engine", "add", parts::tofu().to_str().unwrap()]));
    let (health, found, all) = engines(&door);
    assert!(health == "poor" && found.contains("has none, and not yet opentofu 1."), "{all}");
    assert!(all["advice"].as_str().unwrap().contains("Restart"), "{all}");
    let door = door.restart().await;
    let (health, found, _) = looked_for(&door, "opentofu 1.").await;
    assert_eq!(health, "good", "{found}");
    assert!(found.starts_with("opentofu 1."), "{found}");
}

/// A key that is there and is another one's: the server would not start.
#[tokio::test]
async fn the_doctor_tries_the_key_on_the_store_and_asks_the_server() {
    for memory in [Memory::Sqlite, Memory::Postgres] {
        let door = Door::open(memory).await;
        door.landform.call("PUT", "/v1/tenants/acme", Some(json!({}))).await.unwrap();
        let server = door.landform.base().to_owned();
        let mut words = vec!["doctor", "--server", &server];
        let url = door.setup.database.clone().unwrap_or_default();
        if !url.is_empty() {
            words.extend(["--database", &url]);
        }
        let found = said(&landform(door.data.path(), &words))["findings"].clone();
        let health = |found: &Value, what: &str| {
            let all = found.as_array().unwrap().iter().filter(|finding| finding["what"] == what);
            all.map(|finding| finding["health"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(
            (health(&found, "master key"), health(&found, "server")),
            (vec!["good".into()], vec!["good".into()])
        );
        let key = door.data.path().join("master.key");
        let right = std::fs::read(&key).unwrap();
        let mut wrong = right.clone();
        wrong[0] = if wrong[0] == b'A' { b'B' } else { b'A' };
        std::fs::write(&key, wrong).unwrap();
        let ill = landform(door.data.path(), &words);
        assert_eq!(ill.status.code(), Some(6));
        let found: Value = serde_json::from_slice::<Value>(&ill.stdout).unwrap()["findings"].clone();
        assert!(health(&found, "master key").contains(&"bad".to_owned()), "{found}");
        std::fs::write(&key, right).unwrap();
        // It looks at a store at rest too, and leaves nothing there.
        let (landform_process, data) = (door.landform, door.data);
        landform_process.stop().await.unwrap();
        let files = || {
            let names = std::fs::read_dir(data.path()).unwrap().map(|entry| entry.unwrap().file_name());
            names.collect::<std::collections::BTreeSet<_>>()
        };
        let before = files();
        let found = said(&landform(data.path(), &words))["findings"].clone();
        assert_eq!((health(&found, "store"), health(&found, "server")), (vec!["good".into()], vec!["poor".into()]));
        assert_eq!(files(), before);
    }
}

/// As `landform --help | head -1` would.
#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let data = tempfile::tempdir().unwrap();
    let mut command = Command::new(binary());
    command.args(["doctor", "--data"]).arg(data.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut listing = command.spawn().unwrap();
    drop(listing.stdout.take());
    let ended = listing.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(141), "{}", String::from_utf8_lossy(&ended.stderr));
    assert!(ended.stderr.is_empty(), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[tokio::test]
async fn a_version_that_nobody_has_is_named() {
    let door = Door::open(Memory::Sqlite).await;
    door.landform.call("PUT", "/v1/tenants/acme", Some(json!({}))).await.unwrap();
    let template = "terraform {\n  required_version = \">= 99.0\"\n}\n";
    door.landform.push_template("future", &[("main.tf", template)]).await.unwrap();
    let body = json!({"template": "future", "engine": "cli", "inputs": {}});
    let path = "/v1/tenants/acme/deployments/site";
    let request = door.landform.request(reqwest::Method::PUT, path).header("prefer", "wait=60").json(&body);
    let ended = landform_testkit::landform::answer(request).await.unwrap();
    assert_eq!(ended["run"]["problem"]["code"], "engine_missing", "{ended}");
    let message = ended["run"]["problem"].to_string();
    assert!(message.contains(">= 99") && message.contains("opentofu 1."), "{message}");
}
