//! Small things about JSON that both worlds need.

use serde_json::{Map, Value};

/// Writes every field of `change` that is not null into `object`; fields that are objects on both sides are merged.
pub fn merge(object: &mut Map<String, Value>, change: &Map<String, Value>) {
    for (name, value) in change {
        match (object.get_mut(name), value) {
            (_, Value::Null) => {}
            (Some(Value::Object(inner)), Value::Object(change)) => merge(inner, change),
            (_, value) => drop(object.insert(name.clone(), value.clone())),
        }
    }
}

/// The object's field as a text, or an empty one.
pub fn text(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn null_changes_nothing_and_objects_are_merged() {
        let mut object = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1]});
        let change = json!({"a": null, "b": {"c": 4}, "e": [], "f": "new"});
        merge(object.as_object_mut().expect("object"), change.as_object().expect("object"));
        assert_eq!(object, json!({"a": 1, "b": {"c": 4, "d": 3}, "e": [], "f": "new"}));
    }
}
