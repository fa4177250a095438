//! `landform tf`: the commands of OpenTofu in an ordinary folder, carried out by the native engine.
//!
//! Exit codes are those of OpenTofu: 0, or 1 for a failure, or 2 where `-detailed-exitcode` finds something to change;
//! and 3, so that a script can go on with `tofu`, where the folder is outside of what this engine does.

mod commands;
mod journal;
mod messages;
mod options;
mod saved;
mod state;
mod state_file;

use std::ffi::OsString;
use std::process::ExitCode;

use landform_engine::EngineError;

use options::Options;

/// Runs `landform tf ARGS…`; `args` begin after `tf`.
pub async fn run(args: Vec<OsString>) -> ExitCode {
    let options = match Options::read(args) {
        Ok(options) => options,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    match commands::run(options).await {
        Ok(code) => code,
        Err(failure) => {
            messages::failure(&failure);
            match failure {
                Failure::Engine(EngineError::Unsupported(_)) => ExitCode::from(3),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

/// Why a command did not do what it was asked for.
enum Failure {
    Engine(EngineError),
    Other(anyhow::Error),
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Failure {
        Failure::Engine(error)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        Failure::Other(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::Other(error.into())
    }
}
