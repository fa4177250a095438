//! `landform doctor`: what is wrong with this installation, and what to do about it. It changes nothing.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use landform_api::RunFilter;
use landform_base::seal::MasterKey;
use serde::Serialize;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::{engine, house, provider};

#[derive(Args, Debug)]
pub struct Options {
    /// The PostgreSQL URL that servers are started with [default: SQLite in the data folder]
    #[arg(long, env = "LANDFORM_DATABASE", hide_env_values = true, value_name = "URL")]
    database: Option<String>,
    /// The mirror that servers are started with [default: `mirror` in the data folder]
    #[arg(long, env = "LANDFORM_PROVIDERS", value_name = "DIR")]
    providers: Option<PathBuf>,
    /// The `tofu` binary that servers are started with
    #[arg(long, env = "LANDFORM_TOFU", value_name = "FILE")]
    tofu: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Health {
    Good,
    /// It works, but not as well as it should.
    Poor,
    /// It does not work.
    Bad,
}

/// What was looked at, and what to do if it is not good.
#[derive(Debug, Serialize)]
struct Finding {
    what: &'static str,
    health: Health,
    found: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    advice: &'static str,
}

const LITTLE_SPACE: u64 = 1 << 30;
const NO_SPACE: u64 = 100 << 20;
const FEW_FILES: u64 = 4096;
const LARGE_SKEW_MILLIS: i64 = 5_000;
const NO_ENGINE: &str = "Templates outside of the native engine cannot run. Add one with `landform engine add FILE`; a \
    running server has it after its next start.";
const PATIENCE: Duration = Duration::from_secs(5);

pub async fn run(options: Options, connection: &Connection, json: bool) -> Result<(), Failure> {
    let data = connection.data_folder()?;
    let mut findings = vec![data_folder(&data), master_key(&data), disk(&data)];
    findings.extend(store(&options, &data).await);
    findings.extend([engines(&options, &data), mirror(&options, &data), confinement(), open_files()]);
    findings.push(server(connection).await);
    findings.extend(paused(connection).await);
    if json {
        println!("{}", serde_json::json!({ "findings": findings }));
    } else {
        for finding in &findings {
            let mark = match finding.health {
                Health::Good => "ok  ",
                Health::Poor => "poor",
                Health::Bad => "BAD ",
            };
            println!("{mark}  {:<14} {}", finding.what, finding.found);
            if finding.health != Health::Good {
                println!("      {:<14} -> {}", "", finding.advice);
            }
        }
    }
    match findings.iter().filter(|finding| finding.health == Health::Bad).count() {
        0 => Ok(()),
        bad => Err(Failure::broken(format!("{bad} of {} things are bad", findings.len()), "See above what to do.")),
    }
}

fn good(what: &'static str, found: impl Into<String>) -> Finding {
    Finding { what, health: Health::Good, found: found.into(), advice: "" }
}

fn poor(what: &'static str, found: impl Into<String>, advice: &'static str) -> Finding {
    Finding { what, health: Health::Poor, found: found.into(), advice }
}

fn bad(what: &'static str, found: impl Into<String>, advice: &'static str) -> Finding {
    Finding { what, health: Health::Bad, found: found.into(), advice }
}

fn data_folder(data: &Path) -> Finding {
    const WHAT: &str = "data folder";
    let found = match std::fs::metadata(data) {
        Ok(found) => found,
        Err(e) => {
            let text = format!("{}: {e}", data.display());
            return bad(WHAT, text, "Start `landform serve` once, or name the folder with --data.");
        }
    };
    let (mode, owner) = (found.permissions().mode() & 0o777, found.uid());
    if owner != rustix::process::geteuid().as_raw() {
        let text = format!("{} belongs to user {owner}", data.display());
        return bad(WHAT, text, "Run Landform as that user, or give the folder to this one.");
    }
    match mode & 0o077 {
        0 => good(WHAT, data.display().to_string()),
        _ => bad(WHAT, format!("{} has mode {mode:o}", data.display()), "Others can read it: `chmod 700` it."),
    }
}

fn master_key(data: &Path) -> Finding {
    const WHAT: &str = "master key";
    if std::env::var_os("LANDFORM_MASTER_KEY").is_some() {
        return good(WHAT, "in LANDFORM_MASTER_KEY");
    }
    let path = data.join("master.key");
    let lost = match data.join(landform_store::SQLITE_FILE).exists() {
        true => "Without it nothing in the store can be opened. Restore it from your backup.",
        false => "The first start of `landform serve` makes one; for a store that is there already, restore its own.",
    };
    let mode = match std::fs::metadata(&path) {
        Ok(found) => found.permissions().mode() & 0o777,
        Err(e) => return bad(WHAT, format!("{}: {e}", path.display()), lost),
    };
    if let Err(e) = std::fs::read(&path) {
        return bad(WHAT, format!("{}: {e}", path.display()), lost);
    }
    match mode & 0o077 {
        0 => good(WHAT, path.display().to_string()),
        _ => bad(WHAT, format!("{} has mode {mode:o}", path.display()), "Others can read it: `chmod 600` it."),
    }
}

fn disk(data: &Path) -> Finding {
    const WHAT: &str = "disk space";
    let free = match rustix::fs::statvfs(data) {
        Ok(found) => found.f_bavail * found.f_frsize,
        Err(e) => return bad(WHAT, e.to_string(), "See whether the data folder's disk is there."),
    };
    let text = format!("{} MB free", free >> 20);
    match free {
        0..NO_SPACE => bad(WHAT, text, "Runs will fail. Make room on the data folder's disk."),
        NO_SPACE..LITTLE_SPACE => poor(WHAT, text, "Make room on the data folder's disk before it is full."),
        _ => good(WHAT, text),
    }
}

async fn store(options: &Options, data: &Path) -> Vec<Finding> {
    let location = match house::location(options.database.as_deref(), data) {
        Ok(location) => location,
        Err(failure) => return vec![bad("store", failure.detail(), house::WHICH_DATABASE)],
    };
    let probe = match landform_store::probe(&location).await {
        Ok(probe) => probe,
        Err(error) => {
            let advice = "See whether the database runs, and whether its address and password are right.";
            return vec![bad("store", error.to_string(), advice)];
        }
    };
    let mut found = vec![good("store", probe.description.clone())];
    if present_key(data).is_some_and(|key| !probe.opened_by(&key)) {
        let advice =
            "Nothing in this store can be opened with it: bring back the `master.key` that the store was made with.";
        found.push(bad("master key", "it does not open what is in the store", advice));
    }
    let Some(skew) = probe.clock_skew_millis else { return found };
    let text = format!("{:.1} s from the database's", skew as f64 / 1000.0);
    let clock = match skew.abs() {
        ..LARGE_SKEW_MILLIS => good("clock", text),
        _ => poor("clock", text, "Leases use the database's time and are safe; logs and timestamps differ. Use NTP."),
    };
    found.push(clock);
    found
}

/// The key that a server would use, if it is there and can be read. None is made.
fn present_key(data: &Path) -> Option<MasterKey> {
    let given = std::env::var_os("LANDFORM_MASTER_KEY").is_some() || data.join(house::MASTER_KEY).exists();
    given.then(|| house::current_master_key(data).ok()).flatten()
}

/// Whether a server answers, and what waits for a person there.
async fn server(connection: &Connection) -> Finding {
    const WHAT: &str = "server";
    let address = connection.server();
    let client = match connection.client() {
        Ok(client) => client,
        Err(_) => {
            return poor(
                WHAT,
                "not asked: there is no token",
                "Give one with --token, or start `landform serve` once.",
            );
        }
    };
    let wanted = RunFilter { status: Some("needs_recovery".to_owned()), ..RunFilter::default() };
    // A token of one tenant may not ask; then it is not said.
    let is_paused = async { client.paused().await.is_ok_and(|paused| paused.everything) };
    if tokio::time::timeout(PATIENCE, is_paused).await == Ok(true) {
        return poor(
            WHAT,
            format!("answers at {address}; all runs are paused"),
            "`landform resume` lets them go on; after a restore, compare what exists with `landform resources` first.",
        );
    }
    match tokio::time::timeout(PATIENCE, client.runs(&wanted)).await {
        Ok(Ok(runs)) if runs.is_empty() => good(WHAT, format!("answers at {address}")),
        Ok(Ok(runs)) => poor(
            WHAT,
            format!("answers at {address}; {} runs need recovery", runs.len()),
            "`landform run list --status needs_recovery` names them, `landform run recover RUN` answers.",
        ),
        Ok(Err(error)) => poor(
            WHAT,
            error.to_string(),
            "Start `landform serve`, or say with --server and --token which one is meant.",
        ),
        Err(_) => poor(WHAT, format!("no answer from {address}"), "See its log, and whether its database answers."),
    }
}

/// Tenants whose runs wait. A token of one tenant may not ask; then it is not said.
async fn paused(connection: &Connection) -> Option<Finding> {
    let client = connection.client().ok()?;
    let tenants = tokio::time::timeout(PATIENCE, client.tenants()).await.ok()?.ok()?;
    let paused: Vec<&str> = tenants.iter().filter(|it| it.paused).map(|it| it.name.as_str()).collect();
    if paused.is_empty() {
        return None;
    }
    let found = format!("runs of {} wait", paused.join(", "));
    Some(poor(
        "pauses",
        found,
        "`landform resume TENANT` lets them go on; a deployment's own pause stands in `landform deployments`.",
    ))
}

fn engines(options: &Options, data: &Path) -> Finding {
    const WHAT: &str = "CLI engines";
    if let Some(in_use) = engine::InUse::look(data) {
        return engines_in_use(WHAT, in_use, data);
    }
    let mut found = Vec::new();
    if let Some(path) = options.tofu.clone().or_else(|| crate::serve::in_path("tofu")) {
        match engine::ask(&path) {
            Ok(engine) => found.push(format!("{} {}", engine.name, engine.version)),
            Err(_) => {
                let text = format!("{} is no OpenTofu that can be run", path.display());
                return bad(WHAT, text, "Name another one with --tofu, or add one with `landform engine add FILE`.");
            }
        }
    }
    let shelf = engine::on_shelf(data).unwrap_or_default();
    found.extend(shelf.iter().map(|engine| format!("{} {}", engine.name, engine.version)));
    match found.is_empty() {
        false => good(WHAT, found.join(", ")),
        true => poor(WHAT, "none", NO_ENGINE),
    }
}

/// A running server has those that it found when it started.
fn engines_in_use(what: &'static str, in_use: Vec<String>, data: &Path) -> Finding {
    let shelf = engine::on_shelf(data).unwrap_or_default();
    let added = shelf.iter().map(|engine| format!("{} {}", engine.name, engine.version));
    let not_yet: Vec<String> = added.filter(|engine| !in_use.contains(engine)).collect();
    let has = if in_use.is_empty() { "none".to_owned() } else { in_use.join(", ") };
    match (in_use.is_empty(), not_yet.is_empty()) {
        (false, true) => good(what, has),
        (true, true) => poor(what, "the running server has none", NO_ENGINE),
        (_, false) => poor(
            what,
            format!("the running server has {has}, and not yet {}", not_yet.join(", ")),
            "Restart the server: it looks for engines when it starts.",
        ),
    }
}

fn mirror(options: &Options, data: &Path) -> Finding {
    const WHAT: &str = "providers";
    let mirror = options.providers.clone().unwrap_or_else(|| data.join(provider::DEFAULT));
    let found = provider::in_mirror(&mirror);
    let open = std::fs::metadata(&mirror).is_ok_and(|found| found.permissions().mode() & 0o002 != 0);
    if open {
        return bad(
            WHAT,
            format!("anybody can write to {}", mirror.display()),
            "`chmod o-w` it: its programs are run.",
        );
    }
    match found.len() {
        0 => poor(
            WHAT,
            format!("none in {}", mirror.display()),
            "Add some with `landform provider add FILE --source NAMESPACE/TYPE`.",
        ),
        count => good(WHAT, format!("{count} in {}", mirror.display())),
    }
}

fn confinement() -> Finding {
    const WHAT: &str = "confinement";
    match landform_base::confine::support() {
        Ok(()) => good(WHAT, "the kernel has Landlock"),
        Err(reason) => {
            let advice = "Runs of the CLI engine see what the server sees. Use a kernel with Landlock (5.13 or newer), \
                or start with `--confine required` to do without the CLI engine.";
            poor(WHAT, reason, advice)
        }
    }
}

fn open_files() -> Finding {
    const WHAT: &str = "open files";
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    match limit {
        ..FEW_FILES => poor(WHAT, format!("at most {limit}"), "Raise the limit (LimitNOFILE, `ulimit -n`) to 65536."),
        _ => good(WHAT, format!("at most {limit}")),
    }
}
