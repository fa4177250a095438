//! Errors and warnings as people read them: in a box on a terminal, and in plain lines otherwise.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use landform_engine::native::{Ink, wrapped};
use landform_engine::{Diagnostic, EngineError, Severity};

use super::Failure;
use super::screen;
use super::snippet::Place;
use super::stream;

pub fn failure(failure: &Failure, json: bool) {
    match failure {
        Failure::Engine(EngineError::Diagnostics(found)) => diagnostics(found, json, false),
        Failure::Engine(EngineError::Stale(why)) => {
            let detail = format!("The given plan file can no longer be applied because {why}.");
            diagnostics(&[Diagnostic::error("Saved plan is stale", detail)], json, false);
        }
        Failure::Usage(problem) => diagnostics(std::slice::from_ref(&**problem), json, false),
        Failure::Engine(error) => diagnostics(&[Diagnostic::error(error.to_string(), "")], json, false),
        Failure::Other(error) => diagnostics(&[Diagnostic::error(format!("{error:#}"), "")], json, false),
    }
}

/// Errors and warnings; those of which there are several alike once.
pub fn diagnostics(found: &[Diagnostic], json: bool, compact: bool) {
    if json {
        return found.iter().for_each(stream::diagnostic);
    }
    let mut found: Vec<&Diagnostic> = found.iter().collect();
    found.sort_by_key(|diagnostic| order(diagnostic));
    let mut seen = BTreeSet::new();
    found.retain(|diagnostic| deprecated(diagnostic).is_none_or(|cause| seen.insert(cause)));
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
        // Both are as wide as the standard error.
        let sheet = screen::error_sheet();
        let mut text = diagnostic_text(&shown, sheet.ink, sheet.columns);
        if screen::sets_apart() {
            text.push('\n');
        }
        match shown.severity {
            Severity::Error => eprint!("{text}"),
            Severity::Warning => print!("{text}"),
        }
    }
}

/// What a warning of something deprecated is about: it is warned of once, wherever it is used.
fn deprecated(diagnostic: &Diagnostic) -> Option<&str> {
    let (_, cause) = diagnostic.detail.split_once(" is derived from ")?;
    (diagnostic.summary == "Value derived from a deprecated source").then_some(cause)
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
            Some((one, more)) if !EACH.contains(&one.summary.as_str()) && !one.seen.of_check => *more += 1,
            _ => told.push((diagnostic, 0)),
        }
    }
    told
}

/// Each of these is told of.
const EACH: [&str; 2] = ["Check block assertion failed", "Value derived from a deprecated source"];

fn compact_text(told: &[(&Diagnostic, usize)]) -> String {
    let mut text = format!("\n{}", screen::ink().say("[bold][yellow]Warnings:[reset]\n\n"));
    for (warning, more) in told {
        let _ = writeln!(text, "- {}", warning.summary);
        let Some(range) = &warning.range else { continue };
        let more = if *more > 0 { format!(" (and {more} more)") } else { String::new() };
        let _ = writeln!(text, "  on {} line {}{more}", range.file, range.line);
    }
    text + "\nTo see the full warning notes, run OpenTofu without -compact-warnings.\n"
}

fn diagnostic_text(diagnostic: &Diagnostic, ink: Ink, columns: usize) -> String {
    let (kind, colour) = match diagnostic.severity {
        Severity::Error => ("Error", "[red]"),
        Severity::Warning => ("Warning", "[yellow]"),
    };
    let mut body = String::new();
    if let Some(address) = diagnostic.address.as_ref().filter(|_| names_its_object(diagnostic)) {
        let _ = writeln!(body, "  with {address},");
    }
    match Place::of(diagnostic) {
        Some(place) => body.push_str(&place.text(diagnostic, ink)),
        None if !body.is_empty() => body.push('\n'),
        None => {}
    }
    let summary = &diagnostic.summary;
    if ink == Ink::Plain {
        if !diagnostic.detail.is_empty() {
            let _ = writeln!(body, "{}", wrapped(&diagnostic.detail, columns.saturating_sub(1)));
        }
        return format!("\n{kind}: {summary}\n\n{body}");
    }
    let head = ink.say(&format!("[bold]{colour}{kind}: [reset]"));
    let summary = ink.say("[bold]\u{0}[reset]\n\n").replace('\u{0}', summary);
    let mut text = format!("{head}{summary}{body}");
    if !diagnostic.detail.is_empty() {
        // The rule at the left takes two more.
        let _ = writeln!(text, "{}", wrapped(&diagnostic.detail, columns.saturating_sub(3)));
    }
    boxed(&text, ink, colour)
}

/// With a rule down its left side.
fn boxed(text: &str, ink: Ink, colour: &str) -> String {
    let (line, begin, end) = (
        ink.say(&format!("{colour}│[reset] ")),
        ink.say(&format!("{colour}╷[reset]")),
        ink.say(&format!("{colour}╵[reset]")),
    );
    let mut out = format!("{begin}\n");
    for inner in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        let _ = writeln!(out, "{line}{inner}");
    }
    out + &end + "\n"
}

/// OpenTofu names the object of what a provider has found about its arguments, and of nothing else.
pub fn names_its_object(diagnostic: &Diagnostic) -> bool {
    diagnostic.seen.argument.is_some()
}
