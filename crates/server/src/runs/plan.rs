//! A run's plan, as JSON and as text. What is sensitive in it is shown to those who may see secrets.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use landform_domain::inputs::MASK;
use landform_domain::{Actor, Right};
use serde_json::{Map, Value, json};

use crate::Server;
use crate::problem::Refusal;
use crate::request::Names;

pub(crate) async fn get(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let plan = server.store.plan(names.run()?).await?;
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accept.contains("text/plain") {
        // A text is for reading over somebody's shoulder: secrets are masked for everybody.
        let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"))];
        return Ok((kind, text(&masked(&plan))).into_response());
    }
    let plan = if actor.may(Right::Secrets) { plan } else { masked(&plan) };
    Ok(Json(plan).into_response())
}

/// What is left when everything that can hold a secret is masked or left out: state, variables and configuration are not
/// needed to judge a change.
fn masked(plan: &Value) -> Value {
    let mut shown = Map::new();
    for name in ["format_version", "terraform_version", "errored", "applyable", "complete"] {
        if let Some(value) = plan.get(name) {
            shown.insert(name.to_owned(), value.clone());
        }
    }
    let resource = |change: &Value| {
        let mut change = change.clone();
        mask_change(&mut change["change"]);
        change
    };
    let list = |name: &str| plan[name].as_array().into_iter().flatten().map(resource).collect::<Vec<Value>>();
    shown.insert("resource_changes".to_owned(), list("resource_changes").into());
    let output = |(name, change): (&String, &Value)| {
        let mut change = change.clone();
        mask_change(&mut change);
        (name.clone(), change)
    };
    let outputs: Map<String, Value> = plan["output_changes"].as_object().into_iter().flatten().map(output).collect();
    shown.insert("output_changes".to_owned(), outputs.into());
    Value::Object(shown)
}

fn mask_change(change: &mut Value) {
    for (side, marks) in [("before", "before_sensitive"), ("after", "after_sensitive")] {
        let marks = change[marks].clone();
        if change.get(side).is_some() {
            mask(&mut change[side], &marks);
        }
    }
}

/// `marks` is true where the value is sensitive as a whole, or has the value's shape with true in it.
fn mask(value: &mut Value, marks: &Value) {
    match (value, marks) {
        (Value::Null, _) => {}
        (value, Value::Bool(true)) => *value = MASK.into(),
        (Value::Object(map), Value::Object(marks)) => {
            for (name, value) in map {
                mask(value, marks.get(name).unwrap_or(&Value::Null));
            }
        }
        (Value::Array(items), Value::Array(marks)) => {
            for (index, value) in items.iter_mut().enumerate() {
                mask(value, marks.get(index).unwrap_or(&Value::Null));
            }
        }
        _ => {}
    }
}

/// The plan as people know it, short: a sign, an address, and what about it changes.
fn text(plan: &Value) -> String {
    let mut text = String::new();
    let (mut added, mut changed, mut destroyed) = (0, 0, 0);
    for resource in plan["resource_changes"].as_array().into_iter().flatten() {
        let actions: Vec<&str> =
            resource["change"]["actions"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let (sign, words) = match actions.as_slice() {
            ["create"] => ("+", "will be created"),
            ["update"] => ("~", "will be updated in-place"),
            ["delete"] => ("-", "will be destroyed"),
            ["delete", "create"] => ("-/+", "must be replaced"),
            ["create", "delete"] => ("+/-", "must be replaced"),
            ["read"] => ("<=", "will be read during apply"),
            ["forget"] => (".", "will no longer be managed"),
            _ if resource["change"]["importing"].is_object() => ("", "will be imported"),
            _ => continue,
        };
        added += usize::from(actions.contains(&"create"));
        changed += usize::from(actions == ["update"]);
        destroyed += usize::from(actions.contains(&"delete"));
        text.push_str(&format!("{sign:>3} {} {words}\n", resource["address"].as_str().unwrap_or("?")));
        write_attributes(&resource["change"], &mut text);
    }
    for (name, change) in plan["output_changes"].as_object().into_iter().flatten() {
        if change["before"] != change["after"] || is_unknown_somewhere(&change["after_unknown"]) {
            let after = shown(&change["after"], &change["after_unknown"]);
            text.push_str(&format!("    output {name}: {} -> {after}\n", change["before"]));
        }
    }
    text.push_str(&format!("Plan: {added} to add, {changed} to change, {destroyed} to destroy.\n"));
    text
}

fn write_attributes(change: &Value, text: &mut String) {
    let empty = json!({});
    let (before, new) = (change["before"].as_object(), change["after"].as_object());
    let unknown = change["after_unknown"].as_object().unwrap_or(empty.as_object().expect("an object"));
    let names: BTreeSet<&String> = before
        .into_iter()
        .flat_map(Map::keys)
        .chain(new.into_iter().flat_map(Map::keys))
        .chain(unknown.keys())
        .collect();
    for name in names {
        let old = before.and_then(|map| map.get(name)).unwrap_or(&Value::Null);
        let value = new.and_then(|map| map.get(name)).unwrap_or(&Value::Null);
        let unknown = unknown.get(name).unwrap_or(&Value::Null);
        if old == value && !is_unknown_somewhere(unknown) {
            continue;
        }
        let value = shown(value, unknown);
        match old {
            Value::Null => text.push_str(&format!("        {name} = {value}\n")),
            old => text.push_str(&format!("        {name} = {old} -> {value}\n")),
        }
    }
}

fn is_unknown_somewhere(unknown: &Value) -> bool {
    match unknown {
        Value::Array(items) => items.iter().any(is_unknown_somewhere),
        Value::Object(map) => map.values().any(is_unknown_somewhere),
        mark => *mark == true,
    }
}

/// A value with what is not known yet. `unknown` is true where that is the whole of it, or has the value's shape with true in
/// it; in the value itself there is null then, or nothing.
fn shown(value: &Value, unknown: &Value) -> String {
    if !is_unknown_somewhere(unknown) {
        return value.to_string();
    }
    match unknown {
        Value::Array(marks) => {
            let length = value.as_array().map_or(0, Vec::len).max(marks.len());
            let item = |at: usize| shown(value.get(at).unwrap_or(&Value::Null), marks.get(at).unwrap_or(&Value::Null));
            format!("[{}]", (0..length).map(item).collect::<Vec<_>>().join(","))
        }
        Value::Object(marks) => {
            let names: BTreeSet<&String> =
                value.as_object().into_iter().flat_map(Map::keys).chain(marks.keys()).collect();
            let entry = |name: &String| {
                let part = shown(value.get(name).unwrap_or(&Value::Null), marks.get(name).unwrap_or(&Value::Null));
                format!("{}:{part}", Value::from(name.as_str()))
            };
            format!("{{{}}}", names.into_iter().map(entry).collect::<Vec<_>>().join(","))
        }
        _ => "(known after apply)".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sensitive_is_masked_and_the_rest_is_left_out() {
        let plan = json!({
            "format_version": "1.2",
            "variables": {"key": {"value": "s3cret"}},
            "prior_state": {"values": "s3cret"},
            "resource_changes": [{
                "address": "a.b",
                "change": {
                    "actions": ["update"],
                    "before": {"name": "x", "key": "s3cret", "list": ["s3cret", "open"]},
                    "after": {"name": "y", "key": "s3cret too", "list": null},
                    "after_unknown": {"id": true},
                    "before_sensitive": {"key": true, "list": [true]},
                    "after_sensitive": {"key": true}
                }
            }],
            "output_changes": {"o": {"actions": ["create"], "before": null, "after": "s3cret", "after_sensitive": true}}
        });
        let shown = masked(&plan);
        assert!(!shown.to_string().contains("s3cret"), "{shown}");
        assert_eq!(shown["resource_changes"][0]["change"]["before"]["list"], json!([MASK, "open"]));
        let text = text(&shown);
        assert!(text.contains("~ a.b will be updated in-place"), "{text}");
        assert!(text.contains("name = \"x\" -> \"y\"") && text.contains("id = (known after apply)"), "{text}");
        assert!(text.ends_with("Plan: 0 to add, 1 to change, 0 to destroy.\n"), "{text}");
    }

    #[test]
    fn what_is_not_known_yet_is_not_shown_as_null() {
        let plan = json!({
            "resource_changes": [{
                "address": "a.b",
                "change": {
                    "actions": ["update"],
                    "before": {"list": ["x", null], "same": [null]},
                    "after": {"list": ["x", null], "map": {"a": 1}, "same": [null]},
                    "after_unknown": {"list": [false, true], "map": {"b": [true]}, "same": [false], "block": [{}]},
                }
            }],
            "output_changes": {"o": {"before": ["x", null], "after": ["x", null], "after_unknown": [false, true]}}
        });
        let text = text(&plan);
        for line in [
            "        list = [\"x\",null] -> [\"x\",(known after apply)]\n",
            "        map = {\"a\":1,\"b\":[(known after apply)]}\n",
            "    output o: [\"x\",null] -> [\"x\",(known after apply)]\n",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("same") && !text.contains("block"), "{text}");
    }
}
