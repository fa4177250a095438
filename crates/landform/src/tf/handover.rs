//! What the native engine leaves alone is done by the real `tofu`, in the same folder and with the same words.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use landform_engine::Unsupported;

/// Which engine the user wants.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The native engine where it can, and `tofu` otherwise.
    Auto,
    /// The native engine or nothing.
    Native,
    /// Always `tofu`.
    Cli,
}

impl Wanted {
    /// `LANDFORM_ENGINE`, in the words of a deployment's `engine`.
    pub fn of_environment() -> Result<Wanted, String> {
        match std::env::var("LANDFORM_ENGINE").as_deref() {
            Err(_) | Ok("" | "auto") => Ok(Wanted::Auto),
            Ok("native") => Ok(Wanted::Native),
            Ok("cli") => Ok(Wanted::Cli),
            Ok(other) => Err(format!("LANDFORM_ENGINE is auto, native or cli, not {other:?}")),
        }
    }
}

/// The exit code that says: this folder, or this command, is for OpenTofu.
const UNSUPPORTED: u8 = 3;

/// Goes on as `tofu`, or says why nothing was done. What has been read so far was not changed.
pub fn hand_over(wanted: Wanted, reasons: &[Unsupported], args: &[OsString]) -> ExitCode {
    let tofu = crate::serve::in_path("tofu").filter(|_| wanted != Wanted::Native);
    match tofu {
        Some(tofu) => {
            if wanted == Wanted::Auto {
                eprintln!("landform: this is left to {}:\n{}", tofu.display(), list(reasons));
            }
            become_tofu(tofu, args)
        }
        None => {
            eprintln!(
                "\nError: Outside of what the native engine does exactly as OpenTofu\n\n{}\nNothing was changed. OpenTofu \
                 itself can run this.",
                list(reasons)
            );
            ExitCode::from(UNSUPPORTED)
        }
    }
}

fn become_tofu(tofu: PathBuf, args: &[OsString]) -> ExitCode {
    let error = Command::new(&tofu).args(args).exec();
    eprintln!("\nError: {} cannot be run: {error}\n", tofu.display());
    ExitCode::FAILURE
}

fn list(reasons: &[Unsupported]) -> String {
    let line = |reason: &Unsupported| {
        let place = reason.range.as_ref().map(|range| format!(" ({}:{})", range.file, range.line));
        format!("  - {}{}\n", reason.construct, place.unwrap_or_default())
    };
    reasons.iter().map(line).collect()
}
