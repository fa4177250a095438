//! Plans and states without what is made up anew each time, and nothing else taken away.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value as Json;

/// A plan without its time. Paths that force a replacement are a set, and so is what decided about the changes. What OpenTofu forgets to call sensitive among the planned values of a replaced object, the
/// native engine does not forget, so that is not compared.
pub fn plan(mut json: Json) -> Json {
    if let Some(fields) = json.as_object_mut() {
        fields.remove("timestamp");
    }
    if let Some(relevant) = json.get_mut("relevant_attributes").and_then(Json::as_array_mut) {
        relevant.sort_by_key(Json::to_string);
    }
    let mut replaced = Vec::new();
    for change in json["resource_changes"].as_array_mut().into_iter().flatten() {
        if let Some(paths) = change["change"]["replace_paths"].as_array_mut() {
            paths.sort_by_key(Json::to_string);
        }
        if change["change"]["actions"].as_array().is_some_and(|actions| actions.len() == 2) {
            replaced.push(change["address"].clone());
        }
    }
    forget_replaced(&mut json["planned_values"]["root_module"], &replaced);
    Symbols::default().blurred(json, false)
}

fn forget_replaced(module: &mut Json, replaced: &[Json]) {
    let Some(module) = module.as_object_mut() else { return };
    for resource in module.get_mut("resources").and_then(Json::as_array_mut).into_iter().flatten() {
        if replaced.contains(&resource["address"]) {
            resource["sensitive_values"] = Json::Null;
        }
    }
    for child in module.get_mut("child_modules").and_then(Json::as_array_mut).into_iter().flatten() {
        forget_replaced(child, replaced);
    }
}

/// Results of checks are a set, and so are the objects and instances of each: OpenTofu writes them in another order every
/// time. Done where two sides meet, so that it holds for what was recorded too.
pub fn checks_in_order(json: &mut Json) {
    for name in ["checks", "check_results"] {
        let Some(results) = json.get_mut(name).and_then(Json::as_array_mut) else { continue };
        for result in results.iter_mut() {
            for inner in ["objects", "instances"] {
                if let Some(inner) = result.get_mut(inner).and_then(Json::as_array_mut) {
                    inner.sort_by_key(Json::to_string);
                }
            }
        }
        results.sort_by_key(Json::to_string);
    }
}

/// Modules inside of modules are listed by OpenTofu as their objects happen to be planned; those of the root by name.
pub fn modules_in_order(json: &mut Json) {
    let Some(root) = json.get_mut("planned_values").and_then(|values| values.get_mut("root_module")) else { return };
    for child in children(root) {
        sort_below(child);
    }
}

fn children(module: &mut Json) -> impl Iterator<Item = &mut Json> {
    module.get_mut("child_modules").and_then(Json::as_array_mut).into_iter().flatten()
}

fn sort_below(module: &mut Json) {
    if let Some(inner) = module.get_mut("child_modules").and_then(Json::as_array_mut) {
        inner.sort_by_key(|child| child["address"].to_string());
    }
    children(module).for_each(sort_below);
}

/// Whether the number of this state, and of all that follow, is a matter of luck. OpenTofu counts a state whose text differs
/// from the one before, and several results of checks come out in another order every time: the same state is now and
/// then a new one to it.
pub fn serial_is_chance(state: &Json) -> bool {
    let several = |list: &Json| list.as_array().is_some_and(|list| list.len() > 1);
    let results = &state["check_results"];
    several(results) || results.as_array().into_iter().flatten().any(|result| several(&result["objects"]))
}

pub fn state(mut json: Json) -> Json {
    json["lineage"] = Json::Null;
    Symbols::default().blurred(json, false)
}

/// Ids are numbered where they first appear, so that one in a wrong place is still a difference.
#[derive(Default)]
pub struct Symbols {
    known: HashMap<String, usize>,
}

static UUID: LazyLock<Regex> = LazyLock::new(|| regex("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
static TIME: LazyLock<Regex> =
    LazyLock::new(|| regex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?Z"));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is one")
}

/// What `hashicorp/time` tells of the time in numbers.
const TIME_PARTS: [&str; 7] = ["unix", "second", "minute", "hour", "day", "month", "year"];

impl Symbols {
    fn blurred(&mut self, json: Json, of_time: bool) -> Json {
        match json {
            Json::Object(fields) => {
                let of_time =
                    of_time || fields.get("type").and_then(Json::as_str).is_some_and(|name| name.starts_with("time_"));
                let fields = fields.into_iter().map(|(name, inner)| {
                    let inner = match inner {
                        Json::Number(_) if of_time && TIME_PARTS.contains(&name.as_str()) => "«time»".into(),
                        // The key of an object that was replaced and is still there is drawn by lot.
                        Json::String(_) if name == "deposed" || name == "deposed_key" => "«deposed»".into(),
                        inner => self.blurred(inner, of_time),
                    };
                    (name, inner)
                });
                Json::Object(fields.collect())
            }
            Json::Array(elements) => elements.into_iter().map(|inner| self.blurred(inner, of_time)).collect(),
            Json::String(text) => Json::String(self.text(&text)),
            other => other,
        }
    }

    pub fn text(&mut self, text: &str) -> String {
        let without_ids = UUID.replace_all(text, |found: &regex::Captures<'_>| {
            let next = self.known.len() + 1;
            format!("«id {}»", self.known.entry(found[0].to_owned()).or_insert(next))
        });
        TIME.replace_all(&without_ids, "«time»").into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_modules_inside_of_modules_may_come_in_any_order() {
        let module = |address: &str, inner: Json| json!({"address": address, "child_modules": inner});
        let plan = |inner: Json| {
            let mut plan = json!({"planned_values": {"root_module": {"child_modules": inner}}});
            modules_in_order(&mut plan);
            plan
        };
        let leaf = |address| module(address, json!([]));
        let (ab, ba) = (json!([leaf("a"), leaf("b")]), json!([leaf("b"), leaf("a")]));
        assert_eq!(plan(json!([module("m", ab.clone())])), plan(json!([module("m", ba.clone())])));
        assert_ne!(plan(ab), plan(ba));
    }

    #[test]
    fn ids_keep_their_flow_and_times_go() {
        let (a, b) = ("0f8fad5b-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7");
        let read =
            |x: &str, y: &str| state(json!({"a": a, "b": format!("of {x}"), "c": y, "t": "2026-11-16T03:00:00Z"}));
        assert_eq!(read(a, b)["b"], "of «id 1»");
        assert_ne!(read(a, b), read(b, b));
        assert_eq!(read(a, b)["t"], "«time»");
        let time = json!({"type": "time_static", "unix": 17, "triggers": {"n": 17}});
        assert_eq!(state(time)["unix"], "«time»");
        assert_eq!(state(json!({"type": "other", "unix": 17}))["unix"], 17);
    }
}
