//! Commands that only look: `show`, `validate`, `version`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use landform_engine::{EngineError, native};

use super::Failure;
use super::commands::{engine, open, read_state};
use super::options::{Common, ShowOptions, ValidateOptions, VersionOptions};
use super::saved::Saved;
use super::{diagnostics, messages, screen};

pub async fn show(folder: &Path, options: ShowOptions) -> Result<ExitCode, Failure> {
    let engine = engine(folder, &Common::default());
    let given = options.plan.as_deref();
    // As in OpenTofu, a state that lies somewhere else can be shown, too.
    let elsewhere = given.and_then(|path| std::fs::read(path).ok()).filter(|bytes| is_state(bytes));
    if let Some(path) = given.filter(|_| elsewhere.is_none()) {
        let saved = Saved::read(path)?;
        if options.json {
            println!("{}", saved.plan.json);
        } else {
            print!("{}", saved.pages.on(screen::ink()));
        }
        return Ok(ExitCode::SUCCESS);
    }
    native::check_variable_files(folder)?;
    let state = match elsewhere {
        Some(state) => Some(state),
        None => read_state(Path::new("terraform.tfstate"))?,
    };
    let opened = open(folder, BTreeMap::new(), state)?;
    if options.json {
        println!("{}", engine.show_state(&opened.workspace).await?);
    } else {
        print!("{}", engine.state_text(&opened.workspace, screen::ink()).await?);
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a file is a state, of whatever version.
fn is_state(bytes: &[u8]) -> bool {
    let json: Option<serde_json::Value> = serde_json::from_slice(bytes).ok();
    json.is_some_and(|json| json["version"].is_u64() && json["terraform_version"].is_string())
}

pub async fn validate(folder: &Path, options: &ValidateOptions) -> Result<ExitCode, Failure> {
    let opened = open(folder, BTreeMap::new(), None)?;
    let outcome = match native::check_variable_files(folder) {
        Ok(()) => engine(folder, &Common::default()).validate(&opened.workspace).await,
        wrong => wrong.map(|()| Vec::new()),
    };
    let (found, end) = match outcome {
        Ok(warnings) => (warnings, ExitCode::SUCCESS),
        Err(EngineError::Diagnostics(diagnostics)) if options.json => (diagnostics, ExitCode::FAILURE),
        Err(error) => return Err(error.into()),
    };
    let ink = screen::ink();
    if options.json {
        let json = serde_json::to_string_pretty(&messages::validated_json(&found)).map_err(anyhow::Error::from)?;
        println!("{json}");
    } else if found.is_empty() {
        println!("{}", ink.say("[green][bold]Success![reset] The configuration is valid."));
    } else {
        diagnostics::diagnostics(&found, false, false);
        let text = "[green][bold]Success![reset] The configuration is valid, but there were some validation warnings as shown \
                    above.";
        println!("{}", screen::sheet().wrapped(&ink.say(text)));
    }
    Ok(end)
}

/// What this is, which OpenTofu it works as, and the providers that the folder has chosen.
pub fn version(folder: &Path, options: &VersionOptions) -> Result<ExitCode, Failure> {
    let tofu = landform_engine::state::TERRAFORM_VERSION;
    let lock = landform_registry::LockFile::of_folder(folder).map_err(anyhow::Error::from)?;
    let providers: BTreeMap<String, String> =
        lock.selections().map(|(source, locked)| (source.to_string(), locked.version.to_string())).collect();
    let platform = landform_registry::platform();
    if options.json {
        let json = serde_json::json!({
            "terraform_version": tofu, "platform": platform, "provider_selections": providers,
            "landform_version": env!("CARGO_PKG_VERSION"),
        });
        println!("{}", serde_json::to_string_pretty(&json).map_err(anyhow::Error::from)?);
        return Ok(ExitCode::SUCCESS);
    }
    println!("Landform v{}, working as OpenTofu v{tofu}\non {platform}", env!("CARGO_PKG_VERSION"));
    providers.iter().for_each(|(source, version)| println!("+ provider {source} v{version}"));
    Ok(ExitCode::SUCCESS)
}
