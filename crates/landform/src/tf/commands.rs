use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use landform_engine::native::{self, Native};
use landform_engine::state::State;
use landform_engine::{
    ApplyRequest, Diagnostic, Engine, EngineError, Mode, Output, Plan, PlanRequest, Silent, Stop, Variable, Workspace,
};

use landform_plugin::{Limits, Pool, Schemas};
use landform_runner::providers::LocalProviders;

use super::Failure;
use super::elsewhere;
use super::journal::{FolderJournal, doubted, leftover};
use super::messages::{self, Watch, diagnostic_text};
use super::options::{
    ApplyOptions, Command, Common, ImportOptions, Options, OutputOptions, PlanOptions, ShowOptions, ValidateOptions,
};
use super::saved::Saved;
use super::state_file::StateFile;

pub async fn run(options: Options) -> Result<ExitCode, Failure> {
    if let Some(folder) = &options.chdir {
        std::env::set_current_dir(folder).with_context(|| format!("cannot change to {}", folder.display()))?;
    }
    let folder = std::env::current_dir()?;
    let elsewhere = super::elsewhere::reasons(&folder);
    if !elsewhere.is_empty() {
        return Err(EngineError::Unsupported(elsewhere).into());
    }
    match options.command {
        Command::Init(options) => super::init::init(&folder, &options).await,
        Command::Console(options) => super::console::console(&folder, &options).await,
        Command::Import(options) => import(&folder, &options).await,
        Command::Plan(options) => plan(&folder, options).await,
        Command::Apply(options) => apply(&folder, options).await,
        Command::Destroy(mut options) => {
            options.common.destroy = true;
            apply(&folder, options).await
        }
        Command::Show(options) => show(&folder, options).await,
        Command::Output(options) => output(&options),
        Command::Validate(options) => validate(&folder, &options).await,
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
    if !common.replace.is_empty() && (common.destroy || common.refresh_only) {
        return Err(anyhow!("-replace is allowed only in normal planning mode").into());
    }
    if common.refresh_only && !common.refresh {
        return Err(anyhow!("-refresh-only and -refresh=false cannot be used together").into());
    }
    match (common.destroy, common.refresh_only) {
        (true, true) => Err(anyhow!("-destroy and -refresh-only cannot be used together").into()),
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
    let aside = doubts_path(file);
    let list: Vec<String> =
        left.doubts.iter().map(|intent| format!("  - {} ({:?})", intent.address, intent.action)).collect();
    left.keep_doubts(&aside)?;
    std::fs::remove_file(&path)?;
    Err(anyhow!(
        "An earlier apply did not end. What it is known to have done is now in the state; of these changes nobody knows \
         whether they were made:\n\n{}\n\nLook at them before you apply again. They are also listed in {}: updates among them \
         are made again by the next apply, unless reading the object shows how it is.",
        list.join("\n"),
        aside.display(),
    )
    .into())
}

/// Changes in doubt are listed here until an apply has come to its end.
fn doubts_path(file: &StateFile) -> PathBuf {
    file.journal_path().with_extension("doubts")
}

/// A plan, together with everything that an apply of it needs.
struct Made {
    file: StateFile,
    opened: Opened,
    plan: Plan,
    engine: Native,
}

/// The state, locked, and the folder with it.
fn prepare(folder: &Path, common: &Common, operation: &str) -> Result<(StateFile, Opened), Failure> {
    if !common.destroy && elsewhere::configuration(folder).next().is_none() {
        let detail = "A configuration is required. Without one everything would be marked for destruction, which is \
                      normally not what is desired. If you would like to destroy everything, use the destroy command.";
        return Err(EngineError::Diagnostics(vec![Diagnostic::error("No configuration files", detail)]).into());
    }
    let mut file = StateFile::lock(&common.state, operation)?;
    recover(&mut file)?;
    let variables = native::collect_variables(folder, &common.variable_flags()?)?;
    let opened = open(folder, variables, file.read()?)?;
    Ok((file, opened))
}

fn plan_request<'a>(file: &StateFile, opened: &'a Opened, common: &Common) -> Result<PlanRequest<'a>, Failure> {
    Ok(PlanRequest {
        workspace: &opened.workspace,
        mode: mode(common)?,
        adopt: Vec::new(),
        replace: common.replace.clone(),
        doubted: doubted(&doubts_path(file))?,
    })
}

async fn make_plan(folder: &Path, common: &Common, operation: &str) -> Result<Made, Failure> {
    let (file, opened) = prepare(folder, common, operation)?;
    let engine = engine(folder, common);
    let plan = engine.plan(plan_request(&file, &opened, common)?, &Silent, &Stop::new()).await?;
    print_warnings(&plan.warnings);
    Ok(Made { file, opened, plan, engine })
}

fn print_warnings(warnings: &[Diagnostic]) {
    for warning in warnings {
        print!("{}", diagnostic_text(warning));
    }
}

fn show_plan(made: &Made, json: bool) -> Result<(), Failure> {
    if json {
        messages::planned_json(&made.plan);
    } else {
        print!("{}", made.engine.show_plan(&made.plan.bytes)?);
    }
    Ok(())
}

async fn plan(folder: &Path, options: PlanOptions) -> Result<ExitCode, Failure> {
    let (common, code) = (&options.common, |effective: bool| match options.detailed_exitcode && effective {
        true => ExitCode::from(2),
        false => ExitCode::SUCCESS,
    });
    if options.out.is_none() && !common.json {
        let (file, opened) = prepare(folder, common, "OperationTypePlan")?;
        let request = plan_request(&file, &opened, common)?;
        let preview = engine(folder, common).preview(request, &Silent, &Stop::new()).await?;
        print_warnings(&preview.warnings);
        print!("{preview}");
        return Ok(code(preview.effective));
    }
    let made = make_plan(folder, common, "OperationTypePlan").await?;
    show_plan(&made, common.json)?;
    let effective = made.plan.effective;
    if let Some(path) = &options.out {
        let ephemeral = native::ephemeral_variables(folder)?;
        let saved = Saved::new(made.plan, &made.opened.workspace.variables, &ephemeral, options.common.destroy);
        saved.write(path)?;
        if !options.common.json {
            println!("\nSaved the plan to: {}", path.display());
        }
    }
    Ok(code(effective))
}

async fn apply(folder: &Path, options: ApplyOptions) -> Result<ExitCode, Failure> {
    let (made, destroying) = match &options.plan {
        Some(path) => (saved_plan(folder, path, &options)?, Saved::read(path)?.destroying),
        None => {
            let made = make_plan(folder, &options.common, "OperationTypeApply").await?;
            show_plan(&made, options.common.json)?;
            if made.plan.effective && !options.auto_approve {
                approve(&options)?;
            }
            (made, options.common.destroy)
        }
    };
    carry_out(made, destroying, options.common.json).await
}

fn saved_plan(folder: &Path, path: &Path, options: &ApplyOptions) -> Result<Made, Failure> {
    let flags = options.common.variable_flags()?;
    let ephemeral = native::ephemeral_variables(folder)?;
    let lasting = |flag: &native::VariableFlag| match flag {
        native::VariableFlag::Var { name, .. } => !ephemeral.contains(name),
        native::VariableFlag::File(_) => true,
    };
    if flags.iter().any(lasting) {
        let why = "A saved plan has its variables already; only ephemeral ones can be given with -var again.";
        return Err(anyhow!(why).into());
    }
    let saved = Saved::read(path)?;
    let mut variables = saved.variables();
    let given = native::collect_variables(folder, &flags)?;
    let lasting = given.iter().filter(|(name, _)| !ephemeral.contains(*name));
    for (name, variable) in lasting {
        if variables.get(name).is_some_and(|saved| saved.value != variable.value) {
            let detail = format!(
                "Value saved in the plan file for variable {name:?} is different from the one given to the current command."
            );
            let mismatch = Diagnostic::error("Mismatch between input and plan variable value", detail);
            return Err(EngineError::Diagnostics(vec![mismatch]).into());
        }
    }
    variables.extend(given.into_iter().filter(|(name, _)| ephemeral.contains(name)));
    let mut file = StateFile::lock(&options.common.state, "OperationTypeApply")?;
    recover(&mut file)?;
    let opened = open(folder, variables, file.read()?)?;
    Ok(Made { file, opened, plan: saved.plan, engine: engine(folder, &options.common) })
}

fn approve(options: &ApplyOptions) -> Result<(), Failure> {
    if !options.common.input || options.common.json {
        return Err(anyhow!("Nobody can be asked: use -auto-approve, or apply a saved plan.").into());
    }
    print!("\nDo you want to perform these actions?\n  Only 'yes' will be accepted to approve.\n\n  Enter a value: ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    if answer.trim() == "yes" { Ok(()) } else { Err(anyhow!("Apply cancelled.").into()) }
}

async fn carry_out(mut made: Made, destroying: bool, json: bool) -> Result<ExitCode, Failure> {
    let stop = Stop::new();
    let interrupted = stop.clone();
    let signals = tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            eprintln!("\nStopping: what has begun is waited for, nothing new begins.");
            interrupted.cancel();
        }
    });
    let journal = FolderJournal::create(&made.file.journal_path()).context("cannot begin the journal")?;
    let request = ApplyRequest { workspace: &made.opened.workspace, plan: &made.plan.bytes };
    let outcome = made.engine.apply(request, &journal, &Watch { json }, &stop).await;
    signals.abort();
    let applied = match outcome {
        Ok(applied) => applied,
        // Only the journal knows what was done.
        Err(error @ (EngineError::Lost(_) | EngineError::Refused(_))) => {
            messages::failure(&Failure::Engine(error));
            return recover(&mut made.file).map(|()| ExitCode::FAILURE);
        }
        Err(error) => {
            journal.close()?;
            return Err(error.into());
        }
    };
    made.file.write(&applied.state)?;
    journal.close()?;
    for diagnostic in &applied.diagnostics {
        eprint!("{}", diagnostic_text(diagnostic));
    }
    if !applied.complete() {
        return Ok(ExitCode::FAILURE);
    }
    match std::fs::remove_file(doubts_path(&made.file)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    messages::applied(&made.plan, &applied, destroying, json);
    Ok(ExitCode::SUCCESS)
}

async fn show(folder: &Path, options: ShowOptions) -> Result<ExitCode, Failure> {
    let engine = engine(folder, &Common::default());
    if let Some(path) = &options.plan {
        let saved = Saved::read(path)?;
        if options.json {
            println!("{}", saved.plan.json);
        } else {
            print!("{}", engine.show_plan(&saved.plan.bytes)?);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let state = read_state(Path::new("terraform.tfstate"))?;
    let opened = open(folder, BTreeMap::new(), state)?;
    if options.json {
        println!("{}", engine.show_state(&opened.workspace).await?);
    } else {
        print!("{}", engine.state_text(&opened.workspace).await?);
    }
    Ok(ExitCode::SUCCESS)
}

async fn import(folder: &Path, options: &ImportOptions) -> Result<ExitCode, Failure> {
    let mut file = StateFile::lock(&options.common.state, "OperationTypeImport")?;
    recover(&mut file)?;
    let variables = native::collect_variables(folder, &options.common.variable_flags()?)?;
    let opened = open(folder, variables, file.read()?)?;
    let (address, id) = (&options.address, &options.id);
    println!("{address}: Importing from ID {id:?}...");
    let state = engine(folder, &options.common).import(&opened.workspace, address, id).await?;
    file.write(&state)?;
    println!("\nImport successful!\n\n{address} is now in the state.");
    Ok(ExitCode::SUCCESS)
}

async fn validate(folder: &Path, options: &ValidateOptions) -> Result<ExitCode, Failure> {
    let opened = open(folder, BTreeMap::new(), None)?;
    let outcome = engine(folder, &Common::default()).validate(&opened.workspace).await;
    let found = match outcome {
        Ok(()) => Vec::new(),
        Err(EngineError::Diagnostics(diagnostics)) if options.json => diagnostics,
        Err(error) => return Err(error.into()),
    };
    if options.json {
        println!("{}", messages::validated_json(&found));
    } else {
        println!("Success! The configuration is valid.\n");
    }
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// As in OpenTofu, reading takes no lock.
pub fn read_state(path: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes).filter(|bytes| !bytes.trim_ascii().is_empty())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", PathBuf::from(path).display())),
    }
}

fn output(options: &OutputOptions) -> Result<ExitCode, Failure> {
    let outputs: BTreeMap<String, Output> = match read_state(&options.state)? {
        Some(bytes) => {
            native::outputs(&State::read(&bytes).map_err(anyhow::Error::from)?).map_err(anyhow::Error::from)?
        }
        None => BTreeMap::new(),
    };
    let Some(name) = &options.name else {
        if options.json {
            println!(
                "{}",
                serde_json::to_string_pretty(&messages::outputs_json(&outputs)).map_err(anyhow::Error::from)?
            );
        } else if outputs.is_empty() {
            eprintln!("\nWarning: No outputs found\n");
        } else {
            println!("{}", messages::outputs_text(&outputs));
        }
        return Ok(ExitCode::SUCCESS);
    };
    let output =
        outputs.get(name).ok_or_else(|| anyhow!("Output {name:?} not found: the state has no output of that name."))?;
    match &output.value {
        value if options.json => println!("{value}"),
        serde_json::Value::String(text) if options.raw => print!("{text}"),
        value @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_)) if options.raw => print!("{value}"),
        _ if options.raw => return Err(anyhow!("-raw needs a string, a number or a bool; use -json.").into()),
        value => println!("{}", native::value_text(value, 0)),
    }
    Ok(ExitCode::SUCCESS)
}
