//! The judge is judged: a story is equal to itself, and every change of what was seen is found.

use std::slice::from_ref;

use landform_testkit::oracle::{Case, Observed, Recording, corpus, differences, stream_differences};
use serde_json::{Value as Json, json};

fn recorded(name: &str) -> Recording {
    let case = Case::all(&corpus()).unwrap().into_iter().find(|case| case.name == name).unwrap();
    let variant = case.variants().pop().unwrap();
    Recording::of(&variant).unwrap().expect("it is recorded")
}

#[test]
fn every_story_is_recorded_as_it_is_written() {
    let missing: Vec<String> = Case::all(&corpus())
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

/// OpenTofu draws lots for the order of several results of checks, and counts a state that comes out in another order.
#[test]
fn the_number_of_a_state_counts_until_it_is_a_matter_of_luck() {
    let counted = |mut observed: Vec<Observed>, at: usize| {
        let state = observed[at].state.as_mut().unwrap();
        state["serial"] = json!(state["serial"].as_i64().unwrap() + 1);
        observed
    };
    let one_result = recorded("object-lifecycle").observed;
    assert!(!differences(&one_result, &counted(one_result.clone(), 0)).is_empty());
    let several = recorded("conditions").observed;
    let last = several.len() - 1;
    assert!(several[0].state.as_ref().unwrap()["check_results"].as_array().unwrap().len() > 1);
    assert!(differences(&several, &counted(several.clone(), last)).is_empty());
}

/// Every line of what people read, dropped, changed or put in the place of the next one, is found.
#[test]
fn every_line_is_compared() {
    let step = recorded("object-lifecycle").observed.remove(0);
    for (name, text) in &step.texts {
        let lines: Vec<&str> = text.lines().collect();
        for at in 0..lines.len() {
            let mut others = vec![lines.clone(), lines.clone()];
            others[0].remove(at);
            others[1][at] = "changed by the test";
            // What is said of objects under way may come before or after anything else.
            let under_way = |line: &str| line.contains("...") || line.contains("complete after");
            let turns = at + 1 < lines.len() && (under_way(lines[at]) || under_way(lines[at + 1]));
            if !turns && at + 1 < lines.len() && lines[at] != lines[at + 1] {
                let mut swapped = lines.clone();
                swapped.swap(at, at + 1);
                others.push(swapped);
            }
            for other in others {
                let mut changed = step.clone();
                changed.texts.insert(name.clone(), other.join("\n"));
                let found = differences(from_ref(&step), &[changed]);
                assert!(!found.is_empty(), "a change in line {at} of {name} was not found: {:?}", lines[at]);
            }
        }
    }
}

/// And every field of every event of a stream.
#[test]
fn every_event_is_compared() {
    let streams = recorded("text-replace").streams;
    assert!(stream_differences(&streams, &streams).is_empty());
    let mut count = 0;
    for (step, heard) in streams.iter().enumerate() {
        for at in 0..heard.plan.len() {
            let mut fewer = streams.clone();
            fewer[step].plan.remove(at);
            assert!(!stream_differences(&streams, &fewer).is_empty(), "event {at} of {} is not missed", heard.step);
            let mut places = Vec::new();
            leaves(&heard.plan[at], String::new(), &mut places);
            for place in places.iter().filter(|place| *place != "/@timestamp" && !place.ends_with("elapsed_seconds")) {
                let mut changed = streams.clone();
                let leaf = changed[step].plan[at].pointer_mut(place).unwrap();
                *leaf = changed_leaf(leaf);
                assert!(!stream_differences(&streams, &changed).is_empty(), "a change at {place} was not found");
                count += 1;
            }
        }
    }
    assert!(count > 100, "there is enough to be changed: {count}");
}
