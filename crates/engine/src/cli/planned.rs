//! What a plan in the format of `show -json` says.

use serde_json::Value;

use crate::{Action, Change, Diagnostic, EngineError, Intent, IntentAction, Mode};

/// In the order of address; what stays as it is is left out.
pub(super) fn changes(plan: &Value) -> Result<Vec<Change>, EngineError> {
    let mut changes = Vec::new();
    for resource in resource_changes(plan) {
        let change = &resource["change"];
        let importing = match (&change["importing"]["id"], &change["importing"]["identity"]) {
            (Value::String(id), _) => Some(id.clone()),
            (_, identity @ Value::Object(_)) => Some(identity.to_string()),
            _ => None,
        };
        let moved = resource.get("previous_address").is_some();
        let action = action(change)?;
        if action != Action::NoOp || importing.is_some() || moved {
            changes.push(Change {
                address: text(&resource["address"]),
                deposed: resource["deposed"].as_str().map(str::to_owned),
                action,
                importing,
            });
        }
    }
    changes.sort_by(|a, b| (&a.address, &a.deposed).cmp(&(&b.address, &b.deposed)));
    Ok(changes)
}

pub(super) fn outputs_change(plan: &Value) -> bool {
    let outputs = plan["output_changes"].as_object();
    outputs.is_some_and(|outputs| outputs.values().any(|change| change["actions"] != serde_json::json!(["no-op"])))
}

/// Would applying leave anything different? What a refresh found counts where the plan is about that alone: elsewhere
/// the CLI, too, calls such a plan empty.
pub(super) fn effective(plan: &Value, changes: &[Change], mode: Mode) -> bool {
    let drifted = plan["resource_drift"].as_array().is_some_and(|drift| !drift.is_empty());
    outputs_change(plan)
        || changes.iter().any(|change| change.action != Action::Read)
        || (mode == Mode::RefreshOnly && drifted)
}

/// One intent for each provider call that changes something; a replace makes two. Forgetting and reading call nothing
/// that changes anything.
pub(super) fn intents(plan: &Value) -> Result<Vec<Intent>, EngineError> {
    let mut intents = Vec::new();
    for resource in resource_changes(plan) {
        let change = &resource["change"];
        let mut calls = Vec::new();
        if change["importing"].is_object() {
            calls.push(IntentAction::Import);
        }
        match action(change)? {
            Action::Create | Action::ForgetThenCreate => calls.push(IntentAction::Create),
            Action::Update => calls.push(IntentAction::Update),
            Action::Delete => calls.push(IntentAction::Delete),
            Action::Replace => calls.extend([IntentAction::Delete, IntentAction::Create]),
            Action::CreateBeforeDestroy => calls.extend([IntentAction::Create, IntentAction::Delete]),
            Action::NoOp | Action::Read | Action::Forget => {}
        }
        intents.extend(calls.into_iter().map(|action| Intent {
            address: text(&resource["address"]),
            deposed: resource["deposed"].as_str().map(str::to_owned),
            action,
            type_name: text(&resource["type"]),
            provider: text(&resource["provider_name"]),
            prior: (action == IntentAction::Update && change["before"].is_object()).then(|| change["before"].clone()),
            planned: (action != IntentAction::Delete && change["after"].is_object()).then(|| change["after"].clone()),
            private: Vec::new(),
        }));
    }
    Ok(intents)
}

/// Every string that the plan marks as sensitive, so that it can be taken out of what people read.
pub(super) fn secrets(plan: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let outputs = plan["output_changes"].as_object().into_iter().flat_map(|o| o.values());
    for change in resource_changes(plan).map(|resource| &resource["change"]).chain(outputs) {
        marked(&change["before"], &change["before_sensitive"], &mut found);
        marked(&change["after"], &change["after_sensitive"], &mut found);
    }
    if let Some(declared) = plan["configuration"]["root_module"]["variables"].as_object() {
        for (name, _) in declared.iter().filter(|(_, d)| is_true(&d["sensitive"]) || is_true(&d["ephemeral"])) {
            strings(&plan["variables"][name]["value"], &mut found);
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Variables whose value is not part of the plan and may differ when it is applied.
pub(super) fn ephemeral_variables(plan: &Value) -> Vec<String> {
    plan["configuration"]["root_module"]["variables"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, declared)| is_true(&declared["ephemeral"]))
        .map(|(name, _)| name.clone())
        .collect()
}

pub(super) fn strings(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if !text.is_empty() => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| strings(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| strings(field, found)),
        _ => {}
    }
}

/// `mask` has the shape of `value`, with `true` where everything below is sensitive.
fn marked(value: &Value, mask: &Value, found: &mut Vec<String>) {
    match (value, mask) {
        (_, Value::Bool(true)) => strings(value, found),
        (Value::Array(items), Value::Array(masks)) => items.iter().zip(masks).for_each(|(v, m)| marked(v, m, found)),
        (Value::Object(fields), Value::Object(masks)) => {
            for (name, mask) in masks {
                if let Some(field) = fields.get(name) {
                    marked(field, mask, found);
                }
            }
        }
        _ => {}
    }
}

fn resource_changes(plan: &Value) -> impl Iterator<Item = &Value> {
    plan["resource_changes"].as_array().into_iter().flatten()
}

/// An action that is not known here is an error: what it changes would be missing in the journal.
fn action(change: &Value) -> Result<Action, EngineError> {
    let names: Vec<&str> = change["actions"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    Ok(match names.as_slice() {
        ["no-op"] => Action::NoOp,
        ["create"] => Action::Create,
        ["read"] => Action::Read,
        ["update"] => Action::Update,
        ["delete"] => Action::Delete,
        ["delete", "create"] => Action::Replace,
        ["create", "delete"] => Action::CreateBeforeDestroy,
        ["forget"] => Action::Forget,
        ["forget", "create"] => Action::ForgetThenCreate,
        other => {
            return Err(EngineError::Diagnostics(vec![Diagnostic::error(
                format!("The plan holds an unknown action: {}", other.join(", ")),
                "This version of the CLI plans something that Landform does not know how to journal.",
            )]));
        }
    })
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn is_true(value: &Value) -> bool {
    value.as_bool() == Some(true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan(actions: &[&str]) -> Value {
        json!({"resource_changes": [{
            "address": "a.b", "type": "a", "provider_name": "p",
            "change": {"actions": actions, "before": {"k": "old"}, "after": {"k": "new", "open": "x"},
                       "before_sensitive": {"k": true}, "after_sensitive": {"k": true}}}]})
    }

    #[test]
    fn a_replace_is_two_intents_in_its_order() {
        let actions = |plan: &Value| intents(plan).unwrap().iter().map(|i| i.action).collect::<Vec<_>>();
        assert_eq!(actions(&plan(&["delete", "create"])), [IntentAction::Delete, IntentAction::Create]);
        assert_eq!(actions(&plan(&["create", "delete"])), [IntentAction::Create, IntentAction::Delete]);
        assert_eq!(actions(&plan(&["forget"])), []);
        assert_eq!(actions(&plan(&["forget", "create"])), [IntentAction::Create]);
        assert!(super::intents(&plan(&["transmogrify"])).is_err());
        assert_eq!(intents(&plan(&["create"])).unwrap()[0].planned, Some(json!({"k": "new", "open": "x"})));
    }

    #[test]
    fn only_what_changes_something_makes_a_plan_effective() {
        let is = |plan: &Value| effective(plan, &changes(plan).unwrap(), Mode::Normal);
        assert!(is(&plan(&["update"])));
        assert!(is(&plan(&["forget"])));
        assert!(!is(&plan(&["no-op"])));
        assert!(!is(&plan(&["read"])));
        assert!(is(&json!({"output_changes": {"o": {"actions": ["delete"]}}})));
        let drift = json!({"resource_drift": [{}]});
        assert!(!is(&drift));
        assert!(effective(&drift, &[], Mode::RefreshOnly));
    }

    #[test]
    fn secrets_are_what_the_masks_cover() {
        assert_eq!(secrets(&plan(&["update"])), ["new", "old"]);
        let declared = json!({"variables": {"s": {"value": ["one", {"k": "two"}]}, "p": {"value": "plain"}},
            "configuration": {"root_module": {"variables": {"s": {"sensitive": true}, "p": {}}}}});
        assert_eq!(secrets(&declared), ["one", "two"]);
    }
}
