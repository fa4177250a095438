//! How results look: for people by default, as JSON for programs.

use landform_api::{Event, EventBody, Outputs, Run};
use landform_engine::{Action, Diagnostic, ProgressEvent, Severity, Stage};
use serde::Serialize;

/// One JSON document on standard output.
pub fn json(value: &impl Serialize) {
    println!("{}", serde_json::to_string_pretty(value).expect("wire types are plain data"));
}

/// What was done, where there is nothing else to tell.
pub fn done(what: &str, as_json: bool) {
    match as_json {
        true => json(&serde_json::json!({ "done": what })),
        false => println!("{what}"),
    }
}

/// One JSON document on a line of its own.
pub fn json_line(value: &impl Serialize) {
    println!("{}", serde_json::to_string(value).expect("wire types are plain data"));
}

/// Columns as wide as their widest cell.
pub fn table(heads: &[&str], rows: Vec<Vec<String>>) {
    let widths: Vec<usize> = (0..heads.len())
        .map(|column| {
            rows.iter().map(|row| row[column].chars().count()).chain([heads[column].len()]).max().unwrap_or(0)
        })
        .collect();
    let line = |cells: Vec<&str>| {
        let padded: Vec<String> =
            cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}", width = *width)).collect();
        println!("{}", padded.join("  ").trim_end());
    };
    line(heads.to_vec());
    for row in &rows {
        line(row.iter().map(String::as_str).collect());
    }
}

pub fn outputs(outputs: &Outputs) {
    for (name, output) in &outputs.0 {
        println!("{name} = {}", output.value);
    }
}

pub fn run(run: &Run) {
    println!("run         {}", run.id);
    println!("deployment  {}/{}", run.tenant, run.deployment);
    println!("kind        {}, generation {}", kind(run), run.generation);
    println!("status      {}", status(run));
    if let Some(engine) = run.engine {
        println!("engine      {engine}");
    }
    println!("created     {}", run.created_at);
    if let Some(ended) = run.ended_at {
        println!("ended       {ended}");
    }
    if let Some(plan) = &run.plan {
        let (c, u, r, d) = (plan.creates, plan.updates, plan.replaces, plan.deletes);
        let forgets = if plan.forgets > 0 { format!(", {} to forget", plan.forgets) } else { String::new() };
        println!("plan        {c} to create, {u} to change, {r} to replace, {d} to destroy{forgets}");
        for change in &plan.changes {
            println!("            {} {}", change.action, change.address);
        }
    }
    for doubt in &run.doubts {
        println!("in doubt    {}", doubt.address);
    }
    if let Some(doubt) = run.doubts.first() {
        println!(
            "answer with landform run recover {} --adopt '{1}=ID', --absent '{1}' or --retry '{1}'",
            run.id, doubt.address
        );
    }
    if let Some(rejection) = &run.rejected {
        println!("rejected    {}: {}", rejection.by, rejection.reason);
    }
    if let Some(problem) = &run.problem {
        println!("problem     {problem}\nhint        {}", problem.hint);
    }
}

/// A trial is no apply: nothing is changed by it.
pub fn kind(run: &Run) -> String {
    let kind = run.kind.as_str();
    if run.plan_only { format!("{kind}, plan only") } else { kind.to_owned() }
}

pub fn status(run: &Run) -> String {
    let words = run.status.replace('_', " ");
    if let Some(blocked) = &run.blocked {
        return match blocked.until {
            Some(until) => format!("{words}, blocked until {until}: {}", blocked.reason),
            None => format!("{words}, blocked: {}", blocked.reason),
        };
    }
    match (&run.superseded_by, run.cancel_requested && !run.finished) {
        (Some(successor), _) => format!("{words} by {successor}"),
        (None, true) => format!("{words}, asked to stop"),
        (None, false) => words,
    }
}

/// An event in one line, or in a few if it is a diagnostic.
pub fn event(event: &Event) -> String {
    match &event.body {
        EventBody::Status { status, problem: None } => status.replace('_', " "),
        EventBody::Status { status, problem: Some(problem) } => format!("{status}: {problem}"),
        EventBody::CancelRequested { by } => format!("{by} asked it to stop"),
        EventBody::Answered { address, answer, by } => {
            let answer = serde_json::to_string(answer).expect("an answer is plain data");
            format!("{by} answered for {address}: {answer}")
        }
        EventBody::Engine { engine, version, reasons } if reasons.is_empty() => format!("engine {engine} ({version})"),
        EventBody::Engine { engine, version, reasons } => {
            format!("engine {engine} ({version}), because: {}", reasons.join("; "))
        }
        EventBody::Drift(found) => {
            format!("drift: {} objects are changed, {} are gone", found.changed, found.gone)
        }
        EventBody::Progress(report) => progress(report),
        EventBody::Dropped { count } => format!("{count} reports were dropped"),
        EventBody::Note { text } => text.clone(),
    }
}

fn progress(report: &serde_json::Value) -> String {
    match serde_json::from_value(report.clone()) {
        Ok(ProgressEvent::Note { text }) => text,
        Ok(ProgressEvent::Object { address, action, stage, millis }) => object(&address, action, stage, millis),
        Ok(ProgressEvent::Diagnostic { diagnostic: said }) => diagnostic(&said),
        // A newer worker may report what this version does not know.
        Err(_) => report.to_string(),
    }
}

fn object(address: &str, action: Action, stage: Stage, millis: Option<u64>) -> String {
    let (infinitive, present, past) = match action {
        Action::NoOp => ("keep", "keeping", "kept"),
        Action::Create => ("create", "creating", "created"),
        Action::Read => ("read", "reading", "read"),
        Action::Update => ("update", "updating", "updated"),
        Action::Delete => ("destroy", "destroying", "destroyed"),
        Action::Replace | Action::CreateBeforeDestroy | Action::ForgetThenCreate => {
            ("replace", "replacing", "replaced")
        }
        Action::Forget => ("forget", "forgetting", "forgot"),
    };
    let took = millis.map(|millis| format!(" in {millis} ms")).unwrap_or_default();
    match stage {
        Stage::Planned => format!("will {infinitive} {address}"),
        Stage::Started => format!("{present} {address}"),
        Stage::Done => format!("{past} {address}{took}"),
        Stage::Failed => format!("failed {present} {address}"),
    }
}

fn diagnostic(diagnostic: &Diagnostic) -> String {
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let mut text = format!("{severity}: {}", diagnostic.summary);
    if let Some(range) = &diagnostic.range {
        text.push_str(&format!("\n  at {}:{}", range.file, range.line));
    }
    if let Some(address) = &diagnostic.address {
        text.push_str(&format!("\n  with {address}"));
    }
    for line in diagnostic.detail.lines() {
        text.push_str(&format!("\n  {line}"));
    }
    text
}
