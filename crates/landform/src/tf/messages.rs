//! What people, and programs that read `-json`, are told.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use landform_engine::native::value_text;
use landform_engine::{
    Action, Applied, Diagnostic, EngineError, Output, Plan, Progress, ProgressEvent, Severity, Stage,
};
use serde_json::{Value, json};

use super::Failure;
use super::snippet::snippet;

pub fn failure(failure: &Failure) {
    match failure {
        Failure::Engine(EngineError::Diagnostics(diagnostics)) => {
            diagnostics.iter().for_each(|diagnostic| eprint!("{}", diagnostic_text(diagnostic)));
        }
        Failure::Engine(error) => eprintln!("\nError: {error}\n"),
        Failure::Other(error) => eprintln!("\nError: {error:#}\n"),
    }
}

pub fn diagnostic_text(diagnostic: &Diagnostic) -> String {
    let kind = match diagnostic.severity {
        Severity::Error => "Error",
        Severity::Warning => "Warning",
    };
    let mut text = format!("\n{kind}: {}\n", diagnostic.summary);
    if let Some(address) = &diagnostic.address {
        let _ = write!(text, "\n  with {address},");
    }
    if let Some(range) = &diagnostic.range {
        text.push_str(&snippet(range));
    } else if diagnostic.address.is_some() {
        text.push('\n');
    }
    if !diagnostic.detail.is_empty() {
        let _ = writeln!(text, "\n{}", diagnostic.detail);
    }
    text
}

/// Counts of what an apply did.
#[derive(Default)]
struct Counts {
    added: usize,
    changed: usize,
    destroyed: usize,
    forgotten: usize,
}

impl Counts {
    fn of(actions: impl Iterator<Item = Action>) -> Counts {
        actions.fold(Counts::default(), |mut counts, action| {
            match action {
                Action::Create => counts.added += 1,
                Action::Update => counts.changed += 1,
                Action::Delete => counts.destroyed += 1,
                Action::Replace | Action::CreateBeforeDestroy => {
                    counts.added += 1;
                    counts.destroyed += 1;
                }
                Action::Forget => counts.forgotten += 1,
                Action::ForgetThenCreate => {
                    counts.added += 1;
                    counts.forgotten += 1;
                }
                Action::NoOp | Action::Read => {}
            }
            counts
        })
    }
}

pub fn applied(plan: &Plan, applied: &Applied, destroying: bool, json: bool) {
    let counts = Counts::of(plan.changes.iter().map(|change| change.action));
    let Counts { added, changed, destroyed, forgotten } = counts;
    if json {
        let operation = if destroying { "destroy" } else { "apply" };
        emit(json!({
            "type": "change_summary",
            "changes": {
                "add": added, "change": changed, "remove": destroyed, "forget": forgotten, "operation": operation,
            },
        }));
        emit(json!({ "type": "outputs", "outputs": outputs_json(&applied.outputs) }));
        return;
    }
    if destroying {
        println!("\nDestroy complete! Resources: {destroyed} destroyed.");
    } else {
        let forgotten = if forgotten > 0 { format!(", {forgotten} forgotten") } else { String::new() };
        println!("\nApply complete! Resources: {added} added, {changed} changed, {destroyed} destroyed{forgotten}.");
    }
    if !applied.outputs.is_empty() {
        println!("\nOutputs:\n\n{}", outputs_text(&applied.outputs));
    }
}

pub fn outputs_text(outputs: &BTreeMap<String, Output>) -> String {
    let line = |(name, output): (&String, &Output)| {
        let value = if output.sensitive { "<sensitive>".to_owned() } else { value_text(&output.value, 0) };
        format!("{name} = {value}")
    };
    outputs.iter().map(line).collect::<Vec<_>>().join("\n")
}

pub fn outputs_json(outputs: &BTreeMap<String, Output>) -> Value {
    let shown = |output: &Output| json!({"sensitive": output.sensitive, "type": output.ty, "value": output.value});
    outputs.iter().map(|(name, output)| (name.clone(), shown(output))).collect::<serde_json::Map<_, _>>().into()
}

pub fn planned_json(plan: &Plan) {
    let summary = Counts::of(plan.changes.iter().map(|change| change.action));
    for change in &plan.changes {
        emit(json!({
            "type": "planned_change",
            "change": {"resource": {"addr": change.address}, "action": change.action},
        }));
    }
    emit(json!({
        "type": "change_summary",
        "changes": {
            "add": summary.added, "change": summary.changed, "remove": summary.destroyed, "forget": summary.forgotten,
            "operation": "plan",
        },
    }));
}

/// What `validate -json` says.
pub fn validated_json(found: &[Diagnostic]) -> Value {
    let count = |severity: Severity| found.iter().filter(|one| one.severity == severity).count();
    json!({
        "format_version": "1.0",
        "valid": count(Severity::Error) == 0,
        "error_count": count(Severity::Error),
        "warning_count": count(Severity::Warning),
        "diagnostics": found,
    })
}

pub fn emit(mut event: Value) {
    event["@level"] = json!("info");
    event["@module"] = json!("landform.tf");
    println!("{event}");
}

/// Tells what happens while it happens.
pub struct Watch {
    pub json: bool,
}

impl Progress for Watch {
    fn report(&self, event: ProgressEvent) {
        match event {
            ProgressEvent::Object { address, action, stage, millis } if stage != Stage::Planned => {
                if self.json {
                    let kind = match stage {
                        Stage::Started => "apply_start",
                        Stage::Done => "apply_complete",
                        Stage::Planned | Stage::Failed => "apply_errored",
                    };
                    emit(json!({ "type": kind, "hook": {"resource": {"addr": address}, "action": action} }));
                    return;
                }
                let (doing, done) = match action {
                    Action::Delete => ("Destroying", "Destruction"),
                    Action::Update => ("Modifying", "Modifications"),
                    Action::Replace => ("Replacing", "Replacement"),
                    _ => ("Creating", "Creation"),
                };
                match stage {
                    Stage::Started => println!("{address}: {doing}..."),
                    Stage::Done => println!("{address}: {done} complete after {}s", millis.unwrap_or(0) / 1000),
                    Stage::Planned | Stage::Failed => {}
                }
            }
            ProgressEvent::Object { .. } => {}
            ProgressEvent::Note { text } if !self.json => println!("{text}"),
            ProgressEvent::Note { .. } => {}
            ProgressEvent::Diagnostic { diagnostic } => print!("{}", diagnostic_text(&diagnostic)),
        }
    }
}
