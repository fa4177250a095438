use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::case::{Change, End, Step, Variant};
use super::normal;
use super::observe::{Ended, Observed, Streams};
use super::words::named_alike;
use crate::parts;
use crate::probe::USUAL_LEDGER;
use crate::transcript::canonical::canonical;
use crate::transcript::{Recorder, Source};

/// The two that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Tofu,
    Native,
}

/// A place to live through stories in: recorded providers, and folders.
pub struct Bench {
    folder: tempfile::TempDir,
    recorder: Recorder,
    landform: PathBuf,
    config: PathBuf,
}

/// A story as one side lived through it.
#[derive(Clone, Debug)]
pub struct Told {
    pub observed: Vec<Observed>,
    /// After the last step that applied something and left something.
    pub left: Option<Left>,
    /// What was printed, for people.
    pub printed: String,
}

/// What another engine can go on from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// How many steps had been done.
    pub steps: usize,
    pub state: String,
    pub ledger: Option<String>,
}

impl Bench {
    /// `landform` is the binary under test.
    pub async fn new(landform: &Path, sources: &[Source]) -> Result<Bench> {
        let folder = tempfile::Builder::new().prefix("landform-oracle-").tempdir()?;
        let recorder = Recorder::new(folder.path(), sources).await?;
        let config = folder.path().join("tofurc");
        let mirror = recorder.mirror().display().to_string();
        let text = format!("provider_installation {{\n  filesystem_mirror {{\n    path = {mirror:?}\n  }}\n}}\n");
        fs::write(&config, text)?;
        Ok(Bench { folder, recorder, landform: landform.to_owned(), config })
    }

    fn run(&self, side: Side, folder: &Path, args: &[&str]) -> Result<Output> {
        let mut command = match side {
            Side::Tofu => Command::new(parts::tofu()),
            Side::Native => {
                let mut command = Command::new(&self.landform);
                command.arg("tf").env("LANDFORM_ENGINE", "native");
                command
            }
        };
        let command = command.args(args).current_dir(folder).env("TF_CLI_CONFIG_FILE", &self.config);
        command.env("CHECKPOINT_DISABLE", "1").env_remove("TF_DATA_DIR");
        Ok(command.output()?)
    }

    fn new_folder(&self) -> Result<tempfile::TempDir> {
        Ok(tempfile::tempdir_in(self.folder.path())?)
    }
}

/// Lives through all steps of a story. The native side ends early where it says that a step is none of its business.
pub fn live_through(bench: &Bench, variant: &Variant, side: Side) -> Result<Told> {
    let home = bench.new_folder()?;
    let folder = home.path();
    let mut told = Told { observed: Vec::new(), left: None, printed: String::new() };
    for (at, step) in variant.case.steps.iter().enumerate() {
        prepare(bench, variant, side, folder, at)?;
        bench.recorder.take()?;
        let observed = one_step(bench, side, folder, step, variant.case.exact, &mut told.printed)
            .with_context(|| format!("{side:?}, step {}", step.name))?;
        let refused = side == Side::Native && observed.planned.code == UNSUPPORTED;
        let applied = observed.applied.as_ref().is_some_and(|ended| !ended.failed());
        told.observed.push(observed);
        if refused {
            break;
        }
        if applied && step.end != End::Fails && !step.args.iter().any(|arg| arg == "-destroy") {
            told.left = left(folder, at + 1)?;
        }
    }
    Ok(told)
}

/// The exit code of `landform tf` for what is outside of the subset.
pub const UNSUPPORTED: i32 = 3;

/// The exit code of a plan by `side`, made from what another has left behind.
pub fn hand_over(bench: &Bench, variant: &Variant, side: Side, left: &Left) -> Result<(i32, String)> {
    let home = bench.new_folder()?;
    for at in 0..left.steps {
        change_files(variant, home.path(), at)?;
    }
    if side == Side::Tofu {
        bench.run(side, home.path(), &["init", "-input=false", "-no-color"])?;
    }
    fs::write(home.path().join(STATE), &left.state)?;
    if let Some(ledger) = &left.ledger {
        fs::write(home.path().join(USUAL_LEDGER), ledger)?;
    }
    let step = &variant.case.steps[left.steps - 1];
    let variables = step.args.iter().map(String::as_str).filter(|arg| arg.starts_with("-var"));
    let args: Vec<&str> =
        ["plan", "-detailed-exitcode", "-input=false", "-no-color"].into_iter().chain(variables).collect();
    let output = bench.run(side, home.path(), &args)?;
    bench.recorder.take()?;
    Ok((output.status.code().unwrap_or(-1), printed(&output)))
}

const STATE: &str = "terraform.tfstate";

fn left(folder: &Path, steps: usize) -> Result<Option<Left>> {
    let Ok(state) = fs::read_to_string(folder.join(STATE)) else { return Ok(None) };
    let json: serde_json::Value = serde_json::from_str(&state)?;
    if json["resources"].as_array().is_none_or(Vec::is_empty) {
        return Ok(None);
    }
    Ok(Some(Left { steps, state, ledger: fs::read_to_string(folder.join(USUAL_LEDGER)).ok() }))
}

fn change_files(variant: &Variant, folder: &Path, at: usize) -> Result<()> {
    for (path, change) in &variant.case.steps[at].files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
        match change {
            Change::Written(text) | Change::WrittenCrlf(text) => fs::write(&path, text)?,
            Change::Appended(text) => {
                let before = fs::read_to_string(&path).unwrap_or_default();
                fs::write(&path, format!("{before}\n{text}"))?;
            }
            Change::Gone => fs::remove_file(&path)?,
        }
    }
    if at == 0 {
        fs::write(folder.join("versions.tf"), variant.head())?;
    }
    let configured = fs::read_dir(folder)?.flatten().any(|entry| {
        let path = entry.path();
        path.file_name().is_some_and(|name| name != "probe.tf")
            && path.extension().is_some_and(|extension| extension == "tf")
            && fs::read_to_string(&path).is_ok_and(|text| text.contains("provider \"probe\""))
    });
    if variant.case.providers.iter().any(|name| name == "probe") {
        let usual = if configured { "" } else { "provider \"probe\" {\n  ids = \"counted\"\n}\n" };
        fs::write(folder.join("probe.tf"), usual)?;
    }
    Ok(())
}

fn prepare(bench: &Bench, variant: &Variant, side: Side, folder: &Path, at: usize) -> Result<()> {
    change_files(variant, folder, at)?;
    let texts = variant.case.steps[at].files.values();
    let asks = |change: &Change| matches!(change, Change::Written(text) if text.contains("module ") || text.contains("provider"));
    let locked = folder.join(".terraform.lock.hcl").exists();
    if side == Side::Tofu && (at == 0 || !locked || texts.into_iter().any(asks)) {
        // It fails where the configuration is wrong; then the plan says so, too.
        bench.run(side, folder, &["init", "-input=false", "-no-color"])?;
    }
    Ok(())
}

/// What a plan of a step is asked with.
const PLAN: [&str; 5] = ["plan", "-out=saved.plan", "-detailed-exitcode", "-input=false", "-no-color"];

/// Lives through all steps of a story once more, for what programs read.
pub fn listen(bench: &Bench, variant: &Variant, side: Side) -> Result<Vec<Streams>> {
    let home = bench.new_folder()?;
    let folder = home.path();
    let mut heard = Vec::new();
    for (at, step) in variant.case.steps.iter().enumerate() {
        prepare(bench, variant, side, folder, at)?;
        let args = step.args.iter().map(String::as_str);
        if step.is_command {
            bench.run(side, folder, &args.collect::<Vec<_>>())?;
            continue;
        }
        let stream = |output: &Output| -> Result<Vec<Json>> {
            let text = named_alike(
                &String::from_utf8_lossy(&output.stdout),
                &folder.display().to_string(),
                side == Side::Native,
            );
            text.lines().map(|line| serde_json::from_str(line).with_context(|| format!("not JSON: {line}"))).collect()
        };
        let planned = bench.run(side, folder, &PLAN.into_iter().chain(["-json"]).chain(args).collect::<Vec<_>>())?;
        let apply = match step.end {
            End::Planned => None,
            _ if Ended::of(&planned).failed() => None,
            _ => Some(stream(&bench.run(
                side,
                folder,
                &["apply", "-input=false", "-no-color", "-json", "saved.plan"],
            )?)?),
        };
        heard.push(Streams { step: step.name.clone(), plan: stream(&planned)?, apply });
    }
    bench.recorder.take()?;
    Ok(heard)
}

fn one_step(bench: &Bench, side: Side, folder: &Path, step: &Step, exact: bool, log: &mut String) -> Result<Observed> {
    let mut texts = BTreeMap::new();
    let mut run = |args: &[&str]| -> Result<Output> {
        let output = bench.run(side, folder, args)?;
        let named = |text: &[u8]| {
            named_alike(&String::from_utf8_lossy(text), &folder.display().to_string(), side == Side::Native)
        };
        texts.insert(args[0].to_owned(), named(&output.stdout));
        texts.insert(format!("{} (standard error)", args[0]), named(&output.stderr));
        log.push_str(&format!("$ {}\n{}", args.join(" "), printed(&output)));
        Ok(output)
    };
    let args = step.args.iter().map(String::as_str);
    let (planned, shown, applied) = if step.is_command {
        (Ended::of(&run(&args.collect::<Vec<_>>())?), None, None)
    } else {
        let planned = Ended::of(&run(&PLAN.into_iter().chain(args).collect::<Vec<_>>())?);
        if planned.failed() {
            (planned, None, None)
        } else {
            let output = bench.run(side, folder, &["show", "-json", "saved.plan"])?;
            ensure!(output.status.success(), "the plan cannot be shown: {}", printed(&output));
            let shown = normal::plan(serde_json::from_slice(&output.stdout)?);
            run(&["show", "-no-color", "saved.plan"])?;
            let apply = ["apply", "-input=false", "-no-color", "saved.plan"];
            let applied = if step.end == End::Planned { None } else { Some(Ended::of(&run(&apply)?)) };
            (planned, Some(shown), applied)
        }
    };
    let state = match fs::read(folder.join(STATE)) {
        Ok(bytes) if !bytes.is_empty() => Some(normal::state(serde_json::from_slice(&bytes)?)),
        _ => None,
    };
    let calls = canonical(&bench.recorder.take()?, exact);
    Ok(Observed { step: step.name.clone(), planned, shown, applied, state, texts, calls })
}

fn printed(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Whether a step ended as its author said.
pub fn check_end(step: &Step, observed: &Observed) -> Result<()> {
    let failed = observed.planned.failed() || observed.applied.as_ref().is_some_and(Ended::failed);
    let expected = match step.end {
        End::Fails => failed,
        End::Nothing => !failed && observed.planned.code == 0,
        End::Planned => !failed,
        End::Applied => !failed && (step.is_command || observed.planned.code == 2),
    };
    let how = || {
        let applied = observed.applied.as_ref();
        format!(
            "{:?} {:?}, apply {:?}",
            observed.planned.code,
            observed.planned.errors,
            applied.map(|end| (end.code, &end.errors))
        )
    };
    ensure!(expected, "step {} should end as {:?}: plan {}", step.name, step.end, how());
    Ok(())
}
