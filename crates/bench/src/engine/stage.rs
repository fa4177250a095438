//! Where rows are measured: folders, a mirror, and the engine inside of this process.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use landform_engine::native::{Native, Providers};
use landform_engine::{
    Applied, Engine, Gate, Gone, Intent, IntentId, Journal, Mode, Outline, PlanRequest, Refused, Settlement, Silent,
    Stop, Variable, Workspace,
};
use landform_plugin::{Limits, Pool, Schemas};
use landform_registry::Places;
use landform_runner::known::KnownProviders;
use landform_runner::providers::LocalProviders;
use landform_testkit::parts;

/// One `time_static` for each run.
pub const TEMPLATE: &str = include_str!("../../../../bench/template/main.tf");

/// A version that nobody has listed as safe to share, so that every run gets a process of its own.
const UNLISTED: &str = "0.14.999";

/// A program of this workspace, beside this one.
pub fn program(name: &str) -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    Ok(here.parent().context("a program lies in a folder")?.join(name))
}

/// A mirror with hashicorp/time under a version that is not shared.
pub fn unshared_mirror(folder: &Path) -> Result<PathBuf> {
    let place = folder.join("mirror/registry.opentofu.org/hashicorp/time").join(UNLISTED).join(parts::platform());
    std::fs::create_dir_all(&place)?;
    let target = place.join("terraform-provider-time");
    let binary = parts::provider("hashicorp/time");
    std::fs::hard_link(&binary, &target).or_else(|_| std::fs::copy(&binary, &target).map(drop))?;
    Ok(folder.join("mirror"))
}

pub fn providers(mirror: &Path, known: KnownProviders) -> Arc<dyn Providers> {
    let pool = Pool::new(Limits::default(), Schemas::in_memory(), None);
    Arc::new(LocalProviders::in_places(Places::mirrors([mirror]), known, pool))
}

/// The engine as the control plane has it, with what a run needs on disk: a journal, one for all as a store's is, and a
/// state of its own, both flushed.
pub struct Desk {
    engine: Native,
    template: tempfile::TempDir,
    states: tempfile::TempDir,
    journal: FlushedJournal,
}

impl Desk {
    pub fn new(providers: Arc<dyn Providers>, template: &str) -> Result<Desk> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("main.tf"), template)?;
        let states = tempfile::tempdir()?;
        let journal = FlushedJournal::create(&states.path().join("journal"))?;
        Ok(Desk { engine: Native::new(providers).of_fixed_folders(), template: folder, states, journal })
    }

    pub fn workspace(&self, event: &str) -> Workspace {
        let event = Variable::new(event.into(), false);
        Workspace {
            folder: self.template.path().to_owned(),
            scratch: self.states.path().to_owned(),
            variables: [("event".to_owned(), event)].into(),
            state: None,
            environment: BTreeMap::new(),
        }
    }

    /// A plan without anything else.
    pub async fn plan(&self, workspace: &Workspace) -> Result<()> {
        let request =
            PlanRequest { workspace, mode: Mode::Normal, adopt: Vec::new(), replace: Vec::new(), doubted: Vec::new() };
        let plan = self.engine.plan(request, &Silent, &Stop::new()).await?;
        ensure!(plan.effective, "there is nothing to plan");
        Ok(())
    }

    /// A run from its plan to its state on disk.
    pub async fn run(&self, event: &str) -> Result<Applied> {
        let workspace = self.workspace(event);
        let request = PlanRequest {
            workspace: &workspace,
            mode: Mode::Normal,
            adopt: Vec::new(),
            replace: Vec::new(),
            doubted: Vec::new(),
        };
        let straight = self.engine.straight().context("the native engine goes straight")?;
        let Gone::Through(applied) = straight.go(request, &Open, &self.journal, &Silent, &Stop::new()).await? else {
            anyhow::bail!("the run was held");
        };
        ensure!(applied.complete(), "{:?}", applied.diagnostics);
        let mut state = File::create(self.states.path().join(event))?;
        state.write_all(&applied.state)?;
        state.sync_all()?;
        Ok(applied)
    }
}

struct Open;

#[async_trait]
impl Gate for Open {
    async fn open(&self, _outline: Outline) -> bool {
        true
    }
}

/// Entries are on the disk when the calls return.
struct FlushedJournal {
    file: File,
    next: AtomicI64,
}

impl FlushedJournal {
    fn create(path: &Path) -> Result<FlushedJournal> {
        Ok(FlushedJournal { file: File::options().create(true).append(true).open(path)?, next: AtomicI64::new(1) })
    }

    fn write(&self, entry: &impl serde::Serialize) -> Result<(), Refused> {
        let lost = |error: &dyn std::fmt::Display| Refused::Unavailable(error.to_string());
        let bytes = serde_json::to_vec(entry).map_err(|error| lost(&error))?;
        (&self.file).write_all(&bytes).map_err(|error| lost(&error))?;
        self.file.sync_data().map_err(|error| lost(&error))
    }
}

#[async_trait]
impl Journal for FlushedJournal {
    async fn intend(&self, intents: Vec<Intent>) -> Result<Vec<IntentId>, Refused> {
        self.write(&intents)?;
        Ok(intents.iter().map(|_| IntentId(self.next.fetch_add(1, Ordering::Relaxed))).collect())
    }

    async fn settle(&self, _intent: IntentId, settlement: Settlement) -> Result<(), Refused> {
        self.write(&settlement)
    }
}

/// How long a command took, and the most memory that it had.
pub struct Cost {
    pub time: Duration,
    pub peak_mb: f64,
}

/// Runs a command to its end, which must be a good one. Its children's memory is not counted.
pub fn cost(command: &mut Command) -> Result<Cost> {
    let begin = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak_mb: f64 = 0.0;
    let status = loop {
        // The kernel keeps the peak for as long as the process lives, so the last look counts.
        let text = std::fs::read_to_string(&status_file).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        peak_mb = peak.map_or(peak_mb, |kilobytes: f64| kilobytes / 1024.0);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let time = begin.elapsed();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().context("a pipe")?, &mut said)?;
    ensure!(status.success(), "{command:?}: {status}: {said}");
    Ok(Cost { time, peak_mb })
}

/// The `tofu` of the parts, in a folder, with providers from a mirror alone.
pub fn tofu(folder: &Path, mirror: &Path, args: &[&str]) -> Result<Command> {
    let settings = folder.join("cli.tfrc");
    let text =
        format!("provider_installation {{\n  filesystem_mirror {{\n    path = {:?}\n  }}\n}}\n", mirror.display());
    std::fs::write(&settings, text)?;
    let mut command = Command::new(parts::tofu());
    command.current_dir(folder).args(args).env("TF_CLI_CONFIG_FILE", settings).env("CHECKPOINT_DISABLE", "1");
    Ok(command)
}
