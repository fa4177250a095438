//! The judge is judged: a story is equal to itself, and every change of what was seen is found.

use std::slice::from_ref;

use landform_testkit::oracle::{Case, Observed, Recording, differences};
use serde_json::{Value as Json, json};

fn recorded(name: &str) -> Recording {
    let case = Case::all().unwrap().into_iter().find(|case| case.name == name).unwrap();
    let variant = case.variants().pop().unwrap();
    Recording::of(&variant).unwrap().expect("it is recorded")
}

#[test]
fn every_story_is_recorded_as_it_is_written() {
    let missing: Vec<String> = Case::all()
        .unwrap()
        .iter()
        .flat_map(Case::variants)
        .filter(|variant| Recording::of(variant).unwrap().is_none())
        .map(|variant| variant.name())
        .collect();
    assert!(missing.is_empty(), "run `cargo xtask oracle --record` for: {}", missing.join(" "));
}

/// Every text, number, bool and null of what was seen, changed one at a time, is found.
#[test]
fn every_change_is_found() {
    for step in recorded("object-lifecycle").observed {
        assert!(differences(from_ref(&step), from_ref(&step)).is_empty());
        let whole = serde_json::to_value(&step).unwrap();
        let mut places = Vec::new();
        leaves(&whole, String::new(), &mut places);
        assert!(places.len() > 100, "there is enough to be changed: {}", places.len());
        for place in places {
            let mut changed = whole.clone();
            let leaf = changed.pointer_mut(&place).unwrap();
            *leaf = changed_leaf(leaf);
            let changed: Observed = serde_json::from_value(changed).unwrap();
            assert!(!differences(from_ref(&step), &[changed]).is_empty(), "a change at {place} was not found");
        }
    }
}

fn changed_leaf(leaf: &Json) -> Json {
    match leaf {
        Json::Bool(value) => json!(!value),
        Json::Number(number) => json!(number.as_i64().unwrap_or(0) + 1),
        Json::String(_) => json!("changed by the test"),
        _ => json!("not null"),
    }
}

fn leaves(json: &Json, place: String, found: &mut Vec<String>) {
    let escaped = |name: &String| name.replace('~', "~0").replace('/', "~1");
    match json {
        Json::Object(fields) => {
            fields.iter().for_each(|(name, inner)| leaves(inner, format!("{place}/{}", escaped(name)), found));
        }
        Json::Array(elements) => {
            elements.iter().enumerate().for_each(|(at, inner)| leaves(inner, format!("{place}/{at}"), found));
        }
        // What is optional in a step cannot become a text, and its name is a title.
        Json::Null if place.ends_with("/applied") || place.ends_with("/shown") || place.ends_with("/state") => {}
        _ if place == "/step" => {}
        _ => found.push(place),
    }
}

#[test]
fn a_step_or_a_call_too_few_is_found() {
    let observed = recorded("object-lifecycle").observed;
    let shorter = &observed[..observed.len() - 1];
    assert!(!differences(&observed, shorter).is_empty() && !differences(shorter, &observed).is_empty());
    let mut silent = observed.clone();
    silent[0].calls.objects[0].calls.pop();
    assert!(!differences(&observed, &silent).is_empty());
    let mut swapped = observed.clone();
    swapped[2].calls.objects[0].calls.swap(0, 1);
    assert!(!differences(&observed, &swapped).is_empty());
    let mut extra = observed.clone();
    let object = extra[0].calls.objects[0].clone();
    extra[0].calls.objects.push(object);
    assert!(!differences(&observed, &extra).is_empty());
}
