//! A drift check, and what its refresh-only plan says in the words of `domain`. Nothing that is sensitive leaves this place: marked
//! values are masked, and known secrets are taken out by value.

use landform_domain::inputs::MASK;
use landform_domain::{Drift, DriftedAttribute, DriftedObject};
use landform_engine::Workspace;
use landform_store::StoreError;
use serde_json::Value;

use crate::attempt::{Attempt, Done, End, MOST_ATTEMPTS, broken, fail};

impl Attempt<'_> {
    /// Looks whether everything is as the state says. What the engine would do about it is of no interest, and dropped.
    pub(crate) async fn check(&self, workspace: Workspace) -> Result<Done, StoreError> {
        if self.claim.attempt > MOST_ATTEMPTS {
            return Ok(fail(broken(format!("given up after {} attempts", self.claim.attempt - 1))));
        }
        let chosen = match self.shop.engines.choose(self.claim.engine, &workspace).await {
            Ok(chosen) => chosen,
            Err(problem) => return Ok(fail(problem)),
        };
        let plan = match self.plan(chosen, &workspace).await {
            Ok((_, plan)) => plan,
            Err(error) => return Ok(self.not_planned(error)),
        };
        self.reports.tell(&plan.warnings);
        let found = of_plan(&plan.json, |text| self.reports.redact(text));
        self.shop.store.checked(&self.claim.lease, self.take_tried(), found).await?;
        Ok(Done::End(End::Clean))
    }
}

const MOST_OBJECTS: usize = 200;
const MOST_ATTRIBUTES: usize = 50;
/// Of a value's JSON.
const LONGEST_VALUE: usize = 2_000;

/// `plan` is in the format of `tofu show -json`.
pub(crate) fn of_plan(plan: &Value, redact: impl Fn(&str) -> String) -> Drift {
    let mut drift = Drift::default();
    let mut entries: Vec<&Value> = plan["resource_drift"].as_array().into_iter().flatten().collect();
    entries.sort_by_key(|entry| entry["address"].as_str().unwrap_or_default());
    for entry in entries {
        let change = &entry["change"];
        let gone = match change["actions"].as_array().and_then(|actions| actions.first()).and_then(Value::as_str) {
            Some("delete") => true,
            Some("update") => false,
            // Such as an object that has another address now.
            _ => continue,
        };
        let mut changes = Vec::new();
        if !gone {
            let sides = Sides {
                before: &change["before"],
                after: &change["after"],
                before_marks: &change["before_sensitive"],
                after_marks: &change["after_sensitive"],
            };
            sides.compare(String::new(), &redact, &mut changes);
        }
        let count = if gone { &mut drift.summary.gone } else { &mut drift.summary.changed };
        *count += 1;
        if drift.objects.len() < MOST_OBJECTS {
            let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
            drift.objects.push(DriftedObject { address: text("address"), kind: text("type"), gone, changes });
        }
    }
    drift
}

/// One place in an object, as the state has it and as it is. Marks are true where the value is sensitive as a whole, or
/// have its shape.
#[derive(Clone, Copy)]
struct Sides<'a> {
    before: &'a Value,
    after: &'a Value,
    before_marks: &'a Value,
    after_marks: &'a Value,
}

impl<'a> Sides<'a> {
    fn compare(self, path: String, redact: &impl Fn(&str) -> String, found: &mut Vec<DriftedAttribute>) {
        if self.before == self.after || found.len() == MOST_ATTRIBUTES {
            return;
        }
        let sensitive = *self.before_marks == true || *self.after_marks == true;
        let whole = Value::Bool(true);
        match (self.before, self.after) {
            (Value::Object(before), Value::Object(after)) if !sensitive => {
                let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
                names.sort_unstable();
                names.dedup();
                for name in names {
                    let inner = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    self.map(|side| &side[name.as_str()]).compare(inner, redact, found);
                }
            }
            // Of lists of another length nobody knows which entry became which.
            (Value::Array(before), Value::Array(after)) if !sensitive && before.len() == after.len() => {
                for index in 0..before.len() {
                    self.map(|side| &side[index]).compare(format!("{path}[{index}]"), redact, found);
                }
            }
            _ => found.push(DriftedAttribute {
                path,
                before: shown(self.before, if sensitive { &whole } else { self.before_marks }, redact),
                after: shown(self.after, if sensitive { &whole } else { self.after_marks }, redact),
                sensitive,
            }),
        }
    }

    fn map(self, part: impl Fn(&'a Value) -> &'a Value) -> Sides<'a> {
        Sides {
            before: part(self.before),
            after: part(self.after),
            before_marks: part(self.before_marks),
            after_marks: part(self.after_marks),
        }
    }
}

fn shown(value: &Value, marks: &Value, redact: &impl Fn(&str) -> String) -> Value {
    let shown = masked(value, marks, redact);
    let text = shown.to_string();
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => Value::from(format!("{}…", &text[..end])),
        None => shown,
    }
}

fn masked(value: &Value, marks: &Value, redact: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::Null => Value::Null,
        _ if *marks == true => MASK.into(),
        Value::String(text) => redact(text).into(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, item)| masked(item, &marks[index], redact)).collect()
        }
        Value::Object(map) => {
            let inner = |(name, item): (&String, &Value)| (name.clone(), masked(item, &marks[name.as_str()], redact));
            Value::Object(map.iter().map(inner).collect())
        }
        Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use landform_domain::DriftSummary;
    use serde_json::json;

    use super::*;

    fn attribute(path: &str, before: Value, after: Value, sensitive: bool) -> DriftedAttribute {
        DriftedAttribute { path: path.into(), before, after, sensitive }
    }

    #[test]
    fn what_differs_is_named_by_its_path_and_what_is_secret_is_not_shown() {
        let plan = json!({"resource_drift": [
            {"address": "b.gone", "type": "b", "change": {"actions": ["delete"], "before": {"key": "s3cret"}, "after": null}},
            {"address": "a.moved", "type": "a", "change": {"actions": ["no-op"]}},
            {"address": "a.changed", "type": "a", "change": {
                "actions": ["update"],
                "before": {"name": "x", "key": "s3cret", "rules": [{"port": 1, "note": "n"}], "list": ["open"],
                    "same": 1, "told": "the password is hunter22"},
                "after": {"name": "y", "key": "s3cret too", "rules": [{"port": 2, "note": "n"}],
                    "list": ["open", "s3cret"], "same": 1, "told": null},
                "before_sensitive": {"key": true},
                "after_sensitive": {"list": [false, true]},
            }},
        ]});
        let drift = of_plan(&plan, |text| text.replace("hunter22", "(redacted)"));
        assert_eq!(drift.summary, DriftSummary { changed: 1, gone: 1 });
        assert!(!format!("{drift:?}").contains("s3cret"), "{drift:?}");
        let [changed, gone] = &drift.objects[..] else { panic!("{drift:?}") };
        assert!(gone.gone && gone.changes.is_empty() && gone.address == "b.gone");
        let expected = [
            attribute("key", MASK.into(), MASK.into(), true),
            attribute("list", json!(["open"]), json!(["open", MASK]), false),
            attribute("name", json!("x"), json!("y"), false),
            attribute("rules[0].port", json!(1), json!(2), false),
            attribute("told", json!("the password is (redacted)"), Value::Null, false),
        ];
        assert_eq!(changed.changes, expected);
    }

    #[test]
    fn a_plan_without_drift_has_none_and_a_large_one_is_bounded() {
        assert_eq!(of_plan(&json!({"resource_changes": []}), str::to_owned), Drift::default());
        let entry = |number: usize| {
            let values: serde_json::Map<String, Value> =
                (0..100).map(|at| (format!("a{at}"), "x".repeat(5000).into())).collect();
            json!({"address": format!("a.b[{number}]"), "type": "a",
                "change": {"actions": ["update"], "before": {}, "after": values}})
        };
        let plan = json!({"resource_drift": (0..300).map(entry).collect::<Vec<Value>>()});
        let drift = of_plan(&plan, str::to_owned);
        assert_eq!(drift.summary.changed, 300, "all are counted");
        assert_eq!(drift.objects.len(), MOST_OBJECTS);
        assert_eq!(drift.objects[0].changes.len(), MOST_ATTRIBUTES);
        assert!(drift.objects[0].changes[0].after.as_str().unwrap().len() < 3000);
    }
}
