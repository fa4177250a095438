//! What people and programs read of a step: texts and streams. They are kept as they were printed; what must differ from
//! run to run is taken away where two sides meet.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value as Json;

use super::normal::Symbols;
use super::observe::in_order;
use crate::transcript::Difference;

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is one")
}

/// What is said of one object while it is worked on. Objects take turns as it happens.
static PROGRESS: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        "^([^ ].*): (Refreshing state\\.\\.\\.|Preparing import\\.\\.\\.|Importing( from ID .*)?\\.\\.\\.|Import complete|\
         (Creating|Modifying|Destroying|Reading)\\.\\.\\.|(Creation|Modifications|Destruction|Read) complete after )",
    )
});
/// Said of what takes longer than ten seconds.
static STILL: LazyLock<Regex> = LazyLock::new(|| regex("^([^ ].*): Still [a-z]+\\.\\.\\. \\["));
static DURATION: LazyLock<Regex> = LazyLock::new(|| regex("( after )([0-9]+[hms])+"));
/// The key of an object that was replaced and is still there is drawn by lot.
static DEPOSED: LazyLock<Regex> = LazyLock::new(|| regex("\\(deposed object [0-9a-f]{8}\\)"));
/// What `hashicorp/time` tells of the time in numbers.
static TIME_PART: LazyLock<Regex> =
    LazyLock::new(|| regex("(?m)^(.* (?:unix|second|minute|hour|day|month|year) +=) .*[0-9].*$"));

/// A text that one side has printed, with the names of its folder and of its program as the other side has them.
pub fn named_alike(text: &str, folder: &str, native: bool) -> String {
    let text = text.replace(folder, "«folder»");
    if !native {
        return text;
    }
    static SPEAKER: LazyLock<Regex> = LazyLock::new(|| regex("Landform [0-9.]+ as OpenTofu"));
    SPEAKER.replace_all(&text, "OpenTofu").replace("landform tf", "tofu").replace("Landform", "OpenTofu")
}

/// The lines of a text: those of objects under way one object after the other, then the rest; errors and warnings, which
/// come as it happens too, in one order.
fn lines(text: &str) -> Vec<String> {
    let (mut progress, mut rest) = (Vec::new(), Vec::new());
    for line in text.lines().filter(|line| !STILL.is_match(line)) {
        match PROGRESS.captures(line) {
            // Of several deposed objects the ids tell which is which; their keys do not.
            Some(_) if DEPOSED.is_match(line) => progress.push((DEPOSED.replace(line, "").into_owned(), line)),
            Some(found) => progress.push((found[1].to_owned(), line)),
            None => rest.push(line),
        }
    }
    progress.sort_by(|(one, _), (other, _)| one.cmp(other));
    let (mut boxes, mut after): (Vec<Vec<&str>>, Option<Vec<&str>>) = (vec![Vec::new()], None);
    for line in rest {
        if line.starts_with("Error: ") || line.starts_with("Warning: ") {
            boxes.push(Vec::new());
        } else if ["───", "Apply complete!", "Destroy complete!"].iter().any(|end| line.starts_with(end)) {
            after.get_or_insert_default();
        }
        after.as_mut().or(boxes.last_mut()).expect("there is one").push(line);
    }
    // An empty line stands between them, so the last one has none; which one is the last is a matter of luck.
    if let [_, _, .., last] = boxes.as_mut_slice()
        && last.last().is_some_and(|line| !line.is_empty())
    {
        last.push("");
    }
    boxes[1..].sort();
    let lines = progress
        .into_iter()
        .map(|(_, line)| line)
        .chain(boxes.into_iter().flatten())
        .chain(after.into_iter().flatten());
    let in_order = lines.map(|line| match line.strip_prefix("Error: ") {
        Some(summary) => format!("Error: {}", in_order(summary)),
        None => line.to_owned(),
    });
    let text = in_order.collect::<Vec<_>>().join("\n");
    let text = DURATION.replace_all(&text, "$1«time»");
    let text = DEPOSED.replace_all(&text, "(deposed object «deposed»)");
    let text = TIME_PART.replace_all(&text, "$1 «time»");
    Symbols::default().text(&text).lines().map(str::to_owned).collect()
}

pub fn compare_texts(place: &str, left: &str, right: &str, found: &mut Vec<Difference>) {
    compare_lines(place, &lines(left), &lines(right), found);
}

/// The lines that one side has and the other has not; where there are none, all from the first to the last that differs.
fn compare_lines(place: &str, left: &[String], right: &[String], found: &mut Vec<Difference>) {
    if left == right {
        return;
    }
    let start = left.iter().zip(right).take_while(|(one, other)| one == other).count();
    let (left, right) = (&left[start..], &right[start..]);
    let end = left.iter().rev().zip(right.iter().rev()).take_while(|(one, other)| one == other).count();
    let (left, right) = (&left[..left.len() - end], &right[..right.len() - end]);
    let shown = |lines: &[String]| lines.iter().map(|line| format!("\n    |{line}")).collect::<String>();
    let (only_left, only_right) = (without(left, right), without(right, left));
    let (left, right) = match only_left.is_empty() && only_right.is_empty() {
        true => (shown(left), shown(right)),
        false => (shown(&only_left), shown(&only_right)),
    };
    found.push(Difference { place: place.into(), left, right });
}

fn without(lines: &[String], others: &[String]) -> Vec<String> {
    let mut others: Vec<&String> = others.iter().collect();
    let mut is_only = |line: &&String| match others.iter().position(|other| other == line) {
        Some(at) => {
            others.swap_remove(at);
            false
        }
        None => true,
    };
    lines.iter().filter(|line| is_only(line)).cloned().collect()
}

/// A stream of events: those of objects under way one object after the other, then the rest; diagnostics in one order.
fn events(stream: &[Json]) -> Vec<String> {
    let kind = |event: &Json| event["type"].as_str().unwrap_or_default().to_owned();
    let rank = |event: &Json| match (kind(event).as_str(), event["hook"]["resource"]["addr"].as_str()) {
        (_, Some(address)) => (0, address.to_owned()),
        // What is planned while something else still is.
        ("planned_change" | "resource_drift", _) => {
            (1, event["change"]["resource"]["addr"].as_str().unwrap_or_default().to_owned())
        }
        ("diagnostic", _) => (3, event["diagnostic"].to_string()),
        _ => (2, String::new()),
    };
    let mut events: Vec<Json> = stream.iter().filter(|event| kind(event) != "apply_progress").cloned().collect();
    for event in &mut events {
        if let Some(fields) = event.as_object_mut() {
            fields.remove("@timestamp");
        }
        if let Some(elapsed) = event.pointer_mut("/hook/elapsed_seconds") {
            *elapsed = "«time»".into();
        }
    }
    events.sort_by_cached_key(rank);
    let lines = events.iter().map(Json::to_string).collect::<Vec<_>>().join("\n");
    let text = DURATION.replace_all(&lines, "$1«time»");
    Symbols::default().text(&text).lines().map(str::to_owned).collect()
}

pub fn compare_streams(place: &str, left: &[Json], right: &[Json], found: &mut Vec<Difference>) {
    compare_lines(place, &events(left), &events(right), found);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn differ(left: &str, right: &str) -> bool {
        let mut found = Vec::new();
        compare_texts("here", left, right, &mut found);
        !found.is_empty()
    }

    #[test]
    fn objects_take_turns_and_each_keeps_its_order() {
        let text = "a.a: Creating...\na.b: Creating...\na.b: Creation complete after 0s [id=1]\na.a: Creation complete after 1s\nx\n";
        let turned = "a.b: Creating...\na.b: Creation complete after 2s [id=1]\na.a: Creating...\na.a: Creation complete after 0s\nx\n";
        assert!(!differ(text, turned));
        assert!(differ(text, &turned.replace("[id=1]", "[id=2]")));
        assert!(differ(
            "a.a: Creating...\na.a: Creation complete after 1s",
            "a.a: Creation complete after 1s\na.a: Creating..."
        ));
    }

    #[test]
    fn mistakes_come_in_any_order() {
        let told = |one: &str, other: &str| format!("\nError: {one}\n\nNo.\n\nError: {other}\n\nNo.\n");
        assert!(!differ(&told("a", "b"), &told("b", "a")));
        assert!(differ(&told("a", "b"), &told("a", "a")));
    }

    #[test]
    fn ids_are_numbered_in_the_order_of_objects() {
        let (a, b) = ("0f8fad5b-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7");
        let told = |first: (&str, &str), second: (&str, &str), after: &str| {
            let line = |(name, id): (&str, &str)| format!("{name}: Creation complete after 0s [id={id}]\n");
            format!("{}{}o = {after}\n", line(first), line(second))
        };
        assert!(!differ(&told(("x", a), ("y", b), a), &told(("y", a), ("x", b), b)));
        assert!(differ(&told(("x", a), ("y", b), a), &told(("y", a), ("x", b), a)));
    }

    #[test]
    fn events_take_turns_likewise() {
        let hook = |address: &str, kind: &str| json!({"type": kind, "hook": {"resource": {"addr": address}, "elapsed_seconds": 1}});
        let stream = [hook("a", "apply_start"), hook("b", "apply_start"), hook("a", "apply_complete")];
        let differ = |other: &[Json]| {
            let mut found = Vec::new();
            compare_streams("here", &stream, other, &mut found);
            !found.is_empty()
        };
        assert!(!differ(&[stream[1].clone(), stream[0].clone(), stream[2].clone()]));
        assert!(differ(&[stream[2].clone(), stream[0].clone(), stream[1].clone()]));
        assert!(differ(&stream[..2]));
    }
}
