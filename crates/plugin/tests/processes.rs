//! Real providers, and binaries that are none.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use landform_cty::{Type, Value};
use landform_plugin::{Binary, Launch, Limits, Pool, Process, Schemas, StartError, Surroundings};
use landform_protocol::wire::Version;
use landform_protocol::*;
use landform_testkit::parts;

async fn start(source: &str, schemas: &Arc<Schemas>) -> Process {
    let binary = Binary::at(&parts::provider(source)).unwrap();
    let launch = Launch::new(&binary.path);
    Process::start(binary, launch, schemas.clone()).await.unwrap()
}

/// The object of a block's type in which every attribute but the given ones is null.
fn object(ty: &Type, given: &[(&str, Value)]) -> Value {
    let Type::Object { attributes, .. } = ty else { panic!("a block is an object") };
    Value::object(attributes.iter().map(|(name, ty)| {
        let given = given.iter().find(|(given, _)| given == name).map(|(_, value)| value.clone());
        (name.clone(), given.unwrap_or_else(|| Value::null(ty.clone())))
    }))
}

async fn configure(process: &Process) {
    let schema = process.schema().await.unwrap();
    let config = object(&schema.provider.block.implied_type(), &[]);
    let (config, diagnostics) = process.validate_provider_config(config).await.unwrap();
    assert_eq!(diagnostics, []);
    let diagnostics = process.configure(Configure { terraform_version: "1.12.6".into(), config }).await.unwrap();
    assert_eq!(diagnostics, []);
}

async fn create(process: &Process, type_name: &str, config: Value, proposed: Value) -> ApplyAnswer {
    let ty = config.ty.clone();
    let plan = process
        .plan_resource_change(PlanResourceChange {
            type_name: type_name.into(),
            prior: Value::null(ty.clone()),
            proposed,
            config: config.clone(),
            prior_private: Vec::new(),
            prior_identity: None,
        })
        .await
        .unwrap();
    assert_eq!(plan.diagnostics, []);
    assert!(!plan.planned.is_wholly_known(), "an id is known after apply");
    let apply = ApplyResourceChange {
        type_name: type_name.into(),
        prior: Value::null(ty),
        planned: plan.planned,
        config,
        planned_private: plan.planned_private,
        planned_identity: None,
    };
    process.apply_resource_change(apply).await.unwrap()
}

/// What a provider knows must not be had by whoever learns the name of its socket.
#[tokio::test]
async fn nobody_else_can_connect_to_a_provider() {
    let sockets = tempfile::tempdir().unwrap();
    let binary = Binary::at(&parts::provider("hashicorp/time")).unwrap();
    let mut launch = Launch::new(&binary.path);
    let folder = sockets.path().to_str().unwrap().to_owned();
    launch.surroundings.environment.insert("PLUGIN_UNIX_SOCKET_DIR".into(), folder.clone());
    let process = Process::start(binary, launch, Arc::new(Schemas::in_memory())).await.unwrap();
    configure(&process).await;
    let listening = std::fs::read_to_string("/proc/net/unix").unwrap();
    assert!(listening.contains(&folder), "it has listened there");
    assert_eq!(std::fs::read_dir(sockets.path()).unwrap().count(), 0, "and the name is gone");
}

#[tokio::test]
async fn the_time_provider_creates_without_being_asked_for_its_schema() {
    let folder = tempfile::tempdir().unwrap();
    let asked = start("hashicorp/time", &Arc::new(Schemas::in_folder(folder.path()))).await;
    assert_eq!(asked.version(), Version::V5);
    assert!(asked.schema().await.unwrap().capabilities.get_provider_schema_optional);

    // Another cache over the same folder: the schema comes from disk, and this process is never asked for it.
    let process = start("hashicorp/time", &Arc::new(Schemas::in_folder(folder.path()))).await;
    assert_eq!(process.schema().await.unwrap(), asked.schema().await.unwrap());
    configure(&process).await;
    let ty = process.schema().await.unwrap().resources["time_static"].block.implied_type();
    let unknown: Vec<(&str, Value)> = ["day", "hour", "id", "minute", "month", "rfc3339", "second", "unix", "year"]
        .map(|name| (name, Value::unknown(ty.attribute(name).unwrap().clone())))
        .into();
    let answer = create(&process, "time_static", object(&ty, &[]), object(&ty, &unknown)).await;
    assert_eq!(answer.diagnostics, []);
    let stamp = answer.new_state.get("rfc3339").and_then(Value::as_str).unwrap().to_owned();
    assert!(stamp.ends_with('Z'), "{stamp}");

    let state = serde_json::to_vec(&answer.new_state.to_json(&ty).unwrap()).unwrap();
    let upgrade = UpgradeResourceState { type_name: "time_static".into(), version: 0, attributes_json: state };
    let (upgraded, _) = process.upgrade_resource_state(upgrade).await.unwrap();
    assert_eq!(upgraded, answer.new_state);

    // A second configuration would change the meaning of calls under way.
    let config = object(&process.schema().await.unwrap().provider.block.implied_type(), &[]);
    let again = process.configure(Configure { terraform_version: "1.12.6".into(), config }).await;
    assert!(matches!(again, Err(CallError::Failed { .. })), "{again:?}");
    process.retire().await;
}

#[tokio::test]
async fn the_coder_provider_speaks_the_legacy_type_system() {
    let folder = tempfile::tempdir().unwrap();
    let asked = start("coder/coder", &Arc::new(Schemas::in_folder(folder.path()))).await;
    assert!(asked.schema().await.unwrap().capabilities.get_provider_schema_optional);
    let process = start("coder/coder", &Arc::new(Schemas::in_folder(folder.path()))).await;
    configure(&process).await;
    let ty = process.schema().await.unwrap().resources["coder_env"].block.implied_type();
    let given = [("agent_id", Value::string("a")), ("name", Value::string("N")), ("value", Value::string("v"))];
    let config = object(&ty, &given);
    let invalid = object(&ty, &[("agent_id", Value::string("a")), ("name", Value::string("no name!"))]);
    let validate = |config| ValidateResourceConfig { type_name: "coder_env".into(), config };
    assert_eq!(process.validate_resource_config(validate(config.clone())).await.unwrap(), []);
    let diagnostics = process.validate_resource_config(validate(invalid)).await.unwrap();
    assert!(diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error));
    let proposed = object(&ty, &[given.as_slice(), &[("id", Value::unknown(Type::String))]].concat());
    let answer = create(&process, "coder_env", config, proposed).await;
    assert!(answer.legacy_type_system);
    assert!(answer.new_state.get("id").and_then(Value::as_str).is_some_and(|id| !id.is_empty()));
}

#[tokio::test]
async fn a_process_that_dies_during_a_call_says_so() {
    let folder = tempfile::tempdir().unwrap();
    // The real provider, in place of a shell that leaves its process id, so that the test knows whom to kill.
    let provider = parts::provider("hashicorp/time");
    let body = format!("echo $$ > {}/pid\nexec {}", folder.path().display(), provider.display());
    let killed = script(folder.path(), "killed", &body);
    let binary = Binary::at(&killed).unwrap();
    let process = Process::start(binary, Launch::new(&killed), Arc::new(Schemas::in_memory())).await.unwrap();
    process.schema().await.unwrap();
    let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
    assert!(std::process::Command::new("kill").args(["-9", pid.trim()]).status().unwrap().success());
    let error = process.stop().await.unwrap_err();
    assert!(matches!(&error, CallError::Ended { detail, .. } if detail.contains("signal: 9")), "{error}");
    assert!(!process.is_alive());
}

fn script(folder: &Path, name: &str, body: &str) -> PathBuf {
    let (text, path) = (folder.join(format!("{name}.txt")), folder.join(name));
    std::fs::write(&text, format!("#!/bin/sh\n{body}\n")).unwrap();
    // Written by another process: a file that this one has open for writing while some test forks cannot be started.
    let install = std::process::Command::new("install").args(["-m", "755"]).arg(&text).arg(&path).status().unwrap();
    assert!(install.success());
    path
}

async fn failure(path: &Path, timeout: Duration) -> StartError {
    let binary = Binary::at(path).unwrap();
    let launch = Launch { timeout, ..Launch::new(path) };
    Process::start(binary, launch, Arc::new(Schemas::in_memory())).await.expect_err("it is no provider")
}

#[tokio::test]
async fn what_is_no_provider_is_a_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let long = Duration::from_secs(60);
    let talker = script(folder.path(), "talker", "echo hello; sleep 600");
    assert!(failure(&talker, long).await.to_string().contains("it printed \"hello\""));

    let endless = script(folder.path(), "endless", "while :; do printf xxxxxxxxxxxxxxxx; done");
    assert!(matches!(failure(&endless, long).await, StartError::NotAProvider { .. }));

    let dying = script(folder.path(), "dying", "echo cannot work here >&2; exit 3");
    let error = failure(&dying, long).await.to_string();
    assert!(error.contains("exit status: 3") && error.contains("cannot work here"), "{error}");

    let silent = script(folder.path(), "silent", "echo thinking >&2; exec sleep 600");
    let error = failure(&silent, Duration::from_millis(300)).await;
    assert!(matches!(error, StartError::Timeout { .. }), "{error}");

    let liar = script(folder.path(), "liar", "echo '1|5|unix|/nowhere/socket|grpc|'; sleep 600");
    assert!(matches!(failure(&liar, long).await, StartError::Unreachable { .. }));

    let socket = folder.path().join("mute.socket");
    let _mute = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let greeting = format!("echo '1|5|unix|{}|grpc|'; sleep 600", socket.display());
    let error = failure(&script(folder.path(), "mute", &greeting), Duration::from_millis(300)).await;
    assert!(matches!(error, StartError::Timeout { .. }), "{error}");

    let text = folder.path().join("text");
    std::fs::write(&text, "not executable").unwrap();
    assert!(matches!(failure(&text, long).await, StartError::Spawn { .. }));
}

/// A stand-in that writes what it sees of the environment and then becomes the real provider.
fn witness(folder: &Path) -> PathBuf {
    let log = folder.join("environments");
    let provider = parts::provider("hashicorp/time");
    script(folder, "witness", &format!("(env; pwd; echo --) >> {}\nexec {}", log.display(), provider.display()))
}

fn environments(folder: &Path) -> Vec<String> {
    let log = std::fs::read_to_string(folder.join("environments")).unwrap_or_default();
    log.split("--\n").filter(|one| !one.is_empty()).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_spare_is_blank_and_used_once() {
    let folder = tempfile::tempdir().unwrap();
    let binary = Binary::at(&witness(folder.path())).unwrap();
    let pool = Pool::new(Limits { spares: 1, ..Limits::default() }, Schemas::in_memory(), None);
    let none = Surroundings::default();
    let first = pool.acquire(&binary, &none).await.unwrap();
    first.schema().await.unwrap();
    // The second start is the spare; it happens by itself.
    while environments(folder.path()).len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let environment = BTreeMap::from([("VENDOR_TOKEN".to_owned(), "s3cret".to_owned())]);
    let secret = Surroundings { environment, folder: Some(folder.path().into()) };
    assert!(!format!("{secret:?}").contains("s3cret"));
    let with_secret = pool.acquire(&binary, &secret).await.unwrap();
    let seen = environments(folder.path());
    assert_eq!(seen.len(), 3, "credentials in the environment mean a start of its own");
    assert!(seen[2].contains("VENDOR_TOKEN=s3cret"));
    let here = folder.path().canonicalize().unwrap().display().to_string();
    let works_here = |environment: &str| environment.lines().any(|line| line == here);
    assert!(works_here(&seen[2]) && !works_here(&seen[0]) && !works_here(&seen[1]));
    for environment in &seen {
        assert!(!environment.contains("CARGO"), "only what is on the list is handed down: {environment}");
    }
    assert!(!seen[0].contains("s3cret") && !seen[1].contains("s3cret"));
    for process in [first, with_secret] {
        assert!(process.is_alive());
        process.retire().await;
    }
}

#[tokio::test]
async fn the_number_of_processes_is_bounded() {
    let binary = Binary::at(&parts::provider("hashicorp/time")).unwrap();
    let pool = Pool::new(Limits { in_use: 1, spares: 0, ..Limits::default() }, Schemas::in_memory(), None);
    let none = Surroundings::default();
    let first = pool.acquire(&binary, &none).await.unwrap();
    assert!(matches!(pool.acquire(&binary, &none).await, Err(StartError::TooMany { limit: 1 })));
    drop(first);
    pool.acquire(&binary, &none).await.unwrap();
}
