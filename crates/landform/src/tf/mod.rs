//! `landform tf`: the commands of OpenTofu in an ordinary folder, carried out by the native engine.

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs `landform tf ARGS…`; `args` begin after `tf`.
pub async fn run(_args: Vec<OsString>) -> ExitCode {
    eprintln!("Error: landform tf is not there yet");
    ExitCode::FAILURE
}
