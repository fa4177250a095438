//! What is written on: a terminal of some width, or nothing that is known. As in OpenTofu, only `-no-color` takes the colours
//! and boxes away; a pipe gets them, too.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::sync::OnceLock;

use landform_engine::native::{Ink, Sheet};

/// Of the process, because there is one for all that is written, wherever in the program it is.
static INK: OnceLock<Ink> = OnceLock::new();

/// Whether an empty line follows each message.
static APART: OnceLock<bool> = OnceLock::new();

/// Reads it from the arguments: commands of the older kind set their messages apart.
pub fn choose_spacing(args: &[OsString]) {
    let mut words = args.iter().filter_map(|arg| arg.to_str()).filter(|arg| !arg.starts_with('-'));
    let apart = match words.next() {
        Some("console" | "import" | "init" | "taint" | "untaint" | "version") => true,
        Some("state") => words.next().is_some_and(|word| matches!(word, "mv" | "pull" | "rm" | "show")),
        _ => false,
    };
    let _ = APART.set(apart);
}

pub fn sets_apart() -> bool {
    APART.get().copied().unwrap_or_default()
}

/// Reads it from the arguments, even from those that turn out to be wrong.
pub fn choose_ink(args: &[OsString]) {
    let plain = |arg: &OsString| {
        matches!(arg.to_str(), Some("-no-color" | "--no-color" | "-no-color=true" | "--no-color=true"))
    };
    let _ = INK.set(if args.iter().any(plain) { Ink::Plain } else { Ink::Coloured });
}

pub fn ink() -> Ink {
    INK.get().copied().unwrap_or_default()
}

/// The standard output.
pub fn sheet() -> Sheet {
    on(std::io::stdout())
}

/// The standard error.
pub fn error_sheet() -> Sheet {
    on(std::io::stderr())
}

fn on(stream: impl AsFd) -> Sheet {
    let usual = Sheet { ink: ink(), ..Sheet::default() };
    match rustix::termios::tcgetwinsize(stream) {
        Ok(size) if size.ws_col > 0 => Sheet { columns: usize::from(size.ws_col), ..usual },
        _ => usual,
    }
}
