//! What people, and programs that read `-json`, are told.

use std::collections::BTreeMap;
use std::sync::Mutex;

use landform_engine::native::output_text;
use landform_engine::{
    Action, Applied, Diagnostic, Moment, Output, Plan, Progress, ProgressEvent, Severity, Stage, Work,
};
use serde_json::{Value, json};

use super::diagnostics::diagnostics;
use super::screen;
use super::stream::{self, Totals};

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
    let ink = screen::ink();
    let done = if destroying {
        format!("Destroy complete! Resources: {remove} destroyed.")
    } else {
        let imported = if import > 0 { format!("{import} imported, ") } else { String::new() };
        let forgotten = if forget > 0 { format!(", {forget} forgotten") } else { String::new() };
        format!("Apply complete! Resources: {imported}{add} added, {change} changed, {remove} destroyed{forgotten}.")
    };
    print!("{}", ink.say(&format!("[reset][bold][green]\n{done}\n")));
    if !applied.outputs.is_empty() {
        println!("{}{}", ink.say("[reset][bold][green]\nOutputs:\n\n"), outputs_text(&applied.outputs));
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
        let ink = screen::ink();
        // As it is, whatever brackets an id has.
        let say = |text: &str, end: &str| {
            println!("{}{text}{}", ink.codes("[reset][bold]"), ink.codes(&format!("{end}[reset]")));
        };
        if self.importing && moment.work == Work::Find {
            let address = moment.address;
            return match moment.stage {
                Stage::Done => {
                    println!("{}", ink.say(&format!("[reset][bold][green]{address}: Import prepared!")));
                    println!("{}", ink.say(&format!("[reset][green]  Prepared {} for import", address.type_name)));
                }
                _ => say(&format!("{address}: Importing from ID {:?}...", moment.id.1), ""),
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
        // Of what begins, OpenTofu says twice that it is over.
        let end = match (moment.work, moment.stage) {
            (Work::Change(_), Stage::Started) => "[reset]",
            _ => "",
        };
        say(&format!("{}{deposed}: {text}{}", moment.address, id(moment)), end);
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
