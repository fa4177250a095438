//! Questions to whoever runs a command, in OpenTofu's words.

use std::io::{Read, Write};
use std::path::Path;

use landform_engine::native::{self, VariableFlag};
use landform_engine::{Diagnostic, EngineError, Mode};

use super::Failure;
use super::options::Common;
use super::screen;

/// Asks, and waits for a line. `None`: there is nobody to answer any more.
///
/// Like OpenTofu, each question takes what is there to read and keeps its first line alone: a script that sends several answers
/// at once has sent one.
fn answer(query: &str, description: &str) -> std::io::Result<Option<String>> {
    let ink = screen::ink();
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}{query}{}", ink.codes("[reset][bold]"), ink.codes("[reset]"))?;
    if !description.is_empty() {
        description.lines().try_for_each(|line| writeln!(out, "  {line}"))?;
        writeln!(out)?;
    }
    write!(out, "  {}Enter a value:{} {}", ink.codes("[bold]"), ink.codes("[reset]"), ink.codes("[reset]"))?;
    out.flush()?;
    let (mut read, mut piece) = (Vec::new(), [0; 4096]);
    while !read.contains(&b'\n') {
        match std::io::stdin().lock().read(&mut piece)? {
            0 => return Ok(None),
            length => read.extend_from_slice(&piece[..length]),
        }
    }
    writeln!(out)?;
    let text = String::from_utf8_lossy(&read);
    Ok(text.lines().next().map(|line| line.trim_end_matches('\r').to_owned()))
}

/// Whether anybody is to be asked for the values of variables.
fn asks(common: &Common) -> bool {
    let off = |value: String| matches!(value.as_str(), "0" | "false");
    common.input && !common.json && !std::env::var("TF_INPUT").is_ok_and(off)
}

/// Values for variables that nothing gives a value, as flags would give them. Whoever does not answer is told what is
/// missing later.
pub fn variables(folder: &Path, common: &Common, mut flags: Vec<VariableFlag>) -> Result<Vec<VariableFlag>, Failure> {
    if !asks(common) {
        return Ok(flags);
    }
    for missing in native::missing_variables(folder, &flags)? {
        let kind = if missing.ephemeral { " (ephemeral)" } else { "" };
        if let Some(value) = answer(&format!("var.{}{kind}", missing.name), &missing.description)? {
            flags.push(VariableFlag::Var { name: missing.name, value });
        }
    }
    Ok(flags)
}

/// Whether a plan is to be carried out.
pub fn approval(mode: Mode) -> Result<bool, Failure> {
    let (query, description) = match mode {
        Mode::Normal => (
            "Do you want to perform these actions?",
            "OpenTofu will perform the actions described above.\nOnly 'yes' will be accepted to approve.",
        ),
        Mode::Destroy => (
            "Do you really want to destroy all resources?",
            "OpenTofu will destroy all your managed infrastructure, as shown above.\nThere is no undo. Only 'yes' will be \
             accepted to confirm.",
        ),
        Mode::RefreshOnly => (
            "Would you like to update the OpenTofu state to reflect these detected changes?",
            "OpenTofu will write these changes to the state without modifying any real infrastructure.\nThere is no undo. Only \
             'yes' will be accepted to confirm.",
        ),
    };
    match answer(&format!("\n{query}"), description)? {
        Some(answer) if answer == "yes" => Ok(true),
        Some(_) => {
            let what = if mode == Mode::Destroy { "Destroy" } else { "Apply" };
            println!("{what} cancelled.");
            Ok(false)
        }
        None => {
            let problem = Diagnostic::error("error asking for approval: EOF", "");
            Err(EngineError::Diagnostics(vec![problem]).into())
        }
    }
}
