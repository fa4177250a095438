//! The CLI engine with a real OpenTofu.

mod bench;
mod straight;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use bench::{Bench, Notes, Watched};
use landform_engine::cli::{Cli, CliSettings, Confine};
use landform_engine::{
    Action, Adopt, Applied, ApplyRequest, Diagnostic, Engine, EngineError, Intent, IntentAction, Mode, Plan,
    PlanRequest, Progress, ProgressEvent, Refused, Silent, Stage, Stop, Variable, Workspace,
};
use landform_testkit::parts;
use serde_json::{Value, json};

fn actions(plan: &Plan) -> Vec<(&str, Action)> {
    plan.changes.iter().map(|c| (c.address.as_str(), c.action)).collect()
}

fn intended(intents: &[Intent]) -> Vec<(&str, IntentAction)> {
    intents.iter().map(|i| (i.address.as_str(), i.action)).collect()
}

fn output(applied: &Applied, name: &str) -> Value {
    applied.outputs[name].value.clone()
}

const LIFE: &str = r#"
terraform {
  required_providers {
    time = { source = "hashicorp/time" }
  }
}
variable "text" { type = string }
variable "stamp" { default = "2026-01-01T00:00:00Z" }
resource "terraform_data" "it" { input = var.text }
resource "time_static" "then" { rfc3339 = var.stamp }
output "text" { value = terraform_data.it.output }
output "year" { value = time_static.then.year }
"#;

#[tokio::test]
async fn a_life_from_create_to_destroy() {
    let mut bench = Bench::new(LIFE).await;
    assert!(bench.engine.version().starts_with("opentofu 1."));
    bench.set("text", json!("one"));
    let (plan, applied, intents) = bench.run(Mode::Normal).await;
    assert!(plan.effective && plan.outputs_change && applied.complete());
    assert_eq!(actions(&plan), [("terraform_data.it", Action::Create), ("time_static.then", Action::Create)]);
    let expected = [("terraform_data.it", IntentAction::Create), ("time_static.then", IntentAction::Create)];
    assert_eq!(intended(&intents), expected);
    assert_eq!(intents[0].planned.as_ref().unwrap()["input"], "one");
    assert_eq!(intents[0].provider, "terraform.io/builtin/terraform");
    assert_eq!((output(&applied, "text"), output(&applied, "year")), (json!("one"), json!(2026)));

    let workspace = bench.workspace();
    let plan = bench.plan(&workspace, Mode::Normal).await.ok().unwrap();
    assert!(!plan.effective && plan.changes.is_empty(), "nothing to do");

    bench.set("text", json!("two"));
    let (plan, applied, _) = bench.run(Mode::Normal).await;
    assert_eq!(actions(&plan), [("terraform_data.it", Action::Update)]);
    assert_eq!(output(&applied, "text"), "two");

    bench.set("stamp", json!("2027-01-01T00:00:00Z"));
    let (plan, applied, intents) = bench.run(Mode::Normal).await;
    assert_eq!(actions(&plan), [("time_static.then", Action::Replace)]);
    let both = [("time_static.then", IntentAction::Delete), ("time_static.then", IntentAction::Create)];
    assert_eq!(intended(&intents), both);
    assert_eq!(output(&applied, "year"), 2027);

    let workspace = bench.workspace();
    let replace = vec!["terraform_data.it".to_owned()];
    let request =
        PlanRequest { workspace: &workspace, mode: Mode::Normal, adopt: Vec::new(), replace, doubted: Vec::new() };
    let plan = bench.engine.plan(request, &Silent, &Stop::new()).await.ok().unwrap();
    assert_eq!(actions(&plan), [("terraform_data.it", Action::Replace)]);

    assert_eq!(bench.cached().len(), 1, "init was paid once");
    let (plan, applied, _) = bench.run(Mode::Destroy).await;
    assert_eq!(actions(&plan), [("terraform_data.it", Action::Delete), ("time_static.then", Action::Delete)]);
    assert!(applied.outputs.is_empty());
    let state: Value = serde_json::from_slice(&applied.state).unwrap();
    assert_eq!(state["resources"], json!([]));
}

#[tokio::test]
async fn strings_are_data_whatever_they_look_like() {
    let mut bench = Bench::new("variable \"text\" {}\nresource \"terraform_data\" \"it\" { input = var.text }").await;
    let hostile = "${file(\"/etc/passwd\")} %{ if true }x%{ endif } $${a} \"quotes\" \\ 'single'\n<<EOT\nheredoc\nEOT\n\u{0}\u{1f600}\t";
    bench.set("text", json!([hostile, {hostile: hostile}]));
    let (_, applied, _) = bench.run(Mode::Normal).await;
    let state: Value = serde_json::from_slice(&applied.state).unwrap();
    let input = &state["resources"][0]["instances"][0]["attributes"]["input"]["value"];
    assert_eq!(input, &json!([hostile, {hostile: hostile}]));
}

#[tokio::test]
async fn numbers_keep_all_their_digits() {
    let mut bench = Bench::new("variable \"n\" { type = number }\noutput \"n\" { value = var.n }").await;
    let number: Value = serde_json::from_str("12345678901234567890123456789").unwrap();
    bench.set("n", number.clone());
    let (_, applied, _) = bench.run(Mode::Normal).await;
    assert_eq!(output(&applied, "n"), number);
}

#[tokio::test]
async fn a_failing_apply_keeps_what_was_done() {
    let failing = r#"
resource "terraform_data" "good" { input = "made" }
resource "terraform_data" "bad" {
  input = terraform_data.good.id
  provisioner "local-exec" { command = "exit 7" }
}
"#;
    let mut bench = Bench::new(failing).await;
    let (_, applied, intents) = bench.run(Mode::Normal).await;
    assert!(!applied.complete() && !applied.stopped);
    let error = applied.diagnostics.iter().find(|d| d.is_error()).unwrap();
    assert_eq!(error.address.as_deref(), Some("terraform_data.bad"));
    assert_eq!(error.range.as_ref().unwrap().file, "main.tf");
    assert_eq!(intents.len(), 2);
    bench.write("main.tf", &failing.replace("exit 7", "exit 0"));
    let (plan, applied, _) = bench.run(Mode::Normal).await;
    assert_eq!(actions(&plan), [("terraform_data.bad", Action::Replace)], "it is tainted, the good one stays");
    assert!(applied.complete());
}

#[tokio::test]
async fn wrong_configuration_is_refused_with_its_place() {
    let bench = &mut Bench::new("resource \"terraform_data\" \"it\" {\n  inptu = 1\n}\n").await;
    let workspace = bench.workspace();
    let Err(EngineError::Diagnostics(found)) = bench.plan(&workspace, Mode::Normal).await else { panic!("refused") };
    assert_eq!(found[0].range.as_ref().map(|r| (r.file.as_str(), r.line)), Some(("main.tf", 2)));

    bench.write("main.tf", "terraform {\n  required_providers {\n    no = { source = \"nobody/no\" }\n  }\n}\n");
    let workspace = bench.workspace();
    let Err(EngineError::Diagnostics(found)) = bench.plan(&workspace, Mode::Normal).await else { panic!("refused") };
    assert!(found.iter().any(|d| d.detail.contains("nobody/no")), "{found:?}");
    assert_eq!(bench.cached().len(), 1, "a failed init leaves nothing behind");
}

#[tokio::test]
async fn a_plan_is_applied_exactly_or_not_at_all() {
    let mut bench = Bench::new(LIFE).await;
    bench.set("text", json!("one"));
    let workspace = bench.workspace();
    let plan = bench.plan(&workspace, Mode::Normal).await.ok().unwrap();
    let applied = bench.apply(&workspace, &plan, &Notes::default()).await.ok().unwrap();

    let stale = |workspace: Workspace, plan: &Plan| {
        let (engine, bytes) = (&bench.engine, plan.bytes.clone());
        async move {
            let journal = Notes::default();
            let request = ApplyRequest { workspace: &workspace, plan: &bytes };
            let result = engine.apply(request, &journal, &Silent, &Stop::new()).await;
            assert!(journal.intents.into_inner().unwrap().is_empty());
            assert!(matches!(result, Err(EngineError::Stale(_))));
        }
    };
    let again = |state: Option<Vec<u8>>, text: &str| Workspace {
        folder: workspace.folder.clone(),
        scratch: workspace.scratch.clone(),
        variables: BTreeMap::from([("text".to_owned(), Variable::new(json!(text), false))]),
        state,
        environment: BTreeMap::new(),
    };
    stale(again(Some(applied.state.clone()), "one"), &plan).await;
    stale(again(None, "another"), &plan).await;
    bench.write("more.tf", "# changed");
    stale(again(None, "one"), &plan).await;
}

#[tokio::test]
async fn a_refusal_of_the_journal_leaves_everything_alone() {
    let mut bench = Bench::new("").await;
    let path = bench.root.path().join("seen").join("made");
    let configuration = format!(
        "resource \"terraform_data\" \"it\" {{\n  provisioner \"local-exec\" {{\n    command = \"touch {}\"\n  }}\n}}",
        path.display()
    );
    bench.write("main.tf", &configuration);
    let workspace = bench.workspace();
    let plan = bench.plan(&workspace, Mode::Normal).await.ok().unwrap();
    let journal = Notes { refuse: true, ..Notes::default() };
    let result = bench.apply(&workspace, &plan, &journal).await;
    assert!(matches!(result, Err(EngineError::Refused(Refused::Fenced))));
    assert!(!path.exists());
}

/// Cancels as soon as the object with this address has started.
struct StopAt(&'static str, Stop);

impl Progress for StopAt {
    fn report(&self, event: ProgressEvent) {
        if let ProgressEvent::Object { address, stage: Stage::Started, .. } = event
            && address == self.0
        {
            self.1.cancel();
        }
    }
}

const SLOW: &str = r#"
resource "terraform_data" "first" { input = 1 }
resource "terraform_data" "slow" {
  input = terraform_data.first.id
  provisioner "local-exec" { command = "sleep 30" }
}
resource "terraform_data" "never" { input = terraform_data.slow.id }
"#;

#[tokio::test]
async fn a_stop_ends_the_apply_with_its_state() {
    let mut bench = Bench::new(SLOW).await;
    let workspace = bench.workspace();
    let plan = bench.plan(&workspace, Mode::Normal).await.ok().unwrap();
    let stop = Stop::new();
    let progress = StopAt("terraform_data.slow", stop.clone());
    let request = ApplyRequest { workspace: &workspace, plan: &plan.bytes };
    let applied = bench.engine.apply(request, &Notes::default(), &progress, &stop).await.ok().unwrap();
    assert!(applied.stopped && !applied.complete());
    let state = String::from_utf8(applied.state).unwrap();
    assert!(state.contains("\"first\"") && !state.contains("\"never\""));

    let stop = Stop::new();
    stop.cancel();
    let request = ApplyRequest { workspace: &workspace, plan: &plan.bytes };
    let journal = Notes::default();
    let result = bench.engine.apply(request, &journal, &Silent, &stop).await;
    assert!(matches!(result, Err(EngineError::Stopped)));
    assert!(journal.intents.into_inner().unwrap().is_empty());
}

/// Kills the CLI, found by its register file, as soon as the object has started.
struct KillAt(&'static str, PathBuf);

impl Progress for KillAt {
    fn report(&self, event: ProgressEvent) {
        if let ProgressEvent::Object { address, stage: Stage::Started, .. } = event
            && address == self.0
        {
            let entries = std::fs::read_dir(&self.1).unwrap().map(|e| e.unwrap().path());
            let register = entries.into_iter().find(|p| p.extension().is_some_and(|e| e == "child")).unwrap();
            let entry: Value = serde_json::from_slice(&std::fs::read(register).unwrap()).unwrap();
            let status = std::process::Command::new("kill").arg("-9").arg(entry["pid"].to_string()).status();
            assert!(status.unwrap().success());
        }
    }
}

#[tokio::test]
async fn a_killed_cli_is_lost_and_its_state_is_salvaged() {
    let mut bench = Bench::new("resource \"terraform_data\" \"old\" { input = 1 }").await;
    bench.run(Mode::Normal).await;
    bench.write("slow.tf", SLOW);
    let workspace = bench.workspace();
    let plan = bench.plan(&workspace, Mode::Normal).await.ok().unwrap();
    let progress = KillAt("terraform_data.slow", workspace.scratch.clone());
    let journal = Notes::default();
    let request = ApplyRequest { workspace: &workspace, plan: &plan.bytes };
    let result = bench.engine.apply(request, &journal, &progress, &Stop::new()).await;
    assert!(matches!(result, Err(EngineError::Lost(_))));
    assert_eq!(journal.intents.lock().unwrap().len(), 3);
    assert!(journal.settled.lock().unwrap().is_empty(), "all of them are in doubt");
    let salvaged = bench.engine.salvage(&workspace.scratch).await.ok().unwrap().expect("a state");
    assert!(String::from_utf8(salvaged).unwrap().contains("\"old\""));
    assert_eq!(bench.engine.salvage(Path::new("/nowhere")).await.ok().unwrap(), None);
}

#[tokio::test]
async fn secrets_stay_out_of_what_people_read() {
    let configuration = r#"
variable "given" {}
variable "declared" {
  default   = "declared-secret"
  sensitive = true
}
resource "terraform_data" "it" {
  input = var.given
  provisioner "local-exec" { command = "echo ${var.given} ${var.declared} >&2; exit 1" }
}
"#;
    let mut bench = Bench::new(configuration).await;
    bench.variables.insert("given".to_owned(), Variable::new(json!("given-secret"), true));
    let workspace = bench.workspace();
    let plan = bench.plan(&workspace, Mode::Normal).await.ok().unwrap();
    let watched = Watched::default();
    let request = ApplyRequest { workspace: &workspace, plan: &plan.bytes };
    let applied = bench.engine.apply(request, &Notes::default(), &watched, &Stop::new()).await.ok().unwrap();
    assert!(!applied.complete());
    let read = format!("{:?} {:?} {:?}", watched.0.lock().unwrap(), applied.diagnostics, workspace);
    assert!(!read.contains("given-secret") && !read.contains("declared-secret"), "{read}");
}

#[tokio::test]
async fn a_backend_is_ignored_with_a_warning_and_the_environment_is_closed() {
    let configuration = r#"
terraform {
  backend "s3" { bucket = "elsewhere" }
}
resource "terraform_data" "it" {
  provisioner "local-exec" { command = "test \"$GIVEN\" = yes && test -z \"$CARGO_MANIFEST_DIR\"" }
}
"#;
    let mut bench = Bench::new(configuration).await;
    bench.environment.insert("GIVEN".to_owned(), "yes".to_owned());
    let (plan, applied, _) = bench.run(Mode::Normal).await;
    assert_eq!(plan.warnings[0].summary, "The backend block is ignored");
    assert!(applied.complete(), "{:?}", applied.diagnostics);

    bench.environment.insert("TF_CLI_ARGS".to_owned(), "-lock=true".to_owned());
    let workspace = bench.workspace();
    assert!(matches!(bench.plan(&workspace, Mode::Normal).await, Err(EngineError::Diagnostics(_))));
}

#[tokio::test]
async fn many_runs_of_one_template_share_one_init() {
    let mut bench = Bench::new(LIFE).await;
    bench.set("text", json!("same"));
    let workspaces: Vec<Workspace> = (0..8).map(|_| bench.workspace()).collect();
    let plans = workspaces.iter().map(|workspace| bench.plan(workspace, Mode::Normal));
    for plan in futures::future::join_all(plans).await {
        assert!(plan.is_ok_and(|p| p.effective));
    }
    assert_eq!(bench.cached().len(), 1);
}

/// `init` has compared a provider with the lock file, and the runs after it go by the file's identity: whatever takes its
/// place is compared again.
#[tokio::test]
async fn a_provider_that_was_exchanged_since_is_refused() {
    let mirror = tempfile::tempdir().unwrap();
    let known = parts::provider("hashicorp/time");
    let provider = mirror.path().join(known.strip_prefix(parts::mirror()).unwrap());
    std::fs::create_dir_all(provider.parent().unwrap()).unwrap();
    std::fs::copy(&known, &provider).unwrap();
    let mut bench = Bench::with_mirror(LIFE, mirror.path().to_owned()).await;
    bench.set("text", json!("one"));
    let workspace = bench.workspace();
    assert!(bench.plan(&workspace, Mode::Normal).await.is_ok());
    let lock = std::fs::read_to_string(workspace.scratch.join("work/.terraform.lock.hcl")).unwrap();
    assert!(lock.contains("registry.opentofu.org/hashicorp/time") && !lock.contains("hashes"), "{lock}");

    // The same file with one name more: nothing that a plan depends on has changed.
    let workspace = bench.workspace();
    let plan = bench.plan(&workspace, Mode::Normal).await.ok().unwrap();
    std::fs::hard_link(&provider, mirror.path().join("another-name")).unwrap();
    let applied = bench.apply(&workspace, &plan, &Notes::default()).await.map_err(|e| panic!("{e:?}")).unwrap();
    assert!(applied.complete());

    // It does the same, and is another one.
    let other = provider.with_extension("other");
    std::fs::copy(&known, &other).unwrap();
    std::fs::OpenOptions::new().append(true).open(&other).unwrap().write_all(b"x").unwrap();
    std::fs::rename(&other, &provider).unwrap();
    let workspace = bench.workspace();
    let Err(EngineError::Diagnostics(said)) = bench.plan(&workspace, Mode::Normal).await else {
        panic!("it was taken for the one that `init` has seen");
    };
    let is_told =
        |diagnostic: &Diagnostic| format!("{} {}", diagnostic.summary, diagnostic.detail).contains("checksum");
    assert!(said.iter().any(is_told), "{said:?}");
}

#[tokio::test]
async fn objects_of_a_provider_that_the_configuration_forgot_are_destroyed() {
    let mut bench = Bench::new(LIFE).await;
    bench.set("text", json!("one"));
    bench.run(Mode::Normal).await;
    bench.write("main.tf", "variable \"text\" {}");
    let (plan, applied, _) = bench.run(Mode::Normal).await;
    assert_eq!(actions(&plan), [("terraform_data.it", Action::Delete), ("time_static.then", Action::Delete)]);
    assert!(applied.complete());
}

#[tokio::test]
async fn an_object_is_adopted_by_its_id() {
    let mut bench = Bench::new(LIFE).await;
    bench.set("text", json!("one"));
    let workspace = bench.workspace();
    let adopt = vec![Adopt { address: "time_static.then".to_owned(), id: "2026-01-01T00:00:00Z".to_owned() }];
    let request =
        PlanRequest { workspace: &workspace, mode: Mode::Normal, adopt, replace: Vec::new(), doubted: Vec::new() };
    let plan = bench.engine.plan(request, &Silent, &Stop::new()).await.map_err(|e| panic!("{e:?}")).unwrap();
    let adopted = plan.changes.iter().find(|c| c.address == "time_static.then").unwrap();
    assert_eq!(adopted.importing.as_deref(), Some("2026-01-01T00:00:00Z"));
    let journal = Notes::default();
    let applied = bench.apply(&workspace, &plan, &journal).await.ok().unwrap();
    assert!(applied.complete());
    let intents = journal.intents.into_inner().unwrap();
    assert!(intended(&intents).contains(&("time_static.then", IntentAction::Import)));
}

#[tokio::test]
async fn something_else_than_the_cli_is_named_as_such() {
    let root = tempfile::tempdir().unwrap();
    let settings = |binary: &str| CliSettings {
        binary: binary.into(),
        mirror: None,
        cache: root.path().join("cache"),
        confinement: Confine::Auto,
        may_read: Vec::new(),
        may_write: Vec::new(),
    };
    let Err(error) = Cli::detect(settings("/bin/echo")).await else { panic!("echo is not OpenTofu") };
    assert!(error.to_string().contains("does not look like OpenTofu"), "{error}");
    let Err(error) = Cli::detect(settings("/nowhere/tofu")).await else { panic!("there is none") };
    assert!(error.to_string().contains("/nowhere/tofu"), "{error}");
}

/// For want of memory, say: that tells nothing about what it is.
#[tokio::test]
async fn a_cli_that_is_killed_before_it_can_say_what_it_is_is_asked_again() {
    use std::os::unix::fs::PermissionsExt;
    let root = tempfile::tempdir().unwrap();
    let (binary, killed) = (root.path().join("tofu"), root.path().join("killed"));
    let script = format!(
        "#!/bin/sh\ntest -e {killed} || {{ : >{killed}; kill -9 $$; }}\necho OpenTofu v1.12.6\n",
        killed = killed.display()
    );
    std::fs::write(&binary, script).unwrap();
    std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
    let settings = CliSettings {
        binary,
        mirror: None,
        cache: root.path().join("cache"),
        confinement: Confine::Off,
        may_read: Vec::new(),
        may_write: Vec::new(),
    };
    let cli = Cli::detect(settings).await.map_err(|error| error.to_string()).unwrap();
    assert!(killed.exists());
    assert_eq!(cli.version(), "opentofu 1.12.6");
}

/// A module that looks around: the server's key and database lie beside its own folder.
#[tokio::test]
async fn a_run_sees_only_its_own_folder() {
    let mut bench = Bench::new("").await;
    let hidden = bench.root.path().join("master.key");
    std::fs::write(&hidden, "the key of everything").unwrap();
    let configuration = format!(
        "output \"read\" {{ value = try(file({0:?}), \"denied\") }}\n\
         resource \"terraform_data\" \"it\" {{\n  provisioner \"local-exec\" {{\n    \
         command = \"cat {1} || cat /etc/shadow || ls {2} || exit 7\"\n  }}\n}}",
        hidden.display().to_string(),
        hidden.display(),
        bench.root.path().display(),
    );
    bench.write("main.tf", &configuration);
    let (_, applied, _) = bench.run(Mode::Normal).await;
    assert_eq!(output(&applied, "read"), "denied");
    let errors: Vec<_> = applied.diagnostics.iter().filter(|d| d.is_error()).map(|d| &d.detail).collect();
    assert!(errors.iter().any(|detail| detail.contains("exit status 7")), "{errors:?}");
}
