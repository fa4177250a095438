//! `landform tf`: the commands of OpenTofu in an ordinary folder, carried out by the native engine.
//!
//! What is outside of what this engine does, a folder or a command, is handed to the real `tofu` if there is one, and said
//! to be: `LANDFORM_ENGINE=native` refuses it instead. Exit codes are those of OpenTofu: 0, or 1 for a failure, or 2 where
//! `-detailed-exitcode` finds something to change; and 3 where something was refused, so that a script can go on by itself.

mod asking;
mod commands;
mod console;
mod diagnostics;
mod elsewhere;
mod handover;
mod init;
mod journal;
mod look;
mod messages;
mod options;
mod output;
mod saved;
mod screen;
mod snippet;
mod sound;
mod state;
mod state_file;
mod stream;
mod taint;
mod usage;

use std::ffi::OsString;
use std::process::ExitCode;

use landform_engine::{Diagnostic, EngineError, Unsupported};

use handover::{Wanted, hand_over};
use options::Options;

/// Runs `landform tf ARGS…`; `args` begin after `tf`.
pub async fn run(args: Vec<OsString>) -> ExitCode {
    let wanted = match Wanted::of_environment() {
        Ok(wanted) => wanted,
        Err(why) => {
            eprintln!("\nError: {why}\n");
            return ExitCode::FAILURE;
        }
    };
    if wanted == Wanted::Cli {
        return hand_over(wanted, &[reason("LANDFORM_ENGINE=cli")], &args);
    }
    screen::choose_ink(&args);
    screen::choose_spacing(&args);
    let args = match args.iter().position(|arg| !arg.to_str().is_some_and(|arg| arg.starts_with("-chdir="))) {
        // Another name of a command.
        Some(at) if matches!(args[at].to_str(), Some("-version" | "--version" | "-v")) => {
            args[..at].iter().cloned().chain(["version".into()]).chain(args[at + 1..].iter().cloned()).collect()
        }
        _ => args,
    };
    let options = match Options::read(args.clone()) {
        Ok(options) => options,
        Err(error) => {
            if let Some(foreign) = usage::foreign(&error) {
                return hand_over(wanted, &[reason(&foreign)], &args);
            }
            return usage::explain(&error, &args);
        }
    };
    // Only before the folder is changed to: what is handed over does that itself.
    let begun = std::env::current_dir();
    let json = options.streams_json();
    match commands::run(options).await.map_err(usage::of_flags) {
        Ok(code) => code,
        Err(Failure::Engine(EngineError::Unsupported(reasons))) => {
            if let Ok(begun) = begun {
                let _ = std::env::set_current_dir(begun);
            }
            hand_over(wanted, &reasons, &args)
        }
        Err(Failure::Usage(problem)) => {
            diagnostics::diagnostics(&[*problem], json, false);
            let words: Vec<&str> =
                args.iter().filter_map(|arg| arg.to_str()).filter(|arg| !arg.starts_with('-')).collect();
            usage::hint(&words);
            ExitCode::FAILURE
        }
        Err(failure) => {
            diagnostics::failure(&failure, json);
            ExitCode::FAILURE
        }
    }
}

fn reason(construct: &str) -> Unsupported {
    Unsupported { construct: construct.to_owned(), range: None }
}

/// Why a command did not do what it was asked for.
enum Failure {
    Engine(EngineError),
    /// The command line asks for what goes not together.
    Usage(Box<Diagnostic>),
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
