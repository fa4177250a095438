//! Drives a real `tofu`.
//!
//! Each run gets a copy of the template in its own scratch folder, with a local state file; `init` is paid once for
//! each content of a template folder. The CLI has no journal and persists its state rarely, so all intents of a plan
//! are written in one go before it changes anything, and stay open until the caller has the whole state. Where nobody
//! has to approve, plan and apply are one process, which waits for our word in between (`straight`).

mod cleaner;
mod folder;
mod messages;
mod outcome;
mod planned;
mod prepare;
mod process;
mod saved;
mod scratch;
mod statefile;
mod straight;
mod tail;

use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use async_trait::async_trait;
use landform_base::confine::Confinement;
use sha2::{Digest, Sha256};

use crate::plan::left_in_doubt;
use crate::{
    Applied, ApplyRequest, Diagnostic, Engine, EngineError, EngineKind, Journal, Mode, Plan, PlanRequest, Progress,
    ProgressEvent, Severity, Silent, Stage, Stop, Straight, Unsupported, Workspace,
};
use cleaner::Cleaner;
use folder::Folder;
use messages::Heard;
use outcome::{Attempted, intended};
use prepare::{Prepared, PreparedFolders};
use process::{Ended, Invocation};
use saved::{Circumstances, SavedPlan};
use scratch::Scratch;

/// A plan as JSON is held in memory; one that is larger is refused.
const LARGEST_PLAN: u64 = 256 << 20;

/// The CLI and small providers live too briefly for collecting garbage to pay: it is a fifth of a small run's CPU time.
const COLLECT_RARELY: &str = "400";

/// Where the CLI and its providers come from.
#[derive(Clone, Debug)]
pub struct CliSettings {
    pub binary: PathBuf,
    /// A filesystem mirror, the only place that providers are installed from.
    pub mirror: Option<PathBuf>,
    /// Prepared folders are kept here; it belongs to one process at a time.
    pub cache: PathBuf,
    pub confinement: Confine,
    /// What a confined run may see besides its own folder, the mirror and the system's programs.
    pub may_read: Vec<PathBuf>,
    pub may_write: Vec<PathBuf>,
}

/// Whether runs see only what they need of the file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Confine {
    Off,
    /// Where the kernel can; elsewhere with a warning.
    #[default]
    Auto,
    /// Without it there is no CLI engine.
    Required,
}

pub struct Cli {
    settings: CliSettings,
    configuration: PathBuf,
    version: String,
    prepared: PreparedFolders,
    /// It can tell its plan to a program and wait for an answer.
    asks_in_between: bool,
    /// What every run may see; `None`: runs are not confined.
    confinement: Option<Confinement>,
}

/// How often a CLI is asked what it is, if it is killed before it can say.
const TRIES: u32 = 5;

/// Also if it was not this child that the signal hit, but what it had started: a shell tells by a number above 128.
fn killed(status: ExitStatus) -> bool {
    status.code().is_none_or(|code| code > 128)
}

/// The first line of an answer.
async fn says(invocation: &Invocation<'_>) -> Result<(Option<String>, Ended), EngineError> {
    let mut first = None;
    let on_line = |line: &[u8]| {
        first.get_or_insert_with(|| String::from_utf8_lossy(line).into_owned());
    };
    let ended = invocation.clone().run(&Stop::new(), on_line).await?;
    Ok((first, ended))
}

impl Cli {
    /// Finds out which CLI this is and makes the cache folder ready.
    pub async fn detect(settings: CliSettings) -> Result<Cli, EngineError> {
        let prepared = PreparedFolders::open(&settings.cache)?;
        let configuration = settings.cache.join("cli.tfrc");
        let text = configuration_file(settings.mirror.as_deref())?;
        landform_base::file::write_private(&configuration, text.as_bytes()).map_err(|e| failed(&configuration, e))?;
        let temporary = prepare::temporary_folder(&settings.cache)?;
        let scratch = Scratch::make(temporary.path())?;
        let confinement = confinement(&settings, &configuration)?;
        let invocation = Invocation {
            binary: settings.binary.clone(),
            args: vec!["version".into()],
            folder: scratch.root.clone(),
            scratch: scratch.root.clone(),
            environment: scratch.environment(&configuration, &Default::default())?,
            confine: confinement.clone().map(|confinement| confinement.and_write(&scratch.root)),
            progress: &Silent,
        };
        let (mut first, mut ended) = says(&invocation).await?;
        for _ in 1..TRIES {
            // Somebody else has ended it, and that says nothing about what it is.
            if !killed(ended.status) {
                break;
            }
            (first, ended) = says(&invocation).await?;
        }
        let version = first.as_deref().and_then(|line| line.split_once(" v")).filter(|_| ended.status.success());
        let Some((name, number)) = version else {
            return Err(EngineError::Diagnostics(vec![Diagnostic::error(
                format!("{} does not look like OpenTofu or Terraform", settings.binary.display()),
                format!("`version` ended with {} and said: {}", ended.status, first.unwrap_or(ended.stderr)),
            )]));
        };
        let version = format!("{} {}", name.to_lowercase(), number.trim());
        let asks_in_between = straight::can_ask(&version);
        Ok(Cli { settings, configuration, version, prepared, asks_in_between, confinement })
    }

    /// Everything that both plan and apply need on disk.
    async fn lay_out<'a>(
        &self,
        workspace: &Workspace,
        progress: &'a dyn Progress,
        stop: &Stop,
    ) -> Result<LaidOut<'a>, EngineError> {
        let folder = Folder::read(&workspace.folder)?;
        let in_state = match &workspace.state {
            Some(bytes) => statefile::providers(&statefile::read(bytes)?),
            None => Default::default(),
        };
        let scratch = Scratch::make(&workspace.scratch)?;
        let environment = scratch.environment(&self.configuration, &workspace.environment)?;
        let confinement = self.confinement.clone().map(|confinement| confinement.and_write(&scratch.root));
        let invocation = |at: &Path| Invocation {
            binary: self.settings.binary.clone(),
            args: Vec::new(),
            folder: at.to_owned(),
            scratch: scratch.root.clone(),
            environment: environment.clone(),
            confine: confinement.clone().map(|confinement| confinement.and_write(at)),
            progress,
        };
        let mirror = self.settings.mirror.as_deref().unwrap_or(Path::new(""));
        let context = format!("{}\n{}", self.version, mirror.display());
        let prepared = self.prepared.get(&context, &folder, &in_state, invocation, stop).await?;
        scratch.fill(&folder, &prepared, workspace)?;
        let mut invocation = invocation(&scratch.work());
        invocation.confine = invocation.confine.map(|confinement| confinement.and_read(&prepared.folder));
        if prepared.is_small {
            invocation.environment.entry("GOGC".into()).or_insert_with(|| COLLECT_RARELY.into());
        }
        Ok(LaidOut { folder, prepared, scratch, invocation })
    }
}

struct LaidOut<'a> {
    folder: Folder,
    prepared: Prepared,
    scratch: Scratch,
    invocation: Invocation<'a>,
}

#[async_trait]
impl Engine for Cli {
    fn kind(&self) -> EngineKind {
        EngineKind::Cli
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    /// It is OpenTofu: there is nothing that it does otherwise.
    async fn unsupported(&self, _workspace: &Workspace) -> Result<Vec<Unsupported>, EngineError> {
        Ok(Vec::new())
    }

    async fn plan(&self, request: PlanRequest<'_>, progress: &dyn Progress, stop: &Stop) -> Result<Plan, EngineError> {
        let workspace = request.workspace;
        let LaidOut { folder, prepared, scratch, invocation } = self.lay_out(workspace, progress, stop).await?;
        if !request.adopt.is_empty() {
            folder::write_adoptions(&scratch.work(), &request.adopt)?;
        }
        let mut args = scratch.arguments("plan");
        args.extend(["-json".into(), "-input=false".into(), prefixed("-out=", &scratch.plan())]);
        args.extend(wishes(&request));

        let cleaner = Cleaner::new(workspace, &[]);
        let mut heard = Heard::default();
        let ended = invocation.with(args).run(stop, |line| drop(heard.line(line))).await?;
        if ended.asked_to_stop {
            return Err(EngineError::Stopped);
        }
        if !ended.status.success() {
            return Err(cleaner.error(refusal("plan", heard, &ended)));
        }

        let json = show(&invocation, &scratch, stop).await?;
        let secrets = planned::secrets(&json);
        let cleaner = Cleaner::new(workspace, &secrets);
        let mut warnings = folder.ignored_backends();
        warnings.extend(cleaner.diagnostics(heard.into_diagnostics()));
        let changes = planned::changes(&json)?;
        warnings.extend(left_in_doubt(&request.doubted, &changes));
        for warning in &warnings {
            progress.report(ProgressEvent::Diagnostic { diagnostic: warning.clone() });
        }
        for change in &changes {
            let (address, action) = (change.address.clone(), change.action);
            progress.report(ProgressEvent::Object { address, action, stage: Stage::Planned, millis: None });
        }
        let ephemeral = planned::ephemeral_variables(&json);
        let saved = SavedPlan {
            version: self.version.clone(),
            folder: folder.digest,
            lock: prepared.lock_digest(),
            state: statefile::stamp(workspace.state.as_deref())?,
            variables: variables_digest(workspace, &ephemeral),
            ephemeral,
            intents: planned::intents(&json)?,
            secrets,
            file: std::fs::read(scratch.plan()).map_err(|e| failed(&scratch.plan(), e))?,
        };
        Ok(Plan {
            engine: EngineKind::Cli,
            version: self.version.clone(),
            bytes: saved.encode(),
            effective: planned::effective(&json, &changes, request.mode),
            outputs_change: planned::outputs_change(&json),
            changes,
            json,
            warnings,
        })
    }

    async fn apply(
        &self,
        request: ApplyRequest<'_>,
        journal: &dyn Journal,
        progress: &dyn Progress,
        stop: &Stop,
    ) -> Result<Applied, EngineError> {
        let workspace = request.workspace;
        let saved = SavedPlan::decode(request.plan)?;
        let LaidOut { folder, prepared, scratch, invocation } = self.lay_out(workspace, progress, stop).await?;
        saved.check(&Circumstances {
            version: self.version.clone(),
            folder: folder.digest,
            lock: prepared.lock_digest(),
            state: statefile::stamp(workspace.state.as_deref())?,
            variables: variables_digest(workspace, &saved.ephemeral),
        })?;
        scratch::write(&scratch.plan(), &saved.file)?;
        if stop.is_cancelled() {
            return Err(EngineError::Stopped);
        }

        let intended = intended(&saved.intents);
        let intents = journal.intend(saved.intents).await?;
        let mut args = scratch.arguments("apply");
        args.extend(["-json".into(), "-input=false".into(), scratch.plan().into_os_string()]);
        let cleaner = Cleaner::new(workspace, &saved.secrets);
        let mut heard = Heard::default();
        let run = invocation.with(args).run(stop, |line| {
            if let Some(event) = heard.line(line) {
                progress.report(cleaner.event(event));
            }
        });
        let ended = run.await;
        let (scratch, intents, intended) = (&scratch, &intents, &intended);
        Attempted { workspace, scratch, journal, intents, intended, heard, cleaner }.conclude(ended).await
    }

    fn straight(&self) -> Option<&dyn Straight> {
        self.asks_in_between.then_some(self)
    }

    async fn salvage(&self, scratch: &Path) -> Result<Option<Vec<u8>>, EngineError> {
        statefile::newest(&scratch::work_below(scratch))
    }
}

/// What every run may see: the programs that it consists of and what the operator has named.
fn confinement(settings: &CliSettings, configuration: &Path) -> Result<Option<Confinement>, EngineError> {
    let supported = landform_base::confine::support();
    match (settings.confinement, supported) {
        (Confine::Off, _) => return Ok(None),
        (Confine::Auto, Err(reason)) => {
            tracing::warn!(reason, "runs of the CLI engine are not confined");
            return Ok(None);
        }
        (Confine::Required, Err(reason)) => {
            let summary = "Runs of the CLI engine cannot be confined, and must be";
            return Err(EngineError::Diagnostics(vec![Diagnostic::error(summary, reason)]));
        }
        (Confine::Auto | Confine::Required, Ok(())) => {}
    }
    let mut confinement = Confinement { read: settings.may_read.clone(), write: settings.may_write.clone() };
    confinement.read.extend([settings.binary.clone(), configuration.to_owned()]);
    confinement.read.extend(settings.mirror.clone());
    Ok(Some(confinement))
}

/// The saved plan as JSON.
async fn show(invocation: &Invocation<'_>, scratch: &Scratch, stop: &Stop) -> Result<serde_json::Value, EngineError> {
    let args = vec!["show".into(), "-json".into(), scratch.plan().into_os_string()];
    let (ended, bytes) = invocation.with(args).capture(stop, LARGEST_PLAN).await?;
    if ended.asked_to_stop {
        return Err(EngineError::Stopped);
    }
    if !ended.status.success() {
        return Err(refusal("show", Heard::default(), &ended));
    }
    serde_json::from_slice(&bytes).map_err(|e| failed(&scratch.plan(), e.into()))
}

fn too_large(most: u64) -> EngineError {
    EngineError::Diagnostics(vec![Diagnostic::error(
        "The plan is too large",
        format!("As JSON it has more than {most} bytes, which are the most that Landform takes."),
    )])
}

/// What a plan is to be about, in the CLI's words.
fn wishes(request: &PlanRequest<'_>) -> Vec<std::ffi::OsString> {
    let mode = match request.mode {
        Mode::Normal => None,
        Mode::Destroy => Some("-destroy".into()),
        Mode::RefreshOnly => Some("-refresh-only".into()),
    };
    mode.into_iter().chain(request.replace.iter().map(|address| format!("-replace={address}").into())).collect()
}

/// The CLI said no before anything was changed; a reason is given even if it gave none.
fn refusal(command: &str, heard: Heard, ended: &Ended) -> EngineError {
    let mut diagnostics = heard.into_diagnostics();
    if !diagnostics.iter().any(|d| d.severity == Severity::Error) {
        diagnostics.push(Diagnostic::error(format!("`{command}` ended with {}", ended.status), ended.stderr.clone()));
    }
    EngineError::Diagnostics(diagnostics)
}

/// Only mirrors: nothing is fetched from a registry, and nothing is cached elsewhere.
fn configuration_file(mirror: Option<&Path>) -> Result<String, EngineError> {
    let method = match mirror {
        None => String::new(),
        Some(mirror) => {
            let absolute = std::path::absolute(mirror).map_err(|e| failed(mirror, e))?;
            let path = absolute.to_str().filter(|path| !path.contains("${")).ok_or_else(|| {
                failed(mirror, std::io::Error::other("the CLI's configuration file cannot hold this path"))
            })?;
            format!("  filesystem_mirror {{\n    path = {}\n  }}\n", serde_json::Value::from(path))
        }
    };
    Ok(format!("disable_checkpoint = true\nprovider_installation {{\n{method}}}\n"))
}

fn variables_digest(workspace: &Workspace, ephemeral: &[String]) -> String {
    let planned: std::collections::BTreeMap<_, _> = workspace
        .variables
        .iter()
        .filter(|(name, _)| !ephemeral.contains(name))
        .map(|(name, variable)| (name, &variable.value))
        .collect();
    sha256(&serde_json::to_vec(&planned).expect("JSON values are plain data"))
}

fn prefixed(prefix: &str, path: &Path) -> std::ffi::OsString {
    let mut text = std::ffi::OsString::from(prefix);
    text.push(path);
    text
}

fn failed(path: &Path, source: std::io::Error) -> EngineError {
    EngineError::Io { context: path.display().to_string(), source }
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
