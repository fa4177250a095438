//! What people, and programs that read `-json`, are told.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;

use landform_engine::native::{output_text, wrapped};
use landform_engine::{
    Action, Applied, Diagnostic, EngineError, Moment, Output, Plan, Progress, ProgressEvent, Severity, Stage, Work,
};
use serde_json::{Value, json};

use super::Failure;
use super::snippet::snippet;
use super::stream::{self, Totals};

pub fn failure(failure: &Failure, json: bool) {
    match failure {
        Failure::Engine(EngineError::Diagnostics(found)) => diagnostics(found, json, false),
        Failure::Engine(EngineError::Stale(why)) => {
            let detail = format!("The given plan file can no longer be applied because {why}.");
            diagnostics(&[Diagnostic::error("Saved plan is stale", detail)], json, false);
        }
        Failure::Engine(error) if json => stream::diagnostic(&Diagnostic::error(error.to_string(), "")),
        Failure::Other(error) if json => stream::diagnostic(&Diagnostic::error(format!("{error:#}"), "")),
        Failure::Engine(error) => eprintln!("\nError: {error}\n"),
        Failure::Other(error) => eprintln!("\nError: {error:#}\n"),
    }
}

/// Errors and warnings; those of which there are several alike once.
pub fn diagnostics(found: &[Diagnostic], json: bool, compact: bool) {
    if json {
        return found.iter().for_each(stream::diagnostic);
    }
    let mut found: Vec<&Diagnostic> = found.iter().collect();
    found.sort_by_key(|diagnostic| order(diagnostic));
    let told = consolidated(&found);
    if compact && !told.is_empty() && found.iter().all(|diagnostic| !diagnostic.is_error()) {
        return print!("{}", compact_text(&told));
    }
    for (diagnostic, more) in told {
        let mut shown = diagnostic.clone();
        let more = match more {
            0 => None,
            1 => Some("(and one more similar warning elsewhere)".to_owned()),
            more => Some(format!("(and {more} more similar warnings elsewhere)")),
        };
        if let Some(more) = more {
            shown.detail = if shown.detail.is_empty() { more } else { format!("{}\n\n{more}", shown.detail) };
        }
        match shown.severity {
            Severity::Error => eprint!("{}", diagnostic_text(&shown)),
            Severity::Warning => print!("{}", diagnostic_text(&shown)),
        }
    }
}

/// Warnings first; then what has no place, and the rest by where it is.
fn order(diagnostic: &Diagnostic) -> impl Ord + use<> {
    let place = diagnostic.range.as_ref().map(|range| {
        let depth = range.file.matches('/').count();
        (depth, range.file.clone(), range.line, range.column, range.end)
    });
    (diagnostic.is_error(), place)
}

/// Warnings that have a place and the same summary are told once, with how many more there are.
fn consolidated<'a>(found: &[&'a Diagnostic]) -> Vec<(&'a Diagnostic, usize)> {
    let mut told: Vec<(&Diagnostic, usize)> = Vec::new();
    for diagnostic in found {
        let alike = |one: &Diagnostic| {
            !one.is_error() && !diagnostic.is_error() && one.range.is_some() && one.summary == diagnostic.summary
        };
        match told.iter_mut().find(|(one, _)| diagnostic.range.is_some() && alike(one)) {
            Some((one, more)) if !EACH.contains(&one.summary.as_str()) => *more += 1,
            _ => told.push((diagnostic, 0)),
        }
    }
    told
}

/// Each of these is told of.
const EACH: [&str; 2] = ["Check block assertion failed", "Value derived from a deprecated source"];

fn compact_text(told: &[(&Diagnostic, usize)]) -> String {
    let mut text = "\nWarnings:\n\n".to_owned();
    for (warning, more) in told {
        let _ = writeln!(text, "- {}", warning.summary);
        let Some(range) = &warning.range else { continue };
        let more = if *more > 0 { format!(" (and {more} more)") } else { String::new() };
        let _ = writeln!(text, "  on {} line {}{more}", range.file, range.line);
    }
    text + "\nTo see the full warning notes, run OpenTofu without -compact-warnings.\n"
}

/// How many characters of a message fit in a line.
const WIDTH: usize = 77;

pub fn diagnostic_text(diagnostic: &Diagnostic) -> String {
    let kind = match diagnostic.severity {
        Severity::Error => "Error",
        Severity::Warning => "Warning",
    };
    let mut text = format!("\n{kind}: {}\n\n", diagnostic.summary);
    if let Some(address) = diagnostic.address.as_ref().filter(|_| names_its_object(diagnostic)) {
        let _ = writeln!(text, "  with {address},");
    }
    if let Some(range) = &diagnostic.range {
        text.push_str(&snippet(range, &diagnostic.seen));
    }
    if !diagnostic.detail.is_empty() {
        let _ = writeln!(text, "{}", wrapped(&diagnostic.detail, WIDTH));
    }
    text
}

/// OpenTofu names the object of what a provider has found about its arguments, and of nothing else.
pub fn names_its_object(diagnostic: &Diagnostic) -> bool {
    diagnostic.seen.argument.is_some()
}

/// How many objects a plan is about.
pub fn totals(plan: &Plan) -> Totals {
    let mut totals = Totals::default();
    for change in &plan.changes {
        match change.action {
            Action::Create => totals.add += 1,
            Action::Update => totals.change += 1,
            Action::Delete => totals.remove += 1,
            Action::Replace | Action::CreateBeforeDestroy => {
                totals.add += 1;
                totals.remove += 1;
            }
            Action::Forget => totals.forget += 1,
            Action::ForgetThenCreate => {
                totals.add += 1;
                totals.forget += 1;
            }
            Action::NoOp | Action::Read => {}
        }
    }
    let shown = plan.json["resource_changes"].as_array().into_iter().flatten();
    totals.import = shown.filter(|change| change["change"].get("importing").is_some()).count();
    totals
}

pub fn applied(plan: &Plan, applied: &Applied, destroying: bool, watch: &Watch) {
    let planned = totals(plan);
    let done = |action: Action| watch.done.lock().map_or(0, |done| done.iter().filter(|one| **one == action).count());
    let totals = Totals {
        import: planned.import,
        add: done(Action::Create),
        change: done(Action::Update),
        remove: done(Action::Delete),
        forget: plan.changes.iter().filter(|change| change.action == Action::Forget).count(),
    };
    if watch.json {
        return stream::applied(&totals, &outputs_json(&applied.outputs), destroying);
    }
    let Totals { import, add, change, remove, forget } = totals;
    if destroying {
        println!("\nDestroy complete! Resources: {remove} destroyed.");
    } else {
        let imported = if import > 0 { format!("{import} imported, ") } else { String::new() };
        let forgotten = if forget > 0 { format!(", {forget} forgotten") } else { String::new() };
        println!(
            "\nApply complete! Resources: {imported}{add} added, {change} changed, {remove} destroyed{forgotten}."
        );
    }
    if !applied.outputs.is_empty() {
        println!("\nOutputs:\n\n{}", outputs_text(&applied.outputs));
    }
}

pub fn outputs_text(outputs: &BTreeMap<String, Output>) -> String {
    let line = |(name, output): (&String, &Output)| {
        let value = if output.sensitive { "<sensitive>".to_owned() } else { output_text(output) };
        format!("{name} = {value}")
    };
    outputs.iter().map(line).collect::<Vec<_>>().join("\n")
}

pub fn outputs_json(outputs: &BTreeMap<String, Output>) -> Value {
    let shown = |output: &Output| json!({"sensitive": output.sensitive, "type": output.ty, "value": output.value});
    outputs.iter().map(|(name, output)| (name.clone(), shown(output))).collect::<serde_json::Map<_, _>>().into()
}

/// What `validate -json` says.
pub fn validated_json(found: &[Diagnostic]) -> Value {
    let count = |severity: Severity| found.iter().filter(|one| one.severity == severity).count();
    json!({
        "format_version": "1.0",
        "valid": count(Severity::Error) == 0,
        "error_count": count(Severity::Error),
        "warning_count": count(Severity::Warning),
        "diagnostics": found.iter().map(stream::diagnostic_json).collect::<Vec<_>>(),
    })
}

/// Tells what happens while it happens.
pub struct Watch {
    pub json: bool,
    /// The command is `import`, which has words of its own for what it takes over.
    importing: bool,
    /// What was done to objects; what turned out to be nothing is not among it.
    done: Mutex<Vec<Action>>,
}

impl Watch {
    pub fn new(json: bool) -> Watch {
        Watch { json, importing: false, done: Mutex::default() }
    }

    pub fn of_import() -> Watch {
        Watch { importing: true, ..Watch::new(false) }
    }
}

impl Progress for Watch {
    fn report(&self, event: ProgressEvent) {
        match event {
            ProgressEvent::Object { .. } => {}
            ProgressEvent::Note { text } if !self.json => println!("{text}"),
            ProgressEvent::Note { .. } => {}
            ProgressEvent::Diagnostic { diagnostic } => diagnostics(&[diagnostic], self.json, false),
        }
    }

    fn tell(&self, moment: &Moment<'_>) {
        if let (Work::Change(action), Stage::Done, Ok(mut done)) = (moment.work, moment.stage, self.done.lock()) {
            done.push(action);
        }
        if self.json {
            return stream::moment(moment);
        }
        if self.importing && moment.work == Work::Find {
            let address = moment.address;
            return match moment.stage {
                Stage::Done => {
                    println!("{address}: Import prepared!\n  Prepared {} for import", address.type_name);
                }
                _ => println!("{address}: Importing from ID {:?}...", moment.id.1),
            };
        }
        let text = match (moment.work, moment.stage) {
            (Work::Refresh, Stage::Started) => "Refreshing state...".to_owned(),
            (Work::Find, Stage::Started) => "Preparing import...".to_owned(),
            (Work::Import, Stage::Started) => "Importing...".to_owned(),
            (Work::Import, Stage::Done) => "Import complete".to_owned(),
            (Work::Change(action), Stage::Started) => match action {
                Action::Delete => "Destroying...".to_owned(),
                Action::Update => "Modifying...".to_owned(),
                Action::Read => "Reading...".to_owned(),
                _ => "Creating...".to_owned(),
            },
            (Work::Change(action), Stage::Done) => {
                let done = match action {
                    Action::Delete => "Destruction",
                    Action::Update => "Modifications",
                    Action::Read => "Read",
                    _ => "Creation",
                };
                format!("{done} complete after {}", duration(moment.millis))
            }
            _ => return,
        };
        let deposed = moment.deposed.map(|key| format!(" (deposed object {key})")).unwrap_or_default();
        println!("{}{deposed}: {text}{}", moment.address, id(moment));
    }
}

/// ` [id=…]`, if there is one.
pub fn id(moment: &Moment<'_>) -> String {
    match &moment.id {
        (_, value) if value.is_empty() => String::new(),
        (name, value) => format!(" [{name}={value}]"),
    }
}

/// In whole seconds: `0s`, `1m5s`.
pub fn duration(millis: u64) -> String {
    let seconds = millis / 1000;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}s"),
        (hours, minutes, seconds) => format!("{hours}h{minutes}m{seconds}s"),
    }
}
