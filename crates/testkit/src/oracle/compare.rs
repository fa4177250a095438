use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value as Json;

use super::normal::{checks_in_order, modules_in_order, serial_is_chance};
use super::observe::{Observed, Streams};
use super::words::{compare_streams, compare_texts};
use crate::transcript::{Difference, compare_canonical, compare_json};

/// Where two engines' views of the same story differ; empty means that they agree.
pub fn differences(left: &[Observed], right: &[Observed]) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut chance = false;
    for (one, other) in left.iter().zip(right) {
        chance |= one.state.as_ref().is_some_and(serial_is_chance);
        let state = |value: &Option<Json>| {
            let mut state = checked(value);
            if chance && let Some(serial) = state.get_mut("serial") {
                *serial = Json::Null;
            }
            state
        };
        let place = |what: &str| format!("step {}: {what}", one.step);
        compare_json(&place("plan"), &json(&one.planned), &json(&other.planned), &mut found);
        compare_json(&place("show -json"), &checked(&one.shown), &checked(&other.shown), &mut found);
        compare_json(&place("apply"), &json(&one.applied), &json(&other.applied), &mut found);
        compare_json(&place("state"), &state(&one.state), &state(&other.state), &mut found);
        for difference in compare_canonical(&one.calls, &other.calls) {
            found.push(Difference { place: place(&difference.place), ..difference });
        }
        let names: BTreeSet<&String> = one.texts.keys().chain(other.texts.keys()).collect();
        for name in names {
            let text = |side: &Observed| side.texts.get(name).cloned().unwrap_or_else(|| "«nothing»".to_owned());
            compare_texts(&place(&format!("text of {name}")), &text(one), &text(other), &mut found);
        }
    }
    if left.len() != right.len() {
        let count = |side: &[Observed]| format!("{} steps", side.len());
        found.push(Difference { place: "story".into(), left: count(left), right: count(right) });
    }
    found
}

/// The same for what programs read of it.
pub fn stream_differences(left: &[Streams], right: &[Streams]) -> Vec<Difference> {
    let mut found = Vec::new();
    for (one, other) in left.iter().zip(right) {
        let mut compare = |what: &str, left: &[Json], right: &[Json]| {
            compare_streams(&format!("step {}: stream of {what}", one.step), left, right, &mut found);
        };
        compare("plan", &one.plan, &other.plan);
        compare("apply", one.apply.as_deref().unwrap_or_default(), other.apply.as_deref().unwrap_or_default());
    }
    if left.len() != right.len() {
        let count = |side: &[Streams]| format!("{} steps", side.len());
        found.push(Difference { place: "streams".into(), left: count(left), right: count(right) });
    }
    found
}

fn checked(value: &Option<Json>) -> Json {
    let mut json = json(value);
    checks_in_order(&mut json);
    modules_in_order(&mut json);
    json
}

fn json(value: &impl Serialize) -> Json {
    serde_json::to_value(value).expect("what was observed has a form in JSON")
}
