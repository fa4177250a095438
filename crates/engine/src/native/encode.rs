//! Values as the state writes them.

use landform_cty::{Data, Mark, Marks, Path, Step, Type, Value};
use landform_protocol::{Block, Schema};
use serde_json::Value as Json;
use serde_json::value::RawValue;

use super::change::{mark_existing, schema_marks};
use super::eval::{Checked, Checks, Status, status};
use super::object::Object;
use crate::Address;
use crate::state::{Instance, Resource, StateOutput};

/// The attributes of an object, in the order in which OpenTofu writes them. The value is known and without marks.
pub fn attributes(value: &Value, ty: &Type) -> Result<Box<RawValue>, String> {
    let mut text = String::new();
    write(value, ty, &mut text).map_err(|error| error.to_string())?;
    raw(text)
}

pub fn raw(text: String) -> Result<Box<RawValue>, String> {
    RawValue::from_string(text).map_err(|error| error.to_string())
}

/// Like [`Value::to_json`], but as text: a value of open type has its value before its type.
fn write(value: &Value, ty: &Type, out: &mut String) -> Result<(), landform_cty::CodecError> {
    match (&value.data, ty) {
        (_, Type::Dynamic) if value.ty != Type::Dynamic => {
            out.push_str("{\"value\":");
            write(value, &value.ty, out)?;
            out.push_str(",\"type\":");
            out.push_str(&value.ty.to_json().to_string());
            out.push('}');
        }
        (Data::Mapping(fields), Type::Object { .. } | Type::Map(_)) => {
            out.push('{');
            for (at, (name, field)) in fields.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                out.push_str(&Json::from(name.as_str()).to_string());
                out.push(':');
                let inner = ty.attribute(name).or(ty.element()).unwrap_or(&Type::Dynamic);
                write(field, inner, out)?;
            }
            out.push('}');
        }
        (Data::Sequence(elements), _) => {
            out.push('[');
            for (at, element) in elements.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(element, element_type(ty, at), out)?;
            }
            out.push(']');
        }
        _ => out.push_str(&value.to_json(ty)?.to_string()),
    }
    Ok(())
}

/// The `sensitive_attributes` of an instance, in the order of keys that OpenTofu writes. Elements of sets have no path of
/// their own and do not appear.
pub fn paths_text(paths: &[Path]) -> String {
    let step = |step: &Step| match step {
        Step::Attribute(name) => format!(r#"{{"type":"get_attr","value":{}}}"#, Json::from(name.as_str())),
        Step::Key(key) => {
            format!(r#"{{"type":"index","value":{{"value":{},"type":"string"}}}}"#, Json::from(key.as_str()))
        }
        Step::Index(index) => format!(r#"{{"type":"index","value":{{"value":{index},"type":"number"}}}}"#),
        Step::Element(_) => String::new(),
    };
    let writable = |path: &&Path| !path.iter().any(|step| matches!(step, Step::Element(_)));
    let path = |path: &Path| format!("[{}]", path.iter().map(step).collect::<Vec<_>>().join(","));
    format!("[{}]", paths.iter().filter(writable).map(path).collect::<Vec<_>>().join(","))
}

/// The same as JSON.
pub fn paths_json(paths: &[Path]) -> Json {
    serde_json::from_str(&paths_text(paths)).expect("written just now")
}

pub fn paths_from_json(json: &Json) -> Result<Vec<Path>, String> {
    let paths = json.as_array().ok_or("a list of paths was expected")?;
    paths.iter().map(path_from_json).collect()
}

fn path_from_json(json: &Json) -> Result<Path, String> {
    let steps = json.as_array().ok_or("a list of path steps was expected")?;
    let read = |step: &Json| {
        let value = &step["value"];
        match (step["type"].as_str(), value.as_str(), &value["value"]) {
            (Some("get_attr"), Some(name), _) => Some(Step::Attribute(name.to_owned())),
            (Some("index"), _, Json::String(key)) => Some(Step::Key(key.clone())),
            (Some("index"), _, Json::Number(index)) => Some(Step::Index(usize::try_from(index.as_u64()?).ok()?)),
            _ => None,
        }
    };
    steps.iter().map(|step| read(step).ok_or_else(|| format!("{step} is no path step"))).collect()
}

pub fn sensitive_paths(instance: &Instance) -> Result<Vec<Path>, String> {
    let Some(raw) = &instance.sensitive_attributes else { return Ok(Vec::new()) };
    paths_from_json(&serde_json::from_str(raw.get()).map_err(|error| error.to_string())?)
}

/// An object as it goes into the state.
pub fn instance(schema: &Schema, address: &Address, object: &Object) -> Result<Instance, String> {
    let (value, marked) = object.value.clone().unmark_deep_with_paths();
    let sensitive: Vec<Path> =
        marked.into_iter().filter(|(_, marks)| marks.contains(&Mark::Sensitive)).map(|(path, _)| path).collect();
    let mut dependencies = object.dependencies.clone();
    dependencies.sort();
    dependencies.dedup();
    let mut instance = Instance {
        index_key: address.key.clone(),
        // What was read has no form of its own to be upgraded from.
        schema_version: if address.data { 0 } else { u64::try_from(schema.version).unwrap_or_default() },
        attributes: Some(attributes(&value, &schema.block.implied_type())?),
        sensitive_attributes: Some(raw(paths_text(&sensitive))?),
        private: object.private.clone(),
        identity: object.identity.as_ref().map(|it| attributes(&it.value, &it.value.ty)).transpose()?,
        identity_schema_version: object.identity.as_ref().map(|it| u64::try_from(it.version).unwrap_or_default()),
        dependencies,
        create_before_destroy: object.create_before_destroy,
        skip_destroy: object.skip_destroy,
        ..Instance::default()
    };
    instance.set_tainted(object.tainted);
    Ok(instance)
}

/// A `resources` entry of the state with these instances of one object, for the journal.
pub fn entry(address: &Address, provider: &str, instances: &[&Instance]) -> Json {
    let mut resource = Resource::managed(&address.type_name, &address.name, provider);
    resource.module.clone_from(&address.module);
    resource.instances.extend(instances.iter().map(|instance| (*instance).clone()));
    serde_json::to_value(&resource).expect("an instance has string keys only")
}

/// An output as it goes into the state; a null one does not.
pub fn output(value: &Value, sensitive: bool) -> Result<Option<StateOutput>, String> {
    if value.is_null() { Ok(None) } else { present_output(value, sensitive).map(Some) }
}

/// The same, also for one that is null.
pub fn present_output(value: &Value, sensitive: bool) -> Result<StateOutput, String> {
    let ty = raw(value.ty.to_json().to_string())?;
    Ok(StateOutput { value: attributes(value, &value.ty)?, ty, sensitive, deprecated: String::new() })
}

/// The results of checks as the state has them; `None` if nothing is checked.
pub fn check_results(checks: &Checks) -> Option<Box<RawValue>> {
    if checks.0.is_empty() {
        return None;
    }
    let text = |value: &dyn ToString| Json::from(value.to_string()).to_string();
    let word = |status: Status| serde_json::to_string(&status).unwrap_or_default();
    let mut out = Vec::new();
    for ((kind, config), objects) in &checks.0 {
        let object = |(address, checked): (&String, &Option<Checked>)| {
            let failures = match checked.as_ref().map_or(&[][..], |checked| &checked.failures) {
                [] => String::new(),
                failures => format!(",\"failure_messages\":{}", Json::from(failures.to_vec())),
            };
            format!("{{\"object_addr\":{},\"status\":{}{failures}}}", text(address), word(status(checked)))
        };
        let objects_text: Vec<String> = objects.iter().flatten().map(object).collect();
        let objects_text =
            if objects_text.is_empty() { "null".to_owned() } else { format!("[{}]", objects_text.join(",")) };
        let kind = serde_json::to_string(kind).unwrap_or_default();
        out.push(format!(
            "{{\"object_kind\":{kind},\"config_addr\":{},\"status\":{},\"objects\":{objects_text}}}",
            text(config),
            word(Checks::status(objects)),
        ));
    }
    raw(format!("[{}]", out.join(","))).ok()
}

/// What is known of an object, for the journal: the rest is left out. `None` if nothing is, or if there is no object.
pub fn known_json(value: &Value, ty: &Type) -> Option<Json> {
    if value.is_null() { None } else { known_part(value, ty) }
}

fn known_part(value: &Value, ty: &Type) -> Option<Json> {
    if !value.is_known() {
        return None;
    }
    match (value.as_sequence(), value.as_mapping()) {
        // A value of open type is written together with its type.
        _ if *ty == Type::Dynamic => value.to_json(ty).ok(),
        (Some(elements), _) => {
            let part = |(at, element)| known_part(element, element_type(ty, at));
            elements.iter().enumerate().map(part).collect::<Option<Vec<Json>>>().map(Json::Array)
        }
        (_, Some(fields)) => {
            let part = |(name, field): (&String, &Value)| {
                let inner = ty.attribute(name).or(ty.element()).unwrap_or(&Type::Dynamic);
                Some((name.clone(), known_part(field, inner)?))
            };
            Some(Json::Object(fields.iter().filter_map(part).collect()))
        }
        _ => value.to_json(ty).ok(),
    }
}

fn element_type(ty: &Type, at: usize) -> &Type {
    match ty {
        Type::Tuple(types) => types.get(at),
        _ => ty.element(),
    }
    .unwrap_or(&Type::Dynamic)
}

/// A value with these attributes in the place of its own; what [`known_json`] has left out stays as it is.
pub fn laid_over(value: &Value, known: &Json, ty: &Type) -> Option<Value> {
    Value::from_json(&merged(&value.to_json(ty).ok()?, known, ty), ty).ok()
}

fn merged(under: &Json, over: &Json, ty: &Type) -> Json {
    match (over, ty) {
        (Json::Object(fields), Type::Object { attributes, .. }) => {
            let part = |(name, ty): (&String, &Type)| {
                let kept = &under[name.as_str()];
                (name.clone(), fields.get(name).map_or_else(|| kept.clone(), |field| merged(kept, field, ty)))
            };
            Json::Object(attributes.iter().map(part).collect())
        }
        (Json::Object(fields), Type::Map(element)) => {
            let part = |(name, field): (&String, &Json)| (name.clone(), merged(&Json::Null, field, element));
            Json::Object(fields.iter().map(part).collect())
        }
        (Json::Array(elements), Type::List(_) | Type::Set(_) | Type::Tuple(_)) => {
            // The elements of a set, and those of a list that has become longer or shorter, belong to nobody.
            let kept = under.as_array().filter(|kept| kept.len() == elements.len() && !matches!(ty, Type::Set(_)));
            let part = |(at, element): (usize, &Json)| {
                let kept = kept.map_or(&Json::Null, |kept| &kept[at]);
                merged(kept, element, element_type(ty, at))
            };
            Json::Array(elements.iter().enumerate().map(part).collect())
        }
        _ => over.clone(),
    }
}

/// An object as the state has it, with the marks of both state and schema. The provider is not asked, so the object must
/// be of the schema's version.
pub fn stored_value(instance: &Instance, block: &Block) -> Result<Value, String> {
    let ty = block.implied_type();
    let attributes = without_removed(instance.attributes.as_ref().map_or("{}", |raw| raw.get()), &ty);
    let json = serde_json::from_slice(&attributes).map_err(|error| error.to_string())?;
    let value = Value::from_json(&json, &ty).map_err(|error| error.to_string())?;
    let places: Vec<(Path, Marks)> =
        sensitive_paths(instance)?.into_iter().map(|path| (path, [Mark::Sensitive].into())).collect();
    let from_schema = schema_marks(block, &value);
    Ok(mark_existing(mark_existing(value, &places), &from_schema))
}

/// The stored attributes without those that the schema has no longer; providers refuse what they do not know.
pub fn without_removed(attributes: &str, ty: &Type) -> Vec<u8> {
    let Ok(mut json) = serde_json::from_str::<Json>(attributes) else { return attributes.into() };
    if strip(&mut json, ty) { json.to_string().into_bytes() } else { attributes.into() }
}

fn strip(json: &mut Json, ty: &Type) -> bool {
    match (json, ty) {
        (Json::Object(fields), Type::Object { attributes, .. }) => {
            let before = fields.len();
            fields.retain(|name, _| attributes.contains_key(name));
            let mut changed = fields.len() != before;
            for (name, field) in fields.iter_mut() {
                changed |= attributes.get(name).is_some_and(|ty| strip(field, ty));
            }
            changed
        }
        (Json::Object(fields), Type::Map(element)) => {
            fields.iter_mut().fold(false, |changed, (_, field)| strip(field, element) | changed)
        }
        (Json::Array(elements), Type::List(element) | Type::Set(element)) => {
            elements.iter_mut().fold(false, |changed, field| strip(field, element) | changed)
        }
        (Json::Array(elements), Type::Tuple(types)) => {
            elements.iter_mut().zip(types.iter()).fold(false, |changed, (field, ty)| strip(field, ty) | changed)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_of_open_type_is_written_value_first() {
        let ty = Type::object([("a", Type::Dynamic), ("b", Type::list(Type::Number))]);
        let value = Value::object([
            ("a", Value::object([("x", Value::from("y"))])),
            ("b", Value::list(Type::Number, vec![Value::number(1)])),
        ]);
        let text = r#"{"a":{"value":{"x":"y"},"type":["object",{"x":"string"}]},"b":[1]}"#;
        assert_eq!(attributes(&value, &ty).unwrap().get(), text);
    }

    #[test]
    fn what_is_not_known_stays_as_it_was() {
        let part = Type::object([("id", Type::String), ("key", Type::String)]);
        let ty = Type::object([("open", Type::Dynamic), ("name", Type::String), ("parts", Type::list(part))]);
        let object = |open: Value, name: Value, id: Value, key: &str| {
            let part = Value::object([("id", id), ("key", Value::from(key))]);
            let parts = Value::list(part.ty.clone(), vec![part]);
            Value::object([("open", open), ("name", name), ("parts", parts)])
        };
        let stored = object(Value::from("x"), Value::from("n"), Value::from("1"), "old");
        let planned = object(Value::number(7), Value::null(Type::String), Value::unknown(Type::String), "new");
        let known = known_json(&planned, &ty).unwrap();
        let after = object(Value::number(7), Value::null(Type::String), Value::from("1"), "new");
        assert_eq!(laid_over(&stored, &known, &ty).unwrap(), after);
        assert_eq!(known_json(&Value::null(ty.clone()), &ty), None);
    }

    #[test]
    fn paths_survive_a_round_trip() {
        let paths = vec![vec![Step::Attribute("a".into()), Step::Index(2), Step::Key("k".into())], Vec::new()];
        assert_eq!(paths_from_json(&paths_json(&paths)).unwrap(), paths);
        assert!(paths_from_json(&json!([[{"type": "odd", "value": 1}]])).is_err());
    }

    #[test]
    fn attributes_of_old_schemas_are_left_out() {
        let ty = Type::object([("a", Type::list(Type::object([("b", Type::Number)])))]);
        let stripped = without_removed(r#"{"a":[{"b":1,"c":2}],"d":3}"#, &ty);
        assert_eq!(String::from_utf8(stripped).unwrap(), r#"{"a":[{"b":1}]}"#);
        let text = r#"{ "a": [ {"b": 1.0} ] }"#;
        assert_eq!(without_removed(text, &ty), text.as_bytes(), "untouched where nothing is removed");
    }
}
