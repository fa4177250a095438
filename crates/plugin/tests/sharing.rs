//! One configured process for several runs: only with the same configuration, and never from memory.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use landform_cty::{Type, Value};
use landform_plugin::{Binary, Leased, Limits, Pool, Schemas, Surroundings, Terms, WarmLimits};
use landform_protocol::wire::Version;
use landform_protocol::*;
use landform_testkit::{parts, probe};

const SHARED: Terms = Terms { shared: true, concurrency: None };

fn pool(warm: WarmLimits) -> Pool {
    Pool::new(Limits { spares: 0, warm, ..Limits::default() }, Schemas::in_memory(), None)
}

fn object(ty: &Type, given: &[(&str, Value)]) -> Value {
    let Type::Object { attributes, .. } = ty else { panic!("a block is an object") };
    Value::object(attributes.iter().map(|(name, ty)| {
        let given = given.iter().find(|(given, _)| given == name).map(|(_, value)| value.clone());
        (name.clone(), given.unwrap_or_else(|| Value::null(ty.clone())))
    }))
}

/// A run's provider, configured for a ledger and a region.
async fn run(pool: &Pool, terms: Terms, ledger: &Path, region: &str) -> Leased {
    let binary = Binary::at(&probe::program(Version::V6)).unwrap();
    let leased = pool.lease(&binary, &Surroundings::default(), terms).await.unwrap();
    let ty = leased.schema().await.unwrap().provider.block.implied_type();
    let ledger = Value::string(ledger.display().to_string());
    let config = object(&ty, &[("ledger", ledger), ("region", Value::string(region))]);
    assert_eq!(leased.validate_provider_config(config.clone()).await.unwrap().1, []);
    let configure = Configure { terraform_version: "1.12.6".into(), config };
    assert_eq!(leased.configure(configure.clone()).await.unwrap(), []);
    assert!(leased.configure(configure).await.is_err(), "a configuration is for life");
    leased
}

/// The region that the process was configured with, and the process.
async fn ask(leased: &Leased) -> (String, String) {
    let ty = leased.schema().await.unwrap().data_sources["probe_where"].block.implied_type();
    let call = ReadDataSource { type_name: "probe_where".into(), config: object(&ty, &[]) };
    let (state, diagnostics) = leased.read_data_source(call).await.unwrap();
    assert_eq!(diagnostics, []);
    let process = state.get("process").and_then(Value::as_number).unwrap().to_string();
    (state.get("region").and_then(Value::as_str).unwrap().to_owned(), process)
}

async fn process_of(leased: &Leased) -> String {
    ask(leased).await.1
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_ever_comes_from_another_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let (pool, ledger) = (pool(WarmLimits::default()), folder.path().join("ledger"));
    let mut runs = tokio::task::JoinSet::new();
    for number in 0..64 {
        let (pool, ledger, region) = (pool.clone(), ledger.clone(), format!("region {}", number % 16));
        runs.spawn(async move {
            let leased = run(&pool, SHARED, &ledger, &region).await;
            let mut processes = BTreeSet::new();
            for _ in 0..5 {
                let (answered, process) = ask(&leased).await;
                assert_eq!(answered, region);
                processes.insert(process);
            }
            assert_eq!(processes.len(), 1, "a run stays with its process");
            (region, processes.pop_first().unwrap())
        });
    }
    let answers = runs.join_all().await;
    let pairs: BTreeSet<&(String, String)> = answers.iter().collect();
    let processes: BTreeSet<&String> = answers.iter().map(|(_, process)| process).collect();
    assert_eq!(processes.len(), pairs.len(), "a process has one configuration");
    assert!(processes.len() < 64, "runs of the same configuration do share");
}

#[tokio::test]
async fn an_object_changed_behind_its_back_is_seen_by_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let (pool, ledger) = (pool(WarmLimits::default()), folder.path().join("ledger"));
    let first = run(&pool, SHARED, &ledger, "here").await;
    let ty = first.schema().await.unwrap().resources["probe_versioned"].block.implied_type();
    let planned = object(&ty, &[("name", Value::string("a")), ("id", Value::unknown(Type::String))]);
    let apply = ApplyResourceChange {
        type_name: "probe_versioned".into(),
        prior: Value::null(ty.clone()),
        config: planned.clone(),
        planned,
        planned_private: Vec::new(),
        planned_identity: None,
    };
    let made = first.apply_resource_change(apply).await.unwrap().new_state;
    let read = |leased: Leased| {
        let call = ReadResource {
            type_name: "probe_versioned".into(),
            current: made.clone(),
            private: Vec::new(),
            identity: None,
        };
        async move { (process_of(&leased).await, leased.read_resource(call).await.unwrap().new_state) }
    };
    let (process, before) = read(first).await;
    assert_eq!(before.get("name"), Some(&Value::string("a")));

    let changed = std::fs::read_to_string(&ledger).unwrap().replace("\"name\":\"a\"", "\"name\":\"b\"");
    std::fs::write(&ledger, changed).unwrap();
    let (same, after) = read(run(&pool, SHARED, &ledger, "here").await).await;
    assert_eq!(same, process, "it is the same warm process");
    assert_eq!(after.get("name"), Some(&Value::string("b")));

    std::fs::remove_file(&ledger).unwrap();
    let (same, gone) = read(run(&pool, SHARED, &ledger, "here").await).await;
    assert!(same == process && gone.is_null());
}

/// On the list of shared providers: each run gets a time of its own from the warm process.
#[tokio::test]
async fn the_time_provider_answers_each_run_anew() {
    let pool = pool(WarmLimits::default());
    let binary = Binary::at(&parts::provider("hashicorp/time")).unwrap();
    let mut stamps = BTreeSet::new();
    for _ in 0..2 {
        let leased = pool.lease(&binary, &Surroundings::default(), SHARED).await.unwrap();
        let schema = leased.schema().await.unwrap();
        let config = object(&schema.provider.block.implied_type(), &[]);
        leased.configure(Configure { terraform_version: "1.12.6".into(), config }).await.unwrap();
        let ty = schema.resources["time_static"].block.implied_type();
        let planned = object(&ty, &[]).transform(&mut |path, value| match path {
            [landform_cty::Step::Attribute(name)] if name != "triggers" => Value::unknown(value.ty),
            _ => value,
        });
        let apply = ApplyResourceChange {
            type_name: "time_static".into(),
            prior: Value::null(ty.clone()),
            planned,
            config: object(&ty, &[]),
            planned_private: Vec::new(),
            planned_identity: None,
        };
        let answer = leased.apply_resource_change(apply).await.unwrap();
        assert_eq!(answer.diagnostics, []);
        stamps.insert(answer.new_state.get("unix").and_then(Value::as_number).unwrap().to_string());
        tokio::time::sleep(Duration::from_millis(1100)).await;
    }
    assert_eq!(stamps.len(), 2);
}

#[tokio::test]
async fn without_terms_every_run_has_a_process_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (pool, ledger) = (pool(WarmLimits::default()), folder.path().join("ledger"));
    let one = run(&pool, Terms::default(), &ledger, "here").await;
    let other = run(&pool, Terms::default(), &ledger, "here").await;
    assert_ne!(process_of(&one).await, process_of(&other).await);
}

#[tokio::test]
async fn a_shared_process_is_not_stopped_for_one_of_its_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (pool, ledger) = (pool(WarmLimits::default()), folder.path().join("ledger"));
    let (one, other) = (run(&pool, SHARED, &ledger, "here").await, run(&pool, SHARED, &ledger, "here").await);
    one.stop().await.unwrap();
    drop(one);
    assert_eq!(ask(&other).await.0, "here");
}

#[tokio::test]
async fn a_process_retires_by_calls_by_memory_and_when_it_has_died() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let usual = WarmLimits::default();
    for limits in [WarmLimits { calls: 1, ..usual.clone() }, WarmLimits { resident_bytes: 1, ..usual.clone() }] {
        let pool = pool(limits);
        let one = run(&pool, SHARED, &ledger, "here").await;
        let first = process_of(&one).await;
        let other = run(&pool, SHARED, &ledger, "here").await;
        assert_ne!(process_of(&other).await, first, "the next run gets a new one");
        assert_eq!(process_of(&one).await, first, "who has the old one keeps it");
    }
    let pool = pool(usual);
    let one = run(&pool, SHARED, &ledger, "here").await;
    let first = process_of(&one).await;
    let killed = std::process::Command::new("kill").args(["-9", &first]).status().unwrap();
    assert!(killed.success());
    let ty = one.schema().await.unwrap().data_sources["probe_where"].block.implied_type();
    let call = ReadDataSource { type_name: "probe_where".into(), config: object(&ty, &[]) };
    assert!(matches!(one.read_data_source(call).await, Err(CallError::Ended { .. })));
    assert_ne!(process_of(&run(&pool, SHARED, &ledger, "here").await).await, first);
}

#[tokio::test]
async fn what_was_refused_is_not_shared() {
    let pool = pool(WarmLimits::default());
    let binary = Binary::at(&probe::program(Version::V6)).unwrap();
    for _ in 0..2 {
        let leased = pool.lease(&binary, &Surroundings::default(), SHARED).await.unwrap();
        let ty = leased.schema().await.unwrap().provider.block.implied_type();
        let config = object(&ty, &[("refuse", Value::string("no"))]);
        let said = leased.configure(Configure { terraform_version: "1.12.6".into(), config }).await.unwrap();
        assert_eq!(said[0].summary, "The provider refuses its configuration");
    }
}

/// What a process said of a configuration is known without asking it again, and of no other one.
#[tokio::test]
async fn a_configuration_is_checked_once_by_a_shared_process() {
    let register = tempfile::tempdir().unwrap();
    let limits = Limits { spares: 0, ..Limits::default() };
    let pool = Pool::new(limits, Schemas::in_memory(), Some(register.path().to_owned()));
    let binary = Binary::at(&probe::program(Version::V6)).unwrap();
    let leased = pool.lease(&binary, &Surroundings::default(), SHARED).await.unwrap();
    let ty = leased.schema().await.unwrap().provider.block.implied_type();
    let config = |region: &str| object(&ty, &[("region", Value::string(region))]);
    let answer = leased.validate_provider_config(config("here")).await.unwrap();
    assert_eq!(answer, (config("here"), Vec::new()));

    let registered = std::fs::read_dir(register.path()).unwrap().next().unwrap().unwrap().file_name();
    let (process, _) = registered.to_str().unwrap().split_once('-').unwrap();
    assert!(std::process::Command::new("kill").args(["-9", process]).status().unwrap().success());
    assert!(leased.validate_provider_config(config("there")).await.is_err(), "that needs the process");
    assert_eq!(leased.validate_provider_config(config("here")).await.unwrap(), answer);
}

/// Of a provider that takes one call at a time, two runs with the same configuration are never inside at once.
#[tokio::test(flavor = "multi_thread")]
async fn calls_of_one_configuration_take_turns_where_the_provider_wants_it() {
    let folder = tempfile::tempdir().unwrap();
    let (pool, ledger) = (pool(WarmLimits::default()), folder.path().join("ledger"));
    let terms = Terms { shared: false, concurrency: Some(1) };
    let slow = |leased: Leased| async move {
        let ty = leased.schema().await.unwrap().data_sources["probe_echo"].block.implied_type();
        let config = object(&ty, &[("faults", Value::string("read_slow"))]);
        for _ in 0..3 {
            let call = ReadDataSource { type_name: "probe_echo".into(), config: config.clone() };
            leased.read_data_source(call).await.unwrap();
        }
    };
    let (one, other) = (run(&pool, terms, &ledger, "here").await, run(&pool, terms, &ledger, "here").await);
    let begin = std::time::Instant::now();
    tokio::join!(slow(one), slow(other));
    // Six calls of 50 ms each: a lower bound cannot fail because a machine is slow.
    assert!(begin.elapsed() >= Duration::from_millis(300));
}
