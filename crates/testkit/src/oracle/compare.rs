use serde::Serialize;
use serde_json::Value as Json;

use super::normal::checks_in_order;
use super::observe::Observed;
use crate::transcript::{Difference, compare_canonical, compare_json};

/// Where two engines' views of the same story differ; empty means that they agree.
pub fn differences(left: &[Observed], right: &[Observed]) -> Vec<Difference> {
    let mut found = Vec::new();
    for (one, other) in left.iter().zip(right) {
        let place = |what: &str| format!("step {}: {what}", one.step);
        compare_json(&place("plan"), &json(&one.planned), &json(&other.planned), &mut found);
        compare_json(&place("show -json"), &checked(&one.shown), &checked(&other.shown), &mut found);
        compare_json(&place("apply"), &json(&one.applied), &json(&other.applied), &mut found);
        compare_json(&place("state"), &checked(&one.state), &checked(&other.state), &mut found);
        for difference in compare_canonical(&one.calls, &other.calls) {
            found.push(Difference { place: place(&difference.place), ..difference });
        }
    }
    if left.len() != right.len() {
        let count = |side: &[Observed]| format!("{} steps", side.len());
        found.push(Difference { place: "story".into(), left: count(left), right: count(right) });
    }
    found
}

fn checked(value: &Option<Json>) -> Json {
    let mut json = json(value);
    checks_in_order(&mut json);
    json
}

fn json(value: &impl Serialize) -> Json {
    serde_json::to_value(value).expect("what was observed has a form in JSON")
}
