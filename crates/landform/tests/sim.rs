//! `landform sim` as a person types it. What the simulators do is tested where they live.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

struct Simulator(Child);

impl Drop for Simulator {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(vendor: &str) -> (Simulator, Value) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_landform"))
        .args(["--json", "sim", vendor])
        .stdout(Stdio::piped())
        .spawn()
        .expect("landform starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("standard output");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    (Simulator(child), serde_json::from_str(&line).expect("JSON"))
}

#[tokio::test]
async fn both_vendors_answer() {
    for (vendor, ledger) in [("cato", json!({"accounts": {}})), ("versa", json!({}))] {
        let (_simulator, said) = start(vendor);
        let control = said["control"].as_str().expect("an address");
        let answer: Value = landform_testkit::http_client(std::time::Duration::from_secs(60))
            .get(format!("{control}/ledger"))
            .send()
            .await
            .expect("an answer")
            .json()
            .await
            .expect("JSON");
        for (name, value) in ledger.as_object().expect("an object") {
            assert_eq!(&answer[name], value, "{vendor}");
        }
    }
}

#[test]
fn wrong_limits_are_refused_with_what_they_should_be() {
    let output = Command::new(env!("CARGO_BIN_EXE_landform"))
        .args(["sim", "cato", "--limits", "no-such-file"])
        .output()
        .expect("landform starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`published`"));
}
