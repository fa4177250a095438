//! What is said to a command line that is wrong, and to one that asks for help.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::{ContextKind, ErrorKind};
use landform_engine::{Diagnostic, EngineError};

use super::Failure;
use super::diagnostics::diagnostics;
use super::options::Options;

/// Commands of OpenTofu that are not done here.
const FOREIGN_COMMANDS: [&str; 14] = [
    "env",
    "fmt",
    "force-unlock",
    "get",
    "graph",
    "login",
    "logout",
    "metadata",
    "providers",
    "refresh",
    "test",
    "workspace",
    "push",
    "replace-provider",
];

/// Other names and subcommands of `state`, likewise.
const FOREIGN_OF_STATE: [&str; 6] = ["push", "replace-provider", "ls", "remove", "move", "identities"];

/// Flags of OpenTofu's commands that are not done here.
const FOREIGN_FLAGS: [&str; 38] = [
    "allow-missing-config",
    "backup",
    "backup-out",
    "backend-config",
    "cloud",
    "config",
    "consolidate-errors",
    "consolidate-warnings",
    "deprecation",
    "dry-run",
    "exclude",
    "exclude-file",
    "force",
    "force-copy",
    "from-module",
    "generate-config-out",
    "get",
    "get-plugins",
    "id",
    "ignore-remote-version",
    "json",
    "json-into",
    "lock",
    "lock-timeout",
    "lockfile",
    "migrate-state",
    "module-depth",
    "no-tests",
    "plan",
    "plugin-dir",
    "show-sensitive",
    "state",
    "state-out",
    "suppress-forget-errors",
    "target",
    "target-file",
    "test-directory",
    "var",
];

/// A command or a flag that is none of ours, but one of OpenTofu's.
pub fn foreign(error: &clap::Error) -> Option<String> {
    let named = |kind: ContextKind| error.get(kind).map(ToString::to_string);
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let name = named(ContextKind::InvalidSubcommand)?;
            let known = FOREIGN_COMMANDS.contains(&name.as_str()) || FOREIGN_OF_STATE.contains(&name.as_str());
            known.then(|| format!("command {name}"))
        }
        ErrorKind::UnknownArgument => {
            let flag = named(ContextKind::InvalidArg)?;
            let name = flag.strip_prefix("--")?;
            FOREIGN_FLAGS.contains(&name).then(|| format!("flag -{name}"))
        }
        _ => None,
    }
}

/// Says what is wrong with the command line, or the help that it asks for.
pub fn explain(error: &clap::Error, args: &[OsString]) -> ExitCode {
    let words: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).filter(|arg| !arg.starts_with('-')).collect();
    match error.kind() {
        ErrorKind::DisplayHelp => {
            print!("{}", help(&words));
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            print!("{}", help(&words));
            ExitCode::from(if words.is_empty() { 127 } else { 1 })
        }
        ErrorKind::InvalidSubcommand if words.first() == Some(&"state") => {
            print!("{}", help(&words));
            ExitCode::FAILURE
        }
        ErrorKind::InvalidSubcommand => {
            let name = words.first().copied().unwrap_or_default();
            let root = Options::command();
            let known: Vec<&str> =
                root.get_subcommands().map(clap::Command::get_name).chain(FOREIGN_COMMANDS).collect();
            let hint = landform_engine::native::did_you_mean(name, known);
            eprintln!(
                "OpenTofu has no command named {name:?}.{hint}\n\nTo see all of OpenTofu's top-level commands, run:\n  landform tf \
                 -help\n"
            );
            ExitCode::FAILURE
        }
        _ => {
            diagnostics(&[misuse(error, &words)], false, false);
            hint(&words);
            ExitCode::FAILURE
        }
    }
}

/// Where more can be read; the help itself after commands of the older kind.
pub fn hint(words: &[&str]) {
    let command = words.first().copied().unwrap_or_default();
    match command {
        "plan" | "apply" | "destroy" | "validate" | "show" | "output" => {
            eprintln!("\nFor more help on using this command, run:\n  landform tf {command} -help");
        }
        _ => {
            if words.get(1) != Some(&"list") {
                eprintln!();
            }
            print!("{}", help(words));
        }
    }
}

/// What only the engine can tell is wrong with a flag is a mistake of the command line all the same.
pub fn of_flags(failure: Failure) -> Failure {
    match failure {
        Failure::Engine(EngineError::Diagnostics(mut found))
            if found.len() == 1 && found[0].summary.starts_with("Invalid force-replace address") =>
        {
            Failure::Usage(Box::new(found.remove(0)))
        }
        other => other,
    }
}

fn misuse(error: &clap::Error, words: &[&str]) -> Diagnostic {
    let named = |kind: ContextKind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let command = words.first().copied().unwrap_or_default();
    let argument = named(ContextKind::InvalidArg);
    let flag = argument.split([' ', '=', '[']).next().unwrap_or_default().trim_start_matches('-').to_owned();
    let flag = if flag == "variable" { "var".to_owned() } else { flag };
    let value = named(ContextKind::InvalidValue);
    let parse = match command {
        "show" => "Failed to parse command-line options",
        _ => "Failed to parse command-line flags",
    };
    match error.kind() {
        ErrorKind::UnknownArgument if argument.starts_with('-') => {
            Diagnostic::error(parse, format!("flag provided but not defined: -{flag}"))
        }
        ErrorKind::UnknownArgument => match command {
            "plan" | "apply" | "destroy" => {
                let what = if command == "plan" { "plan" } else { "apply" };
                let detail = match command {
                    "plan" => format!("To specify a working directory for the {what}, use the global -chdir flag."),
                    _ => "Expected at most one positional argument.".to_owned(),
                };
                Diagnostic::error("Too many command line arguments", detail)
            }
            _ => counted(words),
        },
        ErrorKind::InvalidValue | ErrorKind::ValueValidation if value.is_empty() => {
            Diagnostic::error(parse, format!("flag needs an argument: -{flag}"))
        }
        ErrorKind::InvalidValue => {
            Diagnostic::error(parse, format!("invalid boolean value {value:?} for -{flag}: parse error"))
        }
        ErrorKind::ValueValidation => {
            Diagnostic::error(parse, format!("invalid value {value:?} for flag -{flag}: parse error"))
        }
        ErrorKind::MissingRequiredArgument => counted(words),
        _ => Diagnostic::error(parse, error.to_string().trim().to_owned()),
    }
}

/// That there are too few or too many arguments.
fn counted(words: &[&str]) -> Diagnostic {
    let invalid = "Invalid number of arguments";
    match words {
        ["taint" | "untaint", ..] => {
            Diagnostic::error("Invalid arguments", format!("The {} command expects exactly one argument.", words[0]))
        }
        ["import", ..] => Diagnostic::error(invalid, "The import command expects two arguments"),
        ["state", "show", ..] => Diagnostic::error(invalid, "Exactly one argument expected"),
        ["state", "rm", ..] => Diagnostic::error(invalid, "At least one address is required"),
        ["state", "mv", ..] => Diagnostic::error(invalid, "Exactly two arguments expected"),
        [command, ..] => Diagnostic::error(
            "Too many command line arguments",
            format!("The {command} command expects no such argument."),
        ),
        [] => Diagnostic::error(invalid, ""),
    }
}

/// The help of a command, or of all of them.
fn help(words: &[&str]) -> String {
    let root = Options::command();
    let (mut command, mut path) = (&root, String::new());
    for word in words {
        let Some(inner) = command.find_subcommand(word) else { break };
        command = inner;
        let _ = write!(path, " {word}");
    }
    let mut out = "Usage: landform tf [global options]".to_owned();
    let below: Vec<&clap::Command> = command.get_subcommands().collect();
    if below.is_empty() {
        let _ = write!(out, "{path} [options]");
        for argument in command.get_positionals() {
            let name = argument.get_id().as_str().to_uppercase();
            let _ = if argument.is_required_set() { write!(out, " {name}") } else { write!(out, " [{name}]") };
        }
    } else {
        let _ = write!(out, "{path} <subcommand> [args]");
    }
    let about = |command: &clap::Command| command.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = write!(out, "\n\n  {}.\n", about(command).trim_end_matches('.'));
    if !below.is_empty() {
        out.push_str("\nCommands:\n");
        for inner in &below {
            let _ = writeln!(out, "  {:<12}  {}", inner.get_name(), about(inner));
        }
    }
    if path.is_empty() {
        out.push_str(
            "\nGlobal options (use these before the subcommand, if any):\n  -chdir=DIR    Work in this folder.\n  -help         Show \
             this help, or that of a command.\n  -version      An alias for the \"version\" subcommand.\n\nWhat is not done here is \
             handed to `tofu`, if there is one.\n",
        );
        return out;
    }
    let mut lines: Vec<(String, String)> = Vec::new();
    for argument in command.get_arguments().filter(|argument| !argument.is_positional()) {
        let text = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let Some(name) = argument.get_long().filter(|name| *name != "help") else { continue };
        let usual = argument.get_default_values().first().and_then(|value| value.to_str());
        let said = |flag: &str, text: &str| (flag.to_owned(), text.to_owned());
        match (name, argument.get_value_names()) {
            ("variable", _) => lines.extend([
                said("-var 'NAME=VALUE'", "Set a variable; may be given several times."),
                said("-var-file=FILE", "Read variables from a file; may be given several times."),
            ]),
            ("no-color", _) => lines.push(said("-no-color", "Write without colours and boxes.")),
            ("state", _) => lines.push(said("-state=FILE", "The state file.")),
            ("json", _) => lines.push(said("-json", "Write JSON.")),
            ("refresh", _) => lines.push(said("-refresh=false", "Do not ask providers how objects are now.")),
            ("input", _) => lines.push(said("-input=false", "Do not ask for what is missing.")),
            ("lock", _) => lines.push(said("-lock=false", "Do not take the state's lock.")),
            (name, Some([value]))
                if argument.get_action().takes_values() && !matches!(usual, Some("true" | "false")) =>
            {
                lines.push((format!("-{name}={value}"), text));
            }
            (name, _) if usual == Some("true") => lines.push((format!("-{name}=false"), text)),
            (name, _) => lines.push((format!("-{name}"), text)),
        }
    }
    if !lines.is_empty() {
        out.push_str("\nOptions:\n\n");
        for (flag, text) in &lines {
            let _ = writeln!(out, "  {flag:<24}  {text}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::help;

    #[test]
    fn help_spells_flags_as_they_are_given() {
        let plan = help(&["plan"]);
        assert!(plan.starts_with("Usage: landform tf [global options] plan [options]\n"), "{plan}");
        for flag in ["\n  -out=FILE", "\n  -var 'NAME=VALUE'", "\n  -refresh=false", "\n  -detailed-exitcode"] {
            assert!(plan.contains(flag), "{plan}");
        }
        assert!(!plan.contains("--") && !plan.contains("exitcode=") && help(&[]).contains("\n  validate "));
        assert!(help(&["state", "mv"]).starts_with("Usage: landform tf [global options] state mv [options] FROM TO"));
    }
}
