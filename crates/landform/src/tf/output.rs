//! `landform tf output`: the outputs that the state holds.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use landform_engine::native;
use landform_engine::state::State;
use landform_engine::{Diagnostic, EngineError, Output, Severity};
use serde_json::Value as Json;

use super::Failure;
use super::commands::read_state;
use super::diagnostics;
use super::messages;
use super::options::OutputOptions;

pub fn output(folder: &Path, options: &OutputOptions) -> Result<ExitCode, Failure> {
    if options.raw && options.name.is_none() {
        let detail = "You must give the name of a single output value when using the -raw option.";
        diagnostics::diagnostics(&[Diagnostic::error("Output name required", detail)], false, false);
        eprintln!("\nFor more help on using this command, run:\n  tofu output -help");
        return Ok(ExitCode::FAILURE);
    }
    super::sound::files(folder)?;
    let outputs: BTreeMap<String, Output> = match read_state(&options.state)? {
        Some(bytes) => {
            native::outputs(&State::read(&bytes).map_err(anyhow::Error::from)?).map_err(anyhow::Error::from)?
        }
        None => BTreeMap::new(),
    };
    if outputs.is_empty() && !options.json {
        let detail = "The state file either has no outputs defined, or all the defined outputs are empty. Please define an \
                      output in your configuration with the `output` keyword and run `tofu refresh` for it to become \
                      available. If you are using interpolation, please verify the interpolated value is not empty. You can \
                      use the `tofu console` command to assist.";
        let warning = Diagnostic { severity: Severity::Warning, ..Diagnostic::error("No outputs found", detail) };
        diagnostics::diagnostics(&[warning], false, false);
        return Ok(ExitCode::SUCCESS);
    }
    let text = match &options.name {
        None if options.json => {
            serde_json::to_string_pretty(&messages::outputs_json(&outputs)).map_err(anyhow::Error::from)?
        }
        None => messages::outputs_text(&outputs),
        Some(name) => {
            let Some(output) = outputs.get(name) else {
                let detail = "The output variable requested could not be found in the state file. If you recently added this \
                              to your configuration, be sure to run `tofu apply`, since the state won't be updated with new \
                              output variables until that command is run.";
                return Err(failed(Diagnostic::error(format!("Output {name:?} not found"), detail)));
            };
            if options.raw {
                print!("{}", bare_text(name, output)?);
                return Ok(ExitCode::SUCCESS);
            }
            if options.json { output.value.to_string() } else { native::output_text(output) }
        }
    };
    println!("{text}");
    Ok(ExitCode::SUCCESS)
}

fn failed(problem: Diagnostic) -> Failure {
    EngineError::Diagnostics(vec![problem]).into()
}

/// The text of an output that is a text, or can be taken for one.
fn bare_text(name: &str, output: &Output) -> Result<String, Failure> {
    let detail = match &output.value {
        Json::String(text) => return Ok(text.clone()),
        value @ (Json::Number(_) | Json::Bool(_)) => return Ok(value.to_string()),
        Json::Null => format!("The value for output value {name:?} is null, so -raw mode cannot print it."),
        _ => format!(
            "The -raw option only supports strings, numbers, and boolean values, but output value {name:?} is {}.\n\nUse the \
             -json option for machine-readable representations of output values that have complex types.",
            native::output_type(output)
        ),
    };
    Err(failed(Diagnostic::error("Unsupported value for raw output", detail)))
}
