//! `terraform_data` has no process and so no transcript. What can be compared is everything else: the JSON of plans, the
//! states and the outputs of both engines, from the same state and configuration.

use std::path::Path;
use std::process::{Command, Output};

use landform_testkit::tofu::Tofu;
use serde_json::Value;

const MAIN: &str = r#"
variable "word" { default = "x" }
variable "size" {
  type    = number
  default = 2
}
variable "secret" {
  default   = "s3cr<e>t"
  sensitive = true
}
locals { greeting = "hello ${var.word}" }
resource "terraform_data" "one" { input = local.greeting }
resource "terraform_data" "many" {
  count            = var.size
  input            = "${terraform_data.one.output}-${count.index}"
  triggers_replace = [var.word]
}
resource "terraform_data" "mixed" {
  input = { secret = var.secret, number = 12.50, big = 123456789012345678901234567890, list = [1, true, null] }
}
output "many" { value = terraform_data.many[*].output }
output "one" { value = terraform_data.one.id }
output "secret" {
  value     = var.secret
  sensitive = true
}
"#;

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

struct Folder {
    tofu: Tofu,
    _temporary: tempfile::TempDir,
}

impl Folder {
    fn new(content: &str) -> Folder {
        let nothing = tempfile::tempdir().unwrap();
        Folder::with_mirror(content, nothing.path())
    }

    fn with_mirror(content: &str, mirror: &Path) -> Folder {
        let temporary = tempfile::tempdir().unwrap();
        let tofu = Tofu::new(&temporary.path().join("work"), mirror).unwrap();
        tofu.write("main.tf", content).unwrap();
        let folder = Folder { tofu, _temporary: temporary };
        folder.tofu(&["init"]);
        folder
    }

    fn tofu(&self, args: &[&str]) -> Output {
        let output = self.tofu.run(args).unwrap();
        assert!(output.status.success(), "tofu {args:?}: {}", text(&output));
        output
    }

    fn native(&self, args: &[&str]) -> Output {
        let output = Command::new(env!("CARGO_BIN_EXE_landform"))
            .arg("tf")
            .args(args)
            .current_dir(self.tofu.folder())
            .env("TF_CLI_CONFIG_FILE", self.tofu.config())
            .env("LANDFORM_ENGINE", "native")
            .output()
            .unwrap();
        assert!(output.status.success(), "landform tf {args:?}: {}", text(&output));
        output
    }

    fn state(&self) -> Vec<u8> {
        std::fs::read(self.tofu.folder().join("terraform.tfstate")).unwrap()
    }

    /// Both engines plan from the same state, and say the same about it in JSON.
    fn same_plan(&self, args: &[&str]) {
        self.tofu(&[&["plan", "-no-color", "-out=tofu.plan"], args].concat());
        self.native(&[&["plan", "-no-color", "-out=native.plan"], args].concat());
        let by_tofu = self.tofu(&["show", "-json", "tofu.plan"]);
        let by_native = self.native(&["show", "-json", "native.plan"]);
        let (by_tofu, by_native) = (comparable(&by_tofu.stdout), comparable(&by_native.stdout));
        let mut found = Vec::new();
        differences("plan", &by_tofu, &by_native, &mut found);
        assert!(found.is_empty(), "tofu and native differ with {args:?}:\n{}", found.join("\n"));
    }
}

/// Where two JSON values differ, one line each.
fn differences(place: &str, tofu: &Value, native: &Value, found: &mut Vec<String>) {
    match (tofu, native) {
        (Value::Object(one), Value::Object(other)) => {
            let names: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for name in names {
                match (one.get(name), other.get(name)) {
                    (Some(one), Some(other)) => differences(&format!("{place}.{name}"), one, other, found),
                    (one, other) => found.push(format!("{place}.{name}: {one:?} and {other:?}")),
                }
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (at, (one, other)) in one.iter().zip(other).enumerate() {
                differences(&format!("{place}[{at}]"), one, other, found);
            }
        }
        _ if tofu == native => {}
        _ => found.push(format!("{place}: {tofu} and {native}")),
    }
}

fn pretty(json: &Value) -> String {
    serde_json::to_string_pretty(json).unwrap()
}

/// A plan without what describes the source instead of the change, and without its time. Paths that force a replacement
/// are a set. What OpenTofu forgets to call sensitive among the planned values of a replaced object, we do not forget.
fn comparable(json: &[u8]) -> Value {
    let mut json: Value = serde_json::from_slice(json).unwrap();
    let fields = json.as_object_mut().unwrap();
    for name in ["configuration", "relevant_attributes", "timestamp"] {
        fields.remove(name);
    }
    let mut replaced = Vec::new();
    for change in json["resource_changes"].as_array_mut().into_iter().flatten() {
        if let Some(paths) = change["change"]["replace_paths"].as_array_mut() {
            paths.sort_by_key(Value::to_string);
            replaced.push(change["address"].clone());
        }
    }
    for resource in json["planned_values"]["root_module"]["resources"].as_array_mut().into_iter().flatten() {
        if replaced.contains(&resource["address"]) {
            resource["sensitive_values"] = Value::Null;
        }
    }
    json
}

/// A state without what is made up anew each time.
fn generic(state: &[u8]) -> String {
    let mut state: Value = serde_json::from_slice(state).unwrap();
    state["lineage"] = Value::Null;
    state["outputs"]["one"]["value"] = Value::Null;
    for resource in state["resources"].as_array_mut().unwrap() {
        for instance in resource["instances"].as_array_mut().unwrap() {
            instance["attributes"]["id"] = Value::Null;
        }
    }
    pretty(&state)
}

#[test]
fn plans_say_the_same_in_json() {
    let folder = Folder::new(MAIN);
    folder.same_plan(&[]);
    folder.same_plan(&["-destroy"]);
    folder.tofu(&["apply", "-auto-approve"]);
    folder.same_plan(&[]);
    folder.same_plan(&["-refresh=false"]);
    folder.same_plan(&["-var", "word=y"]);
    folder.same_plan(&["-var=size=3"]);
    folder.same_plan(&["-var=size=1"]);
    folder.same_plan(&["-var=secret=other"]);
    folder.same_plan(&["-replace=terraform_data.many[1]"]);
    folder.same_plan(&["-destroy"]);
    folder.tofu(&["taint", "terraform_data.many[0]"]);
    folder.same_plan(&[]);
    folder.tofu.write("main.tf", "resource \"terraform_data\" \"one\" { input = 1 }\n").unwrap();
    folder.same_plan(&[]);
}

#[test]
fn plans_with_real_providers_say_the_same_in_json() {
    let content = |name: &str| {
        format!(
            r#"
terraform {{
  required_providers {{
    time  = {{ source = "hashicorp/time" }}
    coder = {{ source = "coder/coder" }}
  }}
}}
resource "time_static" "s" {{ triggers = {{ name = {name:?} }} }}
resource "coder_agent" "a" {{
  os   = "linux"
  arch = "amd64"
  metadata {{
    key      = time_static.s.id
    script   = "uptime"
    interval = 10
  }}
}}
resource "coder_script" "c" {{
  agent_id     = coder_agent.a.id
  display_name = {name:?}
  script       = "echo ${{coder_agent.a.token}}"
  run_on_start = true
}}
"#
        )
    };
    let folder = Folder::with_mirror(&content("one"), &landform_testkit::parts::mirror());
    folder.same_plan(&[]);
    folder.tofu(&["apply", "-auto-approve"]);
    // The agent gets a new token whenever it is read, so nothing is read here.
    folder.same_plan(&["-refresh=false"]);
    folder.tofu.write("main.tf", &content("two")).unwrap();
    folder.same_plan(&["-refresh=false"]);
    folder.same_plan(&["-refresh=false", "-destroy"]);
}

#[test]
fn states_are_the_same_but_for_what_is_made_up() {
    let (by_tofu, by_native) = (Folder::new(MAIN), Folder::new(MAIN));
    for args in [&["-var=word=x"][..], &["-var=word=y"], &["-var=size=1", "-var=word=y"], &["-destroy"]] {
        let apply = [&["apply", "-auto-approve"], args].concat();
        by_tofu.tofu(&apply);
        by_native.native(&apply);
        assert_eq!(generic(&by_tofu.state()), generic(&by_native.state()), "after {args:?}");
        if args != ["-destroy"] {
            let outputs = |output: &Output| {
                let mut json: Value = serde_json::from_slice(&output.stdout).unwrap();
                json["one"]["value"] = Value::Null;
                json
            };
            let tofu = outputs(&by_tofu.tofu(&["output", "-json"]));
            assert_eq!(tofu, outputs(&by_native.native(&["output", "-json"])));
        }
    }
}

#[test]
fn states_are_handed_over_byte_for_byte() {
    let folder = Folder::new(MAIN);
    folder.native(&["apply", "-auto-approve"]);
    let native = folder.state();
    let plan = folder.tofu.run(["plan", "-detailed-exitcode"]).unwrap();
    assert_eq!(plan.status.code(), Some(0), "{}", text(&plan));
    folder.tofu(&["apply", "-auto-approve"]);
    assert_eq!(
        String::from_utf8(folder.state()).unwrap(),
        String::from_utf8(native).unwrap(),
        "tofu writes what the native engine wrote"
    );
    folder.native(&["apply", "-auto-approve"]);
    folder.tofu(&["apply", "-auto-approve", "-var=word=z"]);
    let by_tofu = folder.state();
    folder.native(&["apply", "-auto-approve", "-var=word=z"]);
    assert_eq!(String::from_utf8(folder.state()).unwrap(), String::from_utf8(by_tofu).unwrap());
    let shown = |output: &Output| serde_json::from_slice::<Value>(&output.stdout).unwrap();
    assert_eq!(shown(&folder.tofu(&["show", "-json"])), shown(&folder.native(&["show", "-json"])));
}

#[test]
fn opentofu_waits_its_turn_while_landform_has_the_state() {
    use std::io::{BufRead, BufReader};
    let folder = Folder::new(MAIN);
    let mut child = Command::new(env!("CARGO_BIN_EXE_landform"))
        .args(["tf", "apply"])
        .current_dir(folder.tofu.folder())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // Kept to the end: whoever writes into a pipe that nobody reads is ended.
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let asked = lines.by_ref().map_while(Result::ok).any(|line| line.contains("Only 'yes' will be accepted"));
    assert!(asked, "it waits for an answer, with the lock");
    let refused = folder.tofu.run(["plan", "-no-color"]).unwrap();
    assert!(!refused.status.success());
    assert!(text(&refused).contains("Error acquiring the state lock"), "{}", text(&refused));
    // Without an answer nothing is applied, and the lock is free again.
    drop(child.stdin.take());
    assert!(!child.wait().unwrap().success());
    folder.tofu(&["plan"]);
    assert!(!folder.tofu.folder().join("terraform.tfstate").exists());
}

#[test]
fn a_plan_is_applied_exactly_or_refused_as_stale() {
    let folder = Folder::new(MAIN);
    folder.native(&["plan", "-out=p", "-var=word=planned"]);
    folder.native(&["apply", "p"]);
    let shown = folder.native(&["output", "-json", "many"]);
    assert_eq!(String::from_utf8_lossy(&shown.stdout).trim(), r#"["hello planned-0","hello planned-1"]"#);
    let run = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_landform"))
            .arg("tf")
            .args(args)
            .current_dir(folder.tofu.folder())
            .output()
            .unwrap();
        (output.status.code(), text(&output))
    };
    let (code, said) = run(&["apply", "p"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("Saved plan is stale"), "{said}");
    folder.native(&["plan", "-out=p"]);
    assert_eq!(run(&["plan", "-detailed-exitcode"]).0, Some(2));
    assert_eq!(run(&["plan", "-detailed-exitcode", "-var=word=planned"]).0, Some(0));
}

#[test]
fn a_saved_plan_is_applied_whatever_becomes_of_the_files() {
    let main = "variable \"word\" {}\nresource \"terraform_data\" \"a\" { input = var.word }\n\
                output \"word\" { value = terraform_data.a.output }\noutput \"file\" { value = file(\"x.txt\") }\n";
    let lives: [fn(&Folder, &[&str]) -> Output; 2] = [Folder::tofu, Folder::native];
    for life in lives {
        let folder = Folder::new(main);
        folder.tofu.write("x.txt", "planned").unwrap();
        life(&folder, &["plan", "-out=p", "-var=word=planned"]);
        folder.tofu.write("main.tf", &main.replace("var.word", "\"changed\"")).unwrap();
        folder.tofu.write("x.txt", "changed").unwrap();
        life(&folder, &["apply", "-var=word=planned", "p"]);
        for name in ["word", "file"] {
            let shown = life(&folder, &["output", "-json", name]);
            assert_eq!(String::from_utf8_lossy(&shown.stdout).trim(), "\"planned\"", "{name}");
        }
    }
}

#[test]
fn without_a_configuration_nothing_is_marked_for_destruction() {
    let folder = Folder::new(MAIN);
    folder.native(&["apply", "-auto-approve"]);
    std::fs::remove_file(folder.tofu.folder().join("main.tf")).unwrap();
    for args in [["plan", "-no-color"], ["apply", "-auto-approve"]] {
        let native = Command::new(env!("CARGO_BIN_EXE_landform"))
            .arg("tf")
            .args(args)
            .current_dir(folder.tofu.folder())
            .env("LANDFORM_ENGINE", "native")
            .output()
            .unwrap();
        for said in [folder.tofu.run(args).unwrap(), native] {
            assert_eq!(said.status.code(), Some(1), "{args:?}");
            assert!(text(&said).contains("No configuration files"), "{args:?}: {}", text(&said));
        }
    }
    folder.native(&["destroy", "-auto-approve"]);
    assert!(folder.native(&["state", "list"]).stdout.is_empty());
}

#[test]
fn what_is_wrong_or_not_supported_is_said_before_anything_happens() {
    let end = |content: &str, code: i32| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("main.tf"), content).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_landform"))
            .args(["tf", "apply", "-auto-approve"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(code), "{content}");
        assert!(!folder.path().join("terraform.tfstate").exists(), "{content}");
        text(&output)
    };
    assert!(end("module \"m\" { source = \"hashicorp/consul/aws\" }\n", 3).contains("main.tf:1"));
    let run = |content: &str| end(content, 1);
    assert!(run("resource \"terraform_data\" \"a\" { nope = 1 }\n").contains("Unsupported argument"));
    assert!(run("resource \"terraform_data\" \"a\" { input = terraform_data.b.id }\n").contains("undeclared resource"));
    assert!(run("resource \"terraform_data\" \"a\" { id = \"x\" }\n").contains("read-only"));
    assert!(run("variable \"v\" {}\n").contains("No value for required variable"));
    assert!(run("locals {\n a = local.b\n b = local.a\n}\noutput \"o\" { value = local.a }\n").contains("Cycle"));
    let secret = "variable \"v\" {\n default = \"s\"\n sensitive = true\n}\noutput \"o\" { value = var.v }\n";
    assert!(run(secret).contains("Output refers to sensitive values"));
    assert!(run("language {\n compatible_with {\n  opentofu = \"< 1.0\"\n }\n}\n").contains("Incompatible module"));
    let counted = "resource \"terraform_data\" \"a\" {}\nresource \"terraform_data\" \"b\" { count = length(terraform_data.a.id) }\n";
    assert!(run(counted).contains("Invalid count argument"));
}

#[test]
fn ephemeral_values_are_not_kept_in_a_plan_and_are_asked_for_again() {
    let folder = Folder::new(
        "variable \"token\" {\n  ephemeral = true\n  sensitive = true\n}\nresource \"terraform_data\" \"a\" {}\n",
    );
    folder.native(&["plan", "-out=p", "-var=token=canary-1"]);
    let saved = std::fs::read_to_string(folder.tofu.folder().join("p")).unwrap();
    assert!(!saved.contains("canary"));
    let run = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_landform"))
            .arg("tf")
            .args(args)
            .current_dir(folder.tofu.folder())
            .output()
            .unwrap();
        (output.status.code(), text(&output))
    };
    let (code, said) = run(&["apply", "p"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("No value for required variable"), "{said}");
    folder.native(&["apply", "-var=token=canary-2", "p"]);
    assert!(!String::from_utf8(folder.state()).unwrap().contains("canary"));
}

#[test]
fn a_state_is_listed_and_changed_without_any_provider() {
    let folder = Folder::new("resource \"terraform_data\" \"a\" { count = 2 }\nresource \"terraform_data\" \"b\" {}\n");
    folder.native(&["validate"]);
    folder.native(&["apply", "-auto-approve"]);
    let listed = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(listed(&folder.tofu(&["state", "list"])), listed(&folder.native(&["state", "list"])));
    let pulled = |output: &Output| serde_json::from_slice::<Value>(&output.stdout).unwrap();
    assert_eq!(pulled(&folder.tofu(&["state", "pull"])), pulled(&folder.native(&["state", "pull"])));
    folder.native(&["state", "mv", "terraform_data.a", "module.m.terraform_data.c"]);
    folder.native(&["state", "rm", "terraform_data.b"]);
    let want = "module.m.terraform_data.c[0]\nmodule.m.terraform_data.c[1]\n";
    assert_eq!(listed(&folder.tofu(&["state", "list"])), want);
    assert_eq!(listed(&folder.native(&["state", "list", "module.m"])), want);
}
