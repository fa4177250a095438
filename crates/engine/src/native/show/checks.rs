use serde_json::value::RawValue;
use serde_json::{Map, Value as Json, json};

use crate::native::config::module_path;
use crate::native::eval::{Checked, Checks, Kind, Objects, status};
use crate::{Address, Key};

/// The results of checks, in the form of a plan's JSON: in the order of the address.
pub fn checks(checks: &Checks) -> Vec<Json> {
    let mut all: Vec<(&(Kind, String), &Objects)> = checks.0.iter().collect();
    all.sort_by_key(|((_, config), _)| config.clone());
    all.into_iter().map(|((kind, config), objects)| check(*kind, config, objects)).collect()
}

/// The same from what a state says.
pub fn stored_checks(stored: &RawValue) -> Json {
    let stored: Json = serde_json::from_str(stored.get()).unwrap_or_default();
    let mut results = Checks::default();
    for entry in stored.as_array().into_iter().flatten() {
        let Ok(kind) = serde_json::from_value::<Kind>(entry["object_kind"].clone()) else { continue };
        let config = entry["config_addr"].as_str().unwrap_or_default().to_owned();
        results.declare(kind, config.clone());
        if entry["status"] != "unknown" {
            results.expand(kind, config.clone(), []);
        }
        for object in entry["objects"].as_array().into_iter().flatten() {
            let failures = object["failure_messages"].as_array().into_iter().flatten();
            let checked = Checked {
                status: serde_json::from_value(object["status"].clone()).unwrap_or_default(),
                failures: failures.filter_map(|failure| Some(failure.as_str()?.to_owned())).collect(),
            };
            let address = object["object_addr"].as_str().unwrap_or_default().to_owned();
            results.record(kind, config.clone(), address, checked);
        }
    }
    Json::Array(checks(&results))
}

fn check(kind: Kind, config: &str, objects: &Objects) -> Json {
    let mut address = Map::new();
    let kind_text = match kind {
        Kind::Var => "var",
        Kind::Resource => "resource",
        Kind::Output => "output_value",
        Kind::Check => "check",
    };
    address.insert("kind".into(), json!(kind_text));
    address.insert("to_display".into(), json!(config));
    match (kind, Address::parse(config)) {
        (Kind::Resource, Some(resource)) => {
            address.insert("mode".into(), json!(if resource.data { "data" } else { "managed" }));
            address.insert("type".into(), json!(resource.type_name));
            address.insert("name".into(), json!(resource.name));
            if !resource.module.is_empty() {
                address.insert("module".into(), json!(module_path(&resource.module)));
            }
        }
        (_, Some(thing)) => {
            address.insert("name".into(), json!(thing.name));
            if !thing.module.is_empty() {
                address.insert("module".into(), json!(thing.module));
            }
        }
        (_, None) => {}
    }
    let instance = |(object, checked): (&String, &Option<Checked>)| {
        let mut address = Map::new();
        address.insert("to_display".into(), json!(object));
        if let Some(parsed) = Address::parse(object) {
            match parsed.key {
                Some(Key::Index(index)) => drop(address.insert("instance_key".into(), json!(index))),
                Some(Key::Name(name)) => drop(address.insert("instance_key".into(), json!(name))),
                None => {}
            }
            if !parsed.module.is_empty() {
                address.insert("module".into(), json!(parsed.module));
            }
        }
        let mut json = json!({ "address": address, "status": status(checked) });
        if let Some(checked) = checked.as_ref().filter(|checked| !checked.failures.is_empty()) {
            json["problems"] = checked.failures.iter().map(|message| json!({ "message": message })).collect();
        }
        json
    };
    let mut json = json!({ "address": address, "status": Checks::status(objects) });
    let instances: Vec<Json> = objects.iter().flatten().map(instance).collect();
    if !instances.is_empty() {
        json["instances"] = Json::Array(instances);
    }
    json
}
