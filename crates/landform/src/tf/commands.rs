use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use landform_engine::native::{self, Ink, Native, Sheet};
use landform_engine::{
    Action, ApplyRequest, Change, Diagnostic, Engine, EngineError, Mode, Plan, PlanRequest, Stop, Variable, Workspace,
};

use landform_plugin::{Limits, Pool, Schemas};
use landform_runner::providers::LocalProviders;

use super::Failure;
use super::asking;
use super::diagnostics;
use super::elsewhere;
use super::journal::{FolderJournal, doubted, leftover, made_perhaps};
use super::messages::{self, Watch};
use super::options::{ApplyOptions, Command, Common, ImportOptions, Options, PlanOptions};
use super::saved::{Pages, Saved};
use super::screen;
use super::state_file::StateFile;
use super::stream;

pub async fn run(options: Options) -> Result<ExitCode, Failure> {
    if let Some(folder) = &options.chdir
        && let Err(error) = std::env::set_current_dir(folder)
    {
        let why = match error.kind() {
            std::io::ErrorKind::NotFound => "no such file or directory".to_owned(),
            std::io::ErrorKind::NotADirectory => "not a directory".to_owned(),
            _ => error.to_string(),
        };
        eprintln!("Error handling -chdir option: chdir {}: {why}", folder.display());
        return Ok(ExitCode::FAILURE);
    }
    let folder = std::env::current_dir()?;
    let elsewhere = match &options.command {
        // It is the same wherever the state is.
        Command::Version(_) => Vec::new(),
        _ => super::elsewhere::reasons(&folder),
    };
    if !elsewhere.is_empty() {
        return Err(EngineError::Unsupported(elsewhere).into());
    }
    match options.command {
        Command::Init(options) => super::init::init(&folder, &options).await,
        Command::Console(options) => super::console::console(&folder, &options).await,
        Command::Import(options) => import(&folder, &options).await,
        Command::Plan(options) => plan(&folder, options).await,
        Command::Apply(options) => apply(&folder, options, false).await,
        Command::Destroy(mut options) => {
            options.common.destroy = true;
            apply(&folder, options, true).await
        }
        Command::Show(options) => super::look::show(&folder, options).await,
        Command::Output(options) => super::output::output(&folder, &options),
        Command::Validate(options) => super::look::validate(&folder, &options).await,
        Command::Version(options) => super::look::version(&folder, &options),
        Command::Taint(options) => super::taint::run(&folder, &options, true),
        Command::Untaint(options) => super::taint::run(&folder, &options, false),
        Command::State(options) => super::state::run(&folder, &options.command).await,
    }
}

pub fn engine(folder: &Path, common: &Common) -> Native {
    // A command ends with its providers, so there is nothing to keep spares for.
    let pool = Pool::new(Limits { spares: 0, ..Limits::default() }, Schemas::in_memory(), None);
    let providers = LocalProviders::of_user(folder, pool).with(crate::inside::built_in(None));
    let native = Native::new(Arc::new(providers));
    let native = native.with_parallelism(common.parallelism);
    if common.refresh { native } else { native.without_refresh() }
}

/// The folder as an engine sees it. Providers get the whole environment, as they do from OpenTofu.
pub struct Opened {
    pub workspace: Workspace,
    _scratch: tempfile::TempDir,
}

pub fn open(folder: &Path, variables: BTreeMap<String, Variable>, state: Option<Vec<u8>>) -> anyhow::Result<Opened> {
    let scratch = tempfile::tempdir().context("cannot make a scratch folder")?;
    let environment = std::env::vars().collect();
    let (folder, scratch_path) = (folder.to_owned(), scratch.path().to_owned());
    let workspace = Workspace { folder, scratch: scratch_path, variables, state, environment };
    Ok(Opened { workspace, _scratch: scratch })
}

fn mode(common: &Common) -> Result<Mode, Failure> {
    let usage = |summary: &str, detail: &str| Err(Failure::Usage(Box::new(Diagnostic::error(summary, detail))));
    match (common.destroy, common.refresh_only) {
        (true, true) => {
            usage("Incompatible plan mode options", "The -destroy and -refresh-only options are mutually-exclusive.")
        }
        (false, true) if !common.refresh => usage(
            "Incompatible refresh options",
            "It doesn't make sense to use -refresh-only at the same time as -refresh=false, because OpenTofu would have nothing \
             to do.",
        ),
        (true, false) => Ok(Mode::Destroy),
        (false, true) => Ok(Mode::RefreshOnly),
        (false, false) => Ok(Mode::Normal),
    }
}

/// Brings the state up to what an apply that did not end has done. While objects are in doubt nothing else happens.
fn recover(file: &mut StateFile) -> Result<(), Failure> {
    let path = file.journal_path();
    let base = file.read()?;
    let Some(left) = leftover(&path, base.as_deref())? else { return Ok(()) };
    file.write(&left.state)?;
    if left.doubts.is_empty() {
        std::fs::remove_file(&path)?;
        return Ok(());
    }
    let aside = file.doubts_path();
    let list: Vec<String> =
        left.doubts.iter().map(|intent| format!("  - {} ({:?})", intent.address, intent.action)).collect();
    left.keep_doubts(&aside)?;
    std::fs::remove_file(&path)?;
    Err(anyhow!(
        "An earlier apply did not end. What it is known to have done is now in the state; of these changes nobody knows \
         whether they were made:\n\n{}\n\nThey are also listed in {}. Updates among them are made again by the next apply, unless \
         reading the object shows how it is. {}",
        list.join("\n"),
        aside.display(),
        HOW_TO_ANSWER,
    )
    .into())
}

const HOW_TO_ANSWER: &str = "What was to be created is not created again before you have looked: if it exists, take it over \
    with `landform tf import ADDRESS ID`; if it does not, say so with `landform tf state rm ADDRESS`.";

/// A create is never repeated to be sure.
fn refuse_what_may_exist(made: &Made) -> Result<(), Failure> {
    let perhaps = made_perhaps(&made.file.doubts_path())?;
    use Action::{Create, CreateBeforeDestroy, ForgetThenCreate, Replace};
    let creates = |change: &&Change| {
        let makes = matches!(change.action, Create | Replace | CreateBeforeDestroy | ForgetThenCreate);
        makes && change.deposed.is_none() && change.importing.is_none()
    };
    let again: Vec<String> = made
        .plan
        .changes
        .iter()
        .filter(creates)
        .filter(|change| perhaps.contains(&change.address))
        .map(|change| format!("  - {}", change.address))
        .collect();
    if again.is_empty() {
        return Ok(());
    }
    let list = again.join("\n");
    Err(anyhow!("An earlier apply did not end, and may have created these objects:\n\n{list}\n\n{HOW_TO_ANSWER}")
        .into())
}

/// A plan, together with everything that an apply of it needs.
struct Made {
    file: StateFile,
    opened: Opened,
    plan: Plan,
    engine: Native,
    /// As people read it, where the plan is to be kept.
    pages: Option<Pages>,
}

/// The state, locked, and the folder with it.
fn prepare(folder: &Path, common: &Common, operation: &str) -> Result<(StateFile, Opened), Failure> {
    if !common.destroy && elsewhere::configuration(folder).next().is_none() {
        let detail = match operation {
            "OperationTypePlan" => {
                "Plan requires configuration to be present. Planning without a configuration would mark everything for \
                 destruction, which is normally not what is desired. If you would like to destroy everything, run plan with \
                 the -destroy option. Otherwise, create a OpenTofu configuration file (.tf file) and try again."
            }
            _ => {
                "Apply requires configuration to be present. Applying without a configuration would mark everything for \
                 destruction, which is normally not what is desired. If you would like to destroy everything, run 'tofu \
                 destroy' instead."
            }
        };
        return Err(EngineError::Diagnostics(vec![Diagnostic::error("No configuration files", detail)]).into());
    }
    let mut file = StateFile::open(&common.state, operation, &common.locking()?)?;
    recover(&mut file)?;
    let mut tell =
        |warnings: Vec<Diagnostic>| diagnostics::diagnostics(&warnings, common.json, common.compact_warnings);
    let flags = asking::variables(folder, common, common.variable_flags()?)?;
    let variables = native::read_root(folder, &flags, &mut tell)?;
    let opened = open(folder, variables, file.read()?)?;
    Ok((file, opened))
}

fn plan_request<'a>(file: &StateFile, opened: &'a Opened, common: &Common) -> Result<PlanRequest<'a>, Failure> {
    Ok(PlanRequest {
        workspace: &opened.workspace,
        mode: mode(common)?,
        adopt: Vec::new(),
        replace: common.replace.clone(),
        doubted: doubted(&file.doubts_path())?,
    })
}

/// Makes a plan and shows it.
async fn make_plan(folder: &Path, common: &Common, operation: &str, kept: bool) -> Result<Made, Failure> {
    let (file, opened) = prepare(folder, common, operation)?;
    let engine = engine(folder, common);
    let (plan, pages) = {
        let request = plan_request(&file, &opened, common)?;
        let draft = engine.draft(request, &Watch::new(common.json), &Stop::new()).await?;
        let plan = draft.plan(&engine).await;
        if common.json {
            stream::planned(&plan, &messages::totals(&plan));
        } else {
            print!("{}", draft.on(screen::sheet()));
        }
        let page = |ink: Ink| draft.on(Sheet { ink, ..Sheet::default() }).to_string();
        let pages = kept.then(|| Pages { plain: page(Ink::Plain), coloured: page(Ink::Coloured) });
        if !draft.problems().is_empty() {
            return Err(EngineError::Diagnostics([draft.problems(), &draft.warnings()].concat()).into());
        }
        (plan, pages)
    };
    Ok(Made { file, opened, plan, pages, engine })
}

async fn plan(folder: &Path, options: PlanOptions) -> Result<ExitCode, Failure> {
    let (common, code) = (&options.common, |effective: bool| match options.detailed_exitcode && effective {
        true => ExitCode::from(2),
        false => ExitCode::SUCCESS,
    });
    if options.out.is_none() && !common.json {
        let (file, opened) = prepare(folder, common, "OperationTypePlan")?;
        let request = plan_request(&file, &opened, common)?;
        let engine = engine(folder, common);
        let draft = engine.draft(request, &Watch::new(false), &Stop::new()).await?;
        print!("{}", draft.on(screen::sheet()));
        if !draft.problems().is_empty() {
            return Err(EngineError::Diagnostics([draft.problems(), &draft.warnings()].concat()).into());
        }
        diagnostics::diagnostics(&draft.warnings(), false, common.compact_warnings);
        if draft.effective() {
            let note = "Note: You didn't use the -out option to save this plan, so OpenTofu can't guarantee to take exactly these \
                        actions if you run \"tofu apply\" now.";
            println!("{}\n\n{}", screen::sheet().rule(), screen::sheet().wrapped(note));
        }
        return Ok(code(draft.effective()));
    }
    let made = make_plan(folder, common, "OperationTypePlan", options.out.is_some()).await?;
    diagnostics::diagnostics(&made.plan.warnings, common.json, common.compact_warnings);
    let effective = made.plan.effective;
    if let Some(path) = &options.out {
        let variables = &made.opened.workspace.variables;
        let ephemeral = native::unkept_variables(folder, variables)?;
        let pages = made.pages.unwrap_or_default();
        let saved = Saved::new(made.plan, pages, variables, &ephemeral, options.common.destroy);
        saved.write(path)?;
        if !options.common.json && effective {
            let path = path.display().to_string();
            println!(
                "{}\n\nSaved the plan to: {path}\n\nTo perform exactly these actions, run the following command to apply:\n    \
                 tofu apply {}",
                screen::sheet().rule(),
                native::quoted(&path)
            );
        }
    }
    Ok(code(effective))
}

/// `destroying`: the command is `destroy`, which ends with other words.
async fn apply(folder: &Path, options: ApplyOptions, destroying: bool) -> Result<ExitCode, Failure> {
    let made = match &options.plan {
        Some(path) => {
            let made = saved_plan(folder, path, &options)?;
            if options.common.json {
                stream::planned_changes(&made.plan);
            }
            made
        }
        None if options.common.json && !options.auto_approve => {
            let detail = "OpenTofu cannot ask for interactive approval when -json is set. You can either apply a saved plan \
                          file, or enable the -auto-approve option.";
            let problem = Diagnostic::error("Plan file or auto-approve required", detail);
            return Err(EngineError::Diagnostics(vec![problem]).into());
        }
        None => {
            let mut made = make_plan(folder, &options.common, "OperationTypeApply", false).await?;
            if made.plan.effective && !options.auto_approve {
                let warnings = std::mem::take(&mut made.plan.warnings);
                diagnostics::diagnostics(&warnings, options.common.json, options.common.compact_warnings);
                if !asking::approval(mode(&options.common)?)? {
                    return Ok(ExitCode::FAILURE);
                }
            }
            made
        }
    };
    carry_out(made, destroying, &options.common).await
}

fn saved_plan(folder: &Path, path: &Path, options: &ApplyOptions) -> Result<Made, Failure> {
    let flags = options.common.variable_flags()?;
    let saved = Saved::read(path)?;
    let mut variables = saved.variables();
    let given = native::collect_variables(folder, &flags)?;
    let ephemeral = native::unkept_variables(folder, &given)?;
    let lasting = given.iter().filter(|(name, _)| !ephemeral.contains(*name));
    let other = |(name, variable): &(&String, &Variable)| {
        variables.get(*name).is_some_and(|saved| saved.value != variable.value)
    };
    let mismatch = |(name, _): (&String, &Variable)| {
        let detail = format!(
            "Value saved in the plan file for variable {name:?} is different from the one given to the current command."
        );
        Diagnostic::error("Mismatch between input and plan variable value", detail)
    };
    let mismatches: Vec<Diagnostic> = lasting.filter(other).map(mismatch).collect();
    if !mismatches.is_empty() {
        return Err(EngineError::Diagnostics(mismatches).into());
    }
    variables.extend(given.into_iter().filter(|(name, _)| ephemeral.contains(name)));
    let mut file = StateFile::open(&options.common.state, "OperationTypeApply", &options.common.locking()?)?;
    recover(&mut file)?;
    let opened = open(folder, variables, file.read()?)?;
    // What the plan warned of, it has said when it was made.
    let plan = Plan { warnings: Vec::new(), ..saved.plan };
    Ok(Made { file, opened, plan, pages: None, engine: engine(folder, &options.common) })
}

async fn carry_out(mut made: Made, destroying: bool, common: &Common) -> Result<ExitCode, Failure> {
    refuse_what_may_exist(&made)?;
    let json = common.json;
    let stop = Stop::new();
    let interrupted = stop.clone();
    let signals = tokio::spawn(async move {
        if interruption().await.is_ok() {
            if !json {
                println!(
                    "\nInterrupt received.\nPlease wait for OpenTofu to exit or data loss may occur.\nGracefully shutting \
                     down...\n\nStopping operation..."
                );
            }
            interrupted.cancel();
        }
    });
    let journal = FolderJournal::create(&made.file.journal_path()).context("cannot begin the journal")?;
    let request = ApplyRequest { workspace: &made.opened.workspace, plan: &made.plan.bytes };
    let watch = Watch::new(json);
    let outcome = made.engine.apply(request, &journal, &watch, &stop).await;
    signals.abort();
    let applied = match outcome {
        Ok(applied) => applied,
        // Only the journal knows what was done.
        Err(error @ (EngineError::Lost(_) | EngineError::Refused(_))) => {
            diagnostics::failure(&Failure::Engine(error), json);
            return recover(&mut made.file).map(|()| ExitCode::FAILURE);
        }
        Err(error) => {
            journal.close()?;
            return Err(error.into());
        }
    };
    made.file.write(&applied.state)?;
    journal.close()?;
    let planned = made.plan.warnings.iter().filter(|warning| warning.summary != "Check block assertion failed");
    let found: Vec<Diagnostic> = planned.chain(&applied.diagnostics).cloned().collect();
    diagnostics::diagnostics(&found, json, common.compact_warnings);
    if !applied.complete() {
        return Ok(ExitCode::FAILURE);
    }
    match std::fs::remove_file(made.file.doubts_path()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    messages::applied(&made.plan, &applied, destroying, &watch);
    Ok(ExitCode::SUCCESS)
}

/// Waits until somebody wants the command to end: both signals mean the same.
async fn interruption() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted,
        _ = terminated.recv() => Ok(()),
    }
}

async fn import(folder: &Path, options: &ImportOptions) -> Result<ExitCode, Failure> {
    let mut file = StateFile::open(&options.common.state, "OperationTypeImport", &options.common.locking()?)?;
    recover(&mut file)?;
    let variables = native::collect_variables(folder, &options.common.variable_flags()?)?;
    let opened = open(folder, variables, file.read()?)?;
    let engine = engine(folder, &options.common);
    let state = engine.import(&opened.workspace, &options.address, &options.id, &Watch::of_import()).await;
    let state = match state {
        // It has an example in it, which is not to be broken into lines.
        Err(EngineError::Diagnostics(found))
            if found.iter().any(|one| one.summary.starts_with("resource address ")) =>
        {
            found.iter().for_each(|one| eprintln!("Error: {}\n\n{}\n", one.summary, one.detail));
            return Ok(ExitCode::FAILURE);
        }
        other => other?,
    };
    file.write(&state)?;
    println!(
        "\nImport successful!\n\nThe resources that were imported are shown above. These resources are now in\nyour OpenTofu \
         state and will henceforth be managed by OpenTofu.\n"
    );
    Ok(ExitCode::SUCCESS)
}

/// As in OpenTofu, reading takes no lock.
pub fn read_state(path: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes).filter(|bytes| !bytes.trim_ascii().is_empty())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", Path::new(path).display())),
    }
}
