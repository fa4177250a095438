//! The native engine is held to the real CLI: over the same folder, providers hear the same from both, the states say
//! the same, and each finds nothing to do on the other's state.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use landform_testkit::tofu::Tofu;
use landform_testkit::transcript::{Recorder, Source, compare};
use serde_json::Value;

/// The `terraform` block that asks for these providers.
fn head(sources: &[Source]) -> String {
    let required = |source: &Source| {
        let name = source.address.rsplit('/').next().unwrap_or_default();
        format!("    {name} = {{ source = {:?} }}\n", source.address)
    };
    let required: String = sources.iter().map(required).collect();
    format!("terraform {{\n  required_providers {{\n{required}  }}\n}}\n")
}

/// A folder that the native engine works in, with the providers that the CLI configuration names.
struct Native {
    folder: PathBuf,
    config: PathBuf,
}

impl Native {
    fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_landform"))
            .arg("tf")
            .args(args)
            .current_dir(&self.folder)
            .env("TF_CLI_CONFIG_FILE", &self.config)
            .output()
            .unwrap()
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn succeed(output: &Output) {
    assert!(output.status.success(), "{}", text(output));
}

/// The two engines side by side, over the same mirror of recorded providers.
struct Both {
    folder: tempfile::TempDir,
    head: String,
    recorder: Recorder,
    tofu: Tofu,
    native: Native,
    initialised: bool,
}

impl Both {
    async fn new(sources: &[Source]) -> Both {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::new(folder.path(), sources).await.unwrap();
        let tofu = Tofu::new(&folder.path().join("tofu"), recorder.mirror()).unwrap();
        let native = Native { folder: folder.path().join("native"), config: tofu.config().to_owned() };
        std::fs::create_dir(&native.folder).unwrap();
        Both { folder, head: head(sources), recorder, tofu, native, initialised: false }
    }

    fn write(&mut self, content: &str) {
        // One ledger for both: it tells the provider's objects apart by their ids.
        let ledger = self.folder.path().join("ledger").display().to_string();
        let content = format!("{}{}", self.head, content.replace("LEDGER", &ledger));
        for folder in [self.tofu.folder(), &self.native.folder] {
            std::fs::write(folder.join("main.tf"), &content).unwrap();
        }
        if !std::mem::replace(&mut self.initialised, true) {
            succeed(&self.tofu.run(["init", "-no-color"]).unwrap());
        }
        self.recorder.take().unwrap();
    }

    /// Runs a command with both, and compares what the providers heard.
    fn same(&self, args: &[&str]) {
        succeed(&self.tofu.run(args.iter().chain(&["-input=false", "-no-color"])).unwrap());
        let from_tofu = self.recorder.take().unwrap();
        succeed(&self.native.run(args));
        let from_native = self.recorder.take().unwrap();
        assert!(!from_tofu.calls.is_empty(), "nothing was recorded");
        let differences = compare(&from_tofu, &from_native);
        let shown: Vec<String> = differences.iter().map(ToString::to_string).collect();
        assert!(differences.is_empty(), "tofu (left) and native (right) differ in {args:?}:\n{}", shown.join("\n"));
        assert_eq!(
            generic(&read(self.tofu.folder())),
            generic(&read(&self.native.folder)),
            "the states differ after {args:?}"
        );
    }

    /// Each engine finds nothing to do on the other's state.
    fn hand_over(&self) {
        let (tofu, native) =
            (self.tofu.folder().join("terraform.tfstate"), self.native.folder.join("terraform.tfstate"));
        let swap = || {
            let aside = self.folder.path().join("aside");
            std::fs::rename(&tofu, &aside).unwrap();
            std::fs::rename(&native, &tofu).unwrap();
            std::fs::rename(&aside, &native).unwrap();
        };
        swap();
        let plan = ["plan", "-detailed-exitcode", "-no-color"];
        let by_tofu = self.tofu.run(plan).unwrap();
        let by_native = self.native.run(&plan);
        assert_eq!(by_tofu.status.code(), Some(0), "tofu on the native state: {}", text(&by_tofu));
        assert_eq!(by_native.status.code(), Some(0), "native on tofu's state: {}", text(&by_native));
        swap();
        self.recorder.take().unwrap();
    }
}

fn read(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("terraform.tfstate")).unwrap()).unwrap()
}

/// A state without what no two runs have in common: lineage, ids, tokens and times.
fn generic(state: &Value) -> Value {
    let mut state = state.clone();
    state["lineage"] = Value::Null;
    blur(&mut state);
    state
}

fn blur(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let generated = [
                    "id",
                    "token",
                    "agent_id",
                    "rfc3339",
                    "rotation_rfc3339",
                    "unix",
                    "second",
                    "minute",
                    "hour",
                    "day",
                    "month",
                    "year",
                ];
                if generated.contains(&name.as_str()) && !field.is_null() {
                    *field = Value::from("generated");
                } else {
                    blur(field);
                }
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(blur),
        Value::String(text) if text.starts_with("of-") || text.contains("T") && text.ends_with('Z') => {
            *text = "generated".into();
        }
        _ => {}
    }
}

#[tokio::test]
async fn time_static_is_created_replaced_and_destroyed() {
    let mut both = Both::new(&[Source::part("hashicorp/time")]).await;
    let with = |trigger: &str| {
        format!(
            "variable \"t\" {{ default = {trigger:?} }}\nresource \"time_static\" \"s\" {{\n  triggers = {{ a = var.t }}\n}}\n\
             output \"at\" {{ value = time_static.s.rfc3339 }}\n"
        )
    };
    both.write(&with("1"));
    both.same(&["apply", "-auto-approve"]);
    both.hand_over();
    both.same(&["plan"]);
    both.write(&with("2"));
    both.same(&["apply", "-auto-approve"]);
    both.hand_over();
    both.same(&["destroy", "-auto-approve"]);
}

#[tokio::test]
async fn time_rotating_is_created_updated_replaced_and_destroyed() {
    let mut both = Both::new(&[Source::part("hashicorp/time")]).await;
    both.write("resource \"time_rotating\" \"r\" { rotation_days = 10 }\n");
    both.same(&["apply", "-auto-approve"]);
    both.write("resource \"time_rotating\" \"r\" { rotation_days = 20 }\n");
    both.same(&["apply", "-auto-approve"]);
    both.hand_over();
    both.write("resource \"time_rotating\" \"r\" {\n  rotation_days = 20\n  triggers = { again = \"yes\" }\n}\n");
    both.same(&["apply", "-auto-approve"]);
    both.hand_over();
    both.write("# nothing is wanted any more\n");
    both.same(&["apply", "-auto-approve"]);
}

#[tokio::test]
async fn a_provider_with_the_legacy_type_system() {
    let mut both = Both::new(&[Source::part("coder/coder")]).await;
    let with = |arch: &str, name: &str| {
        format!(
            r#"
resource "coder_agent" "main" {{
  os   = "linux"
  arch = {arch:?}
  metadata {{
    key      = "load"
    script   = "uptime"
    interval = 10
    timeout  = 1
  }}
}}
resource "coder_script" "start" {{
  agent_id     = coder_agent.main.id
  display_name = {name:?}
  script       = "echo ${{coder_agent.main.arch}}"
  run_on_start = true
}}
"#
        )
    };
    both.write(&with("amd64", "one"));
    both.same(&["apply", "-auto-approve"]);
    both.hand_over();
    both.write(&with("amd64", "two"));
    both.same(&["apply", "-auto-approve"]);
    both.write(&with("arm64", "two"));
    both.same(&["apply", "-auto-approve"]);
    both.hand_over();
    both.same(&["destroy", "-auto-approve"]);
}

#[tokio::test]
async fn count_grows_and_shrinks() {
    let mut both = Both::new(&[Source::part("hashicorp/time"), Source::ledger()]).await;
    let with = |count: u32| {
        format!(
            r#"
provider "ledger" {{ ledger = "LEDGER" }}
resource "time_static" "s" {{
  count    = {count}
  triggers = {{ n = count.index }}
}}
resource "ledger_object" "first" {{
  name = "first"
  size = 1.5
}}
resource "ledger_object" "o" {{
  count = {count}
  name  = "o-${{count.index}}"
  kind  = "of-${{ledger_object.first.id}}"
}}
output "names" {{ value = ledger_object.o[*].name }}
"#
        )
    };
    both.write(&with(2));
    both.same(&["apply", "-auto-approve"]);
    both.hand_over();
    both.write(&with(3));
    both.same(&["apply", "-auto-approve"]);
    both.write(&with(1));
    both.same(&["apply", "-auto-approve"]);
    both.hand_over();
    both.same(&["destroy", "-auto-approve"]);
}

#[tokio::test]
async fn an_update_in_place_and_a_replacement_that_others_stand_on() {
    let mut both = Both::new(&[Source::ledger()]).await;
    let with = |size: &str, kind: &str| {
        format!(
            r#"
provider "ledger" {{ ledger = "LEDGER" }}
variable "secret" {{
  default   = "s"
  sensitive = true
}}
resource "ledger_object" "below" {{
  name = "below"
  size = {size}
  kind = {kind:?}
}}
resource "ledger_object" "above" {{
  name = "above-${{var.secret}}"
  kind = "of-${{ledger_object.below.id}}"
}}
"#
        )
    };
    both.write(&with("1", "a"));
    both.same(&["apply", "-auto-approve"]);
    both.write(&with("2", "a"));
    both.same(&["apply", "-auto-approve"]);
    both.write(&with("2", "b"));
    both.same(&["apply", "-auto-approve"]);
    both.hand_over();
    both.same(&["apply", "-auto-approve", "-refresh=false"]);
    both.same(&["apply", "-auto-approve", "-replace=ledger_object.above"]);
    both.same(&["destroy", "-auto-approve"]);
}
