//! The command line, spelled as OpenTofu spells it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use landform_engine::native::VariableFlag;
use landform_engine::{Diagnostic, EngineError};

use super::Failure;
use super::state_file::Locking;

#[derive(Parser, Debug)]
#[command(name = "landform tf", bin_name = "landform tf", about = "The commands of OpenTofu, by the native engine")]
#[command(disable_help_subcommand = true)]
pub struct Options {
    /// Work in this folder.
    #[arg(long, value_name = "DIR")]
    pub chdir: Option<PathBuf>,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Find the providers that the folder needs, and write the lock file.
    Init(InitOptions),
    /// Show what an apply would change.
    Plan(PlanOptions),
    /// Change the world as the configuration, or a saved plan, wants it.
    Apply(ApplyOptions),
    /// Destroy everything that the state knows.
    Destroy(ApplyOptions),
    /// Show a state or a saved plan.
    Show(ShowOptions),
    /// Show output values.
    Output(OutputOptions),
    /// Try out expressions, one a line.
    Console(ConsoleOptions),
    /// Take over an object that exists already.
    Import(ImportOptions),
    /// Say whether the configuration is sound, whatever the inputs are.
    Validate(ValidateOptions),
    /// Have the next plan replace an object.
    Taint(TaintOptions),
    /// Have the next plan leave an object where it is, although it was to be replaced.
    Untaint(TaintOptions),
    /// Say which version this is.
    Version(VersionOptions),
    /// Look at the state, or change what it calls things.
    State(StateOptions),
}

#[derive(Args, Debug)]
pub struct InitOptions {
    /// Choose the newest versions that are allowed, whatever the lock file says.
    #[arg(long)]
    pub upgrade: bool,
    /// Accepted; a folder with a backend is left to OpenTofu.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub backend: bool,
    /// Accepted, likewise.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub reconfigure: bool,
    /// Accepted; nothing is asked.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub input: bool,
    /// The lock file stays as it is: what would change it is a failure.
    #[arg(long, value_name = "readonly")]
    pub lockfile: Option<LockMode>,
    #[arg(long)]
    pub no_color: bool,
}

/// What becomes of the lock file.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum LockMode {
    Readonly,
}

#[derive(Args, Debug)]
pub struct ConsoleOptions {
    #[arg(long = "variable", value_name = "NAME=VALUE", hide = true)]
    pub variables: Vec<String>,
    #[arg(long, value_name = "FILE", default_value = "terraform.tfstate")]
    pub state: PathBuf,
    #[arg(long)]
    pub no_color: bool,
}

#[derive(Args, Debug)]
pub struct ImportOptions {
    #[command(flatten)]
    pub common: Common,
    pub address: String,
    pub id: String,
}

#[derive(Args, Debug)]
pub struct TaintOptions {
    /// An object that is not there is no failure.
    #[arg(long)]
    pub allow_missing: bool,
    #[arg(long, value_name = "FILE", default_value = "terraform.tfstate")]
    pub state: PathBuf,
    /// Take the state's lock.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub lock: bool,
    /// How long to wait for the lock, such as 30s or 5m.
    #[arg(long, value_name = "DURATION", default_value = "0s")]
    pub lock_timeout: String,
    #[arg(long)]
    pub no_color: bool,
    pub address: String,
}

impl TaintOptions {
    pub fn locking(&self) -> Result<Locking, Failure> {
        locking(self.lock, &self.lock_timeout)
    }
}

#[derive(Args, Debug)]
pub struct ValidateOptions {
    #[arg(long)]
    pub json: bool,
    #[arg(long)]
    pub no_color: bool,
}

#[derive(Args, Debug)]
pub struct VersionOptions {
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct StateOptions {
    #[command(subcommand)]
    pub command: StateCommand,
}

#[derive(Subcommand, Debug)]
pub enum StateCommand {
    /// List the objects: all, or those at or below the given addresses.
    List {
        #[arg(long, value_name = "FILE", default_value = "terraform.tfstate")]
        state: PathBuf,
        #[arg(long)]
        no_color: bool,
        /// Only objects with this id.
        #[arg(long)]
        id: Option<String>,
        addresses: Vec<String>,
    },
    /// Show one object.
    Show {
        #[arg(long, value_name = "FILE", default_value = "terraform.tfstate")]
        state: PathBuf,
        #[arg(long)]
        no_color: bool,
        address: String,
    },
    /// Write the whole state to the standard output.
    Pull {
        #[arg(long, value_name = "FILE", default_value = "terraform.tfstate")]
        state: PathBuf,
    },
    /// Forget objects; they go on to exist.
    Rm {
        #[arg(long, value_name = "FILE", default_value = "terraform.tfstate")]
        state: PathBuf,
        #[arg(long)]
        no_color: bool,
        /// Only say what would be forgotten.
        #[arg(long)]
        dry_run: bool,
        #[arg(required = true)]
        addresses: Vec<String>,
    },
    /// Give an object, a resource or a module another address.
    Mv {
        #[arg(long, value_name = "FILE", default_value = "terraform.tfstate")]
        state: PathBuf,
        #[arg(long)]
        no_color: bool,
        /// Only say what would move.
        #[arg(long)]
        dry_run: bool,
        from: String,
        to: String,
    },
}

#[derive(Args, Debug, Clone)]
pub struct Common {
    /// Set a variable, `-var NAME=VALUE`, or read some from a file, `-var-file FILE`; the last one counts.
    ///
    /// Both are read here, because clap does not keep the order between two flags.
    #[arg(long = "variable", value_name = "NAME=VALUE", hide = true)]
    pub variables: Vec<String>,
    /// Plan to destroy everything.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub destroy: bool,
    /// Ask providers how objects are now.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub refresh: bool,
    /// Only bring the state up to date.
    #[arg(long)]
    pub refresh_only: bool,
    /// Replace this object even if nothing about it changed.
    #[arg(long = "replace", value_name = "ADDRESS")]
    pub replace: Vec<String>,
    /// The state file.
    #[arg(long, value_name = "FILE", default_value = "terraform.tfstate")]
    pub state: PathBuf,
    /// Ask for what is missing.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub input: bool,
    /// Write JSON, one event a line.
    #[arg(long)]
    pub json: bool,
    /// Without colours and boxes.
    #[arg(long)]
    pub no_color: bool,
    /// How many objects are worked on at one time.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub parallelism: usize,
    /// Take the state's lock.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub lock: bool,
    /// How long to wait for the lock, such as 30s or 5m.
    #[arg(long, value_name = "DURATION", default_value = "0s")]
    pub lock_timeout: String,
    /// Show warnings as a list of their summaries.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub compact_warnings: bool,
    /// Accepted; nothing is said about objects that are only read.
    #[arg(long)]
    pub concise: bool,
}

impl Default for Common {
    fn default() -> Common {
        Common {
            variables: Vec::new(),
            destroy: false,
            refresh: true,
            refresh_only: false,
            replace: Vec::new(),
            state: PathBuf::from("terraform.tfstate"),
            input: true,
            json: false,
            no_color: false,
            parallelism: 10,
            lock: true,
            lock_timeout: "0s".to_owned(),
            compact_warnings: false,
            concise: false,
        }
    }
}

#[derive(Args, Debug)]
pub struct PlanOptions {
    #[command(flatten)]
    pub common: Common,
    /// Save the plan.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Exit with 2 if there is something to change.
    #[arg(long)]
    pub detailed_exitcode: bool,
}

#[derive(Args, Debug)]
pub struct ApplyOptions {
    #[command(flatten)]
    pub common: Common,
    /// Do not ask before changing anything.
    #[arg(long)]
    pub auto_approve: bool,
    /// A saved plan.
    pub plan: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct ShowOptions {
    #[arg(long)]
    pub json: bool,
    #[arg(long)]
    pub no_color: bool,
    /// A saved plan; the state if there is none.
    pub plan: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct OutputOptions {
    #[arg(long)]
    pub json: bool,
    /// The bare text of one output.
    #[arg(long)]
    pub raw: bool,
    #[arg(long)]
    pub no_color: bool,
    #[arg(long, value_name = "FILE", default_value = "terraform.tfstate")]
    pub state: PathBuf,
    pub name: Option<String>,
}

impl Common {
    pub fn locking(&self) -> Result<Locking, Failure> {
        locking(self.lock, &self.lock_timeout)
    }

    pub fn variable_flags(&self) -> Result<Vec<VariableFlag>, EngineError> {
        let read = |flag: &String| match flag.split_once(':') {
            Some(("file", path)) => Ok(VariableFlag::File(PathBuf::from(path))),
            Some((_, assignment)) => match assignment.split_once('=') {
                Some((name, value)) if name.ends_with(' ') => {
                    let detail = format!(
                        "Variable name {name:?} is invalid due to trailing space. Did you mean -var=\"{}={}\"?",
                        name.trim_end_matches(' '),
                        value.trim_start_matches(' ')
                    );
                    Err(EngineError::Diagnostics(vec![Diagnostic::error("Invalid -var option", detail)]))
                }
                Some((name, value)) => Ok(VariableFlag::Var { name: name.to_owned(), value: value.to_owned() }),
                None => {
                    let detail = format!(
                        "The given -var option {assignment:?} is not correctly specified. Must be a variable name and value \
                         separated by an equals sign, like -var=\"key=value\"."
                    );
                    Err(EngineError::Diagnostics(vec![Diagnostic::error("Invalid -var option", detail)]))
                }
            },
            None => Ok(VariableFlag::Var { name: flag.clone(), value: String::new() }),
        };
        self.variables.iter().map(read).collect()
    }
}

fn locking(lock: bool, timeout: &str) -> Result<Locking, Failure> {
    let wait = go_duration(timeout).ok_or_else(|| {
        let detail = format!("invalid value {timeout:?} for flag -lock-timeout: parse error");
        Failure::Usage(Box::new(Diagnostic::error("Failed to parse command-line flags", detail)))
    })?;
    Ok(if lock { Locking::Within(wait) } else { Locking::Without })
}

/// `90s`, `1m30s`, `500ms`, `1.5h`.
fn go_duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let unit = rest.find(|character: char| character.is_ascii_alphabetic())?;
        let end =
            rest[unit..].find(|character: char| !character.is_ascii_alphabetic()).map_or(rest.len(), |at| unit + at);
        let seconds = match &rest[unit..end] {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 0.001,
            _ => return None,
        };
        let number: f64 = rest[..unit].parse().ok()?;
        total += Duration::try_from_secs_f64(number * seconds).ok()?;
        rest = &rest[end..];
    }
    Some(total)
}

impl Options {
    /// Whether what happens is told in lines of JSON.
    pub fn streams_json(&self) -> bool {
        match &self.command {
            Command::Plan(plan) => plan.common.json,
            Command::Apply(apply) | Command::Destroy(apply) => apply.common.json,
            _ => false,
        }
    }

    pub fn read(args: Vec<OsString>) -> Result<Options, clap::Error> {
        let program = OsString::from("landform tf");
        Options::try_parse_from(std::iter::once(program).chain(with_double_dashes(args)))
    }
}

/// OpenTofu's flags have one dash, clap wants two. `-var` and `-var-file` become one flag, so that their order stays.
fn with_double_dashes(args: Vec<OsString>) -> Vec<OsString> {
    let mut args = args.into_iter();
    let mut read = Vec::new();
    while let Some(arg) = args.next() {
        let Some(text) = arg.to_str().filter(|text| text.starts_with('-') && text.len() > 1 && *text != "-h") else {
            read.push(arg);
            continue;
        };
        let (name, value) = match text.trim_start_matches('-').split_once('=') {
            Some((name, value)) => (name, Some(OsString::from(value))),
            None => (text.trim_start_matches('-'), None),
        };
        // An empty name of a file is none.
        if name == "out" && value.as_ref().is_some_and(|value| value.is_empty()) {
            continue;
        }
        let takes_value =
            matches!(name, "var" | "var-file" | "out" | "state" | "replace" | "chdir" | "parallelism" | "lock-timeout");
        let value = if value.is_none() && takes_value { args.next() } else { value };
        if value.is_none() && takes_value {
            // That there should be one is said with all else that is wrong.
            read.push(OsString::from(if name.starts_with("var") {
                "--variable".to_owned()
            } else {
                format!("--{name}")
            }));
            continue;
        }
        let mut flag = OsString::from(match name {
            "var" => "--variable=value:".to_owned(),
            "var-file" => "--variable=file:".to_owned(),
            name if value.is_some() => format!("--{name}="),
            name => format!("--{name}"),
        });
        flag.push(value.unwrap_or_default());
        read.push(flag);
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Options {
        Options::read(args.iter().map(OsString::from).collect()).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn flags_are_spelled_as_opentofu_spells_them() {
        let options = read(&[
            "-chdir=x",
            "plan",
            "-var",
            "a=-b",
            "-var-file=f",
            "-var=c=d",
            "-refresh=false",
            "-out",
            "p",
            "-detailed-exitcode",
        ]);
        assert_eq!(options.chdir, Some(PathBuf::from("x")));
        let Command::Plan(plan) = options.command else { panic!("not a plan") };
        assert_eq!(plan.common.variables, ["value:a=-b", "file:f", "value:c=d"]);
        assert!(!plan.common.refresh && plan.common.input && plan.detailed_exitcode && !plan.common.destroy);
        let Command::Apply(apply) = read(&["apply", "-auto-approve", "-destroy", "-input=false"]).command else {
            panic!("not an apply")
        };
        assert!(apply.auto_approve && apply.common.destroy && !apply.common.input);
    }

    #[test]
    fn durations_are_written_as_in_go() {
        assert_eq!(go_duration("1m30s"), Some(Duration::from_secs(90)));
        assert_eq!(go_duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!((go_duration("5"), go_duration("x")), (None, None));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        assert!(Options::read(vec!["plan".into(), "-out".into()]).is_err());
        assert!(Options::read(vec!["plan".into(), "-frobnicate".into()]).is_err());
        let foreign = |args: &[&str]| {
            let error = Options::read(args.iter().map(OsString::from).collect()).unwrap_err();
            super::super::usage::foreign(&error)
        };
        assert_eq!(foreign(&["plan", "-target=a.b"]).as_deref(), Some("flag -target"));
        assert_eq!(foreign(&["workspace", "list"]).as_deref(), Some("command workspace"));
        assert_eq!(foreign(&["import"]), None);
    }
}
