use std::fmt;

use serde_json::Value as Json;

use super::Transcript;
use super::canonical::{Canonical, Object, canonical};

/// One place where two transcripts differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// For instance `time_static#1 call 3 PlanResourceChange request.config.triggers`.
    pub place: String,
    pub left: String,
    pub right: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  left:  {}\n  right: {}", self.place, self.left, self.right)
    }
}

/// Where two transcripts differ in their canonical form; empty means that they say the same.
pub fn compare(left: &Transcript, right: &Transcript) -> Vec<Difference> {
    compare_canonical(&canonical(left, false), &canonical(right, false))
}

pub fn compare_canonical(left: &Canonical, right: &Canonical) -> Vec<Difference> {
    let mut found = Vec::new();
    for (one, other, missing_right) in
        [(&left.configurations, &right.configurations, true), (&right.configurations, &left.configurations, false)]
    {
        for configuration in one.difference(other) {
            let (left, right) = (configuration.clone(), "not said".to_owned());
            let (left, right) = if missing_right { (left, right) } else { (right, left) };
            found.push(Difference { place: "configuration".into(), left, right });
        }
    }
    let labels = |objects: &[Object]| objects.iter().map(|object| object.label.clone()).collect::<Vec<_>>().join(", ");
    if labels(&left.objects) != labels(&right.objects) {
        let (left, right) = (labels(&left.objects), labels(&right.objects));
        found.push(Difference { place: "objects".into(), left, right });
    }
    for one in &left.objects {
        if let Some(other) = right.objects.iter().find(|other| other.label == one.label) {
            compare_objects(one, other, &mut found);
        }
    }
    found
}

fn compare_objects(left: &Object, right: &Object, found: &mut Vec<Difference>) {
    let methods = |object: &Object| object.calls.iter().map(|said| said.method.as_str()).collect::<Vec<_>>().join(", ");
    if methods(left) != methods(right) {
        let place = format!("{} calls", left.label);
        // Which call is too many cannot be told from the rest, so the rest is not compared.
        return found.push(Difference { place, left: methods(left), right: methods(right) });
    }
    for (at, (one, other)) in left.calls.iter().zip(&right.calls).enumerate() {
        let place = format!("{} call {} {}", left.label, at + 1, one.method);
        compare_json(&format!("{place} request"), &one.request, &other.request, found);
        compare_json(&format!("{place} response"), &one.response, &other.response, found);
    }
}

pub(crate) fn compare_json(place: &str, left: &Json, right: &Json, found: &mut Vec<Difference>) {
    match (left, right) {
        (Json::Object(one), Json::Object(other)) => {
            let absent = Json::String("«absent»".into());
            let mut names: Vec<&String> = one.keys().chain(other.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let (one, other) = (one.get(name).unwrap_or(&absent), other.get(name).unwrap_or(&absent));
                compare_json(&format!("{place}.{name}"), one, other, found);
            }
        }
        (Json::Array(one), Json::Array(other)) if one.len() == other.len() => {
            for (at, (one, other)) in one.iter().zip(other).enumerate() {
                compare_json(&format!("{place}[{at}]"), one, other, found);
            }
        }
        _ if left == right => {}
        _ => found.push(Difference { place: place.into(), left: left.to_string(), right: right.to_string() }),
    }
}
