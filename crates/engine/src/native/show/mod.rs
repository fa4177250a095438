//! Plans and states in the JSON of `tofu show -json`.

mod checks;
mod configuration;
mod relevant;

use std::collections::BTreeMap;
use std::sync::Arc;

use landform_cty::{Mark, Path, Step, Type, Value};
use landform_protocol::{ProviderSchema, Schema};
use serde_json::value::RawValue;
use serde_json::{Map, Value as Json, json};

use super::change::schema_marks;
use super::config::Config;
use super::content::{Content, PlannedOutput};
use super::encode;
use super::eval::parent_instance;
use super::object::{ImportTarget, Planned, Reason, bare};
use crate::state::{Instance, Resource, State, TERRAFORM_VERSION};
use crate::{Action, Address, Key, Workspace};
use checks::{checks, stored_checks};
pub use relevant::relevant;

/// The schemas of all providers that a plan or a state has to do with, by the provider's address.
pub type Schemas = BTreeMap<String, Arc<ProviderSchema>>;

pub fn schema_of<'a>(schemas: &'a Schemas, provider: &str, address: &Address) -> Option<&'a Schema> {
    let schema = schemas.get(provider)?;
    let types = if address.data { &schema.data_sources } else { &schema.resources };
    types.get(&address.type_name)
}

/// `said`: the outputs of modules that have a value, by instance.
pub fn plan(
    content: &Content,
    config: &Config,
    workspace: &Workspace,
    said: &[(String, String)],
    schemas: &Schemas,
) -> Json {
    let mut changes: Vec<&Planned> = content.changes.iter().collect();
    changes.sort_by_cached_key(|change| order(change));
    let mut json = json!({
        "format_version": "1.2",
        "terraform_version": TERRAFORM_VERSION,
        "planned_values": planned_values(content, &changes, schemas),
        "timestamp": content.timestamp,
        "errored": false,
    });
    json["configuration"] = configuration::configuration(config, schemas);
    let mut put = |name: &str, value: Json, present: bool| {
        if present {
            json[name] = value;
        }
    };
    let resources: Vec<Json> = changes.iter().map(|change| resource_change(change)).collect();
    put("resource_changes", Json::Array(resources.clone()), !resources.is_empty());
    let outputs: Map<_, _> =
        content.outputs.iter().map(|(name, output)| (name.clone(), output_change(output))).collect();
    put("output_changes", Json::Object(outputs.clone()), !outputs.is_empty());
    let shown = |value: &Json| json!({ "value": value });
    let variables = config.variables_json(workspace);
    let variables: Map<_, _> = variables.iter().map(|(name, value)| (name.clone(), shown(value))).collect();
    put("variables", Json::Object(variables.clone()), !variables.is_empty());
    let drift: Vec<Json> = content.drift.iter().map(resource_change).collect();
    put("resource_drift", Json::Array(drift.clone()), !drift.is_empty());
    let relevant = relevant(content, config, said, schemas);
    put("relevant_attributes", Json::Array(relevant.clone()), !relevant.is_empty());
    let checks = checks(&content.checks);
    put("checks", Json::Array(checks.clone()), !checks.is_empty());
    if let Ok(prior) = State::read(&content.refreshed) {
        let known = !prior.resources().is_empty() || !prior.outputs.is_empty();
        put("prior_state", state_values(&prior, schemas), known);
    }
    json
}

/// A current object comes before its deposed ones.
pub fn order(planned: &Planned) -> impl Ord + '_ {
    (planned.address.order(), &planned.deposed)
}

pub fn actions(action: Action) -> Json {
    match action {
        Action::NoOp => json!(["no-op"]),
        Action::Create => json!(["create"]),
        Action::Read => json!(["read"]),
        Action::Update => json!(["update"]),
        Action::Delete => json!(["delete"]),
        Action::Replace => json!(["delete", "create"]),
        Action::CreateBeforeDestroy => json!(["create", "delete"]),
        Action::Forget => json!(["forget"]),
        Action::ForgetThenCreate => json!(["forget", "create"]),
    }
}

fn header(address: &Address, provider: &str) -> Map<String, Json> {
    let mut header = Map::new();
    header.insert("address".into(), json!(address.to_string()));
    header.insert("mode".into(), json!(if address.data { "data" } else { "managed" }));
    header.insert("type".into(), json!(address.type_name));
    header.insert("name".into(), json!(address.name));
    match &address.key {
        Some(Key::Index(index)) => drop(header.insert("index".into(), json!(index))),
        Some(Key::Name(name)) => drop(header.insert("index".into(), json!(name))),
        None => {}
    }
    header.insert("provider_name".into(), json!(source_of(provider)));
    header
}

/// `registry.opentofu.org/hashicorp/time` of `provider["registry.opentofu.org/hashicorp/time"]`.
pub fn source_of(provider: &str) -> &str {
    provider.split('"').nth(1).unwrap_or(provider)
}

pub fn resource_change(planned: &Planned) -> Json {
    let mut json = header(&planned.address, &planned.provider);
    if !planned.address.module.is_empty() {
        json.insert("module_address".into(), json!(planned.address.module));
    }
    let mut change = Map::new();
    change.insert("actions".into(), actions(planned.action));
    change.insert("before".into(), plain(&planned.before));
    change.insert("after".into(), known(&planned.after).unwrap_or(Json::Null));
    let all_known = planned.after.is_wholly_known();
    change.insert("after_unknown".into(), if all_known { json!({}) } else { unknown_places(&planned.after) });
    change.insert("before_sensitive".into(), sensitive_places(&planned.before));
    change.insert("after_sensitive".into(), sensitive_places(&planned.after));
    if !planned.replace_paths.is_empty() {
        change.insert("replace_paths".into(), planned.replace_paths.iter().map(path).collect());
    }
    if let Some(key) = &planned.deposed {
        json.insert("deposed".into(), json!(key));
    }
    if let Some(previous) = &planned.previous {
        json.insert("previous_address".into(), json!(previous.to_string()));
    }
    match &planned.importing {
        Some(ImportTarget::Id(id)) => drop(change.insert("importing".into(), json!({ "id": id }))),
        Some(ImportTarget::Identity(identity)) => {
            change.insert("importing".into(), json!({ "identity": plain(identity) }));
        }
        None => {}
    }
    if let Some(identity) = &planned.identity_before {
        change.insert("before_identity".into(), plain(&identity.value));
    }
    if let Some(identity) = &planned.identity_after {
        change.insert("after_identity".into(), plain(&identity.value));
    }
    json.insert("change".into(), Json::Object(change));
    if let Some(reason) = planned.reason {
        json.insert("action_reason".into(), json!(reason));
    }
    Json::Object(json)
}

pub fn output_change(output: &PlannedOutput) -> Json {
    let all_known = output.after.is_wholly_known();
    let mut change = json!({
        "actions": actions(output.action()),
        "before": plain(&output.before),
        "after_unknown": if all_known { json!(false) } else { unknown_places(&output.after) },
        "before_sensitive": output.sensitive || output.was_sensitive,
        "after_sensitive": output.sensitive || output.was_sensitive,
    });
    if let Some(after) = known(&output.after) {
        change["after"] = after;
    }
    change
}

/// Two values as if one became the other.
pub fn difference(before: &Value, after: &Value) -> Json {
    let mut change = json!({
        "before": plain(before),
        "after_unknown": unknown_places(after),
        "before_sensitive": sensitive_places(before),
        "after_sensitive": sensitive_places(after),
    });
    if let Some(after) = known(after) {
        change["after"] = after;
    }
    change
}

fn planned_values(content: &Content, changes: &[&Planned], schemas: &Schemas) -> Json {
    let mut resources: Vec<(&Address, Json)> = changes
        .iter()
        .filter(|planned| !planned.after.is_null() || planned.action == Action::Forget)
        .map(|planned| {
            let mut json = header(&planned.address, &planned.provider);
            let schema = schema_of(schemas, &planned.provider, &planned.address).filter(|_| !planned.address.data);
            let version = schema.map_or(0, |schema| schema.version);
            json.insert("schema_version".into(), json!(version));
            if let Some(values) = known(&planned.after).filter(|values| values != &json!({}) && !values.is_null()) {
                json.insert("values".into(), values);
            }
            // OpenTofu forgets here what only the schema calls sensitive, where an object is made anew or read.
            let anew = planned.renews() && planned.reason != Some(Reason::ReplaceBecauseTainted);
            let forgotten = anew || planned.address.data;
            let after = match schema_of(schemas, &planned.provider, &planned.address).filter(|_| forgotten) {
                Some(schema) => without_schema_marks(&planned.after, schema),
                None => planned.after.clone(),
            };
            json.insert("sensitive_values".into(), sensitive_places(&after));
            if let Some(identity) = &planned.identity_after {
                json.insert("identity".into(), plain(&identity.value));
                json.insert("identity_schema_version".into(), json!(identity.version));
            }
            (&planned.address, Json::Object(json))
        })
        .collect();
    // By letter, where all else is by number: `[10]` comes before `[2]`.
    resources.sort_by_cached_key(|(address, _)| address.to_string());
    let mut json = json!({ "root_module": modules(resources) });
    let outputs: Map<String, Json> = content
        .outputs
        .iter()
        .filter(|(_, output)| output.action() != Action::Delete)
        .map(|(name, output)| {
            let mut shown = json!({ "sensitive": output.sensitive || output.was_sensitive });
            if output.after.is_wholly_known() {
                // OpenTofu's plan does not keep of which type a null is, unless it takes the place of a value.
                let untyped = output.after.is_null() && output.before.is_null();
                let ty = if untyped { &Type::Dynamic } else { &output.after.ty };
                shown["type"] = ty.to_json();
                shown["value"] = plain(&output.after);
            }
            (name.clone(), shown)
        })
        .collect();
    if !outputs.is_empty() {
        json["outputs"] = Json::Object(outputs);
    }
    json
}

/// A state as `tofu show -json` has it. An object whose schema is not known is shown without its values.
pub fn state(state: &State, schemas: &Schemas) -> Json {
    let mut json = state_values(state, schemas);
    if let Some(checks) = state.check_results() {
        json["checks"] = stored_checks(checks);
    }
    json
}

fn state_values(state: &State, schemas: &Schemas) -> Json {
    let all = state
        .resources()
        .iter()
        .flat_map(|resource| resource.instances.iter().map(move |instance| (resource, instance)))
        .map(|(resource, instance)| {
            (resource.address(instance.index_key.clone()), stored_object(resource, instance, schemas))
        });
    let objects: Vec<(Address, Json)> = all.collect();
    let objects = objects.iter().map(|(address, json)| (address, json.clone())).collect();
    let mut values = json!({ "root_module": modules(objects) });
    let outputs: Map<String, Json> = state
        .outputs
        .iter()
        .map(|(name, output)| {
            let parse = |raw: &RawValue| serde_json::from_str::<Json>(raw.get()).unwrap_or_default();
            let shown =
                json!({ "sensitive": output.sensitive, "value": parse(&output.value), "type": parse(&output.ty) });
            (name.clone(), shown)
        })
        .collect();
    if !outputs.is_empty() {
        values["outputs"] = Json::Object(outputs);
    }
    json!({ "format_version": "1.0", "terraform_version": TERRAFORM_VERSION, "values": values })
}

/// The modules of some objects, each in its parent.
fn modules(objects: Vec<(&Address, Json)>) -> Json {
    #[derive(Default)]
    struct Place {
        resources: Vec<Json>,
        children: std::collections::BTreeSet<String>,
    }
    let mut places: BTreeMap<String, Place> = BTreeMap::from([(String::new(), Place::default())]);
    for (address, json) in objects {
        let mut module = address.module.as_str();
        places.entry(module.to_owned()).or_default().resources.push(json);
        while !module.is_empty() {
            let parent = parent_instance(module);
            places.entry(parent.to_owned()).or_default().children.insert(module.to_owned());
            module = parent;
        }
    }
    fn write(places: &mut BTreeMap<String, Place>, module: &str) -> Json {
        let Place { resources, children } = places.remove(module).unwrap_or_default();
        let mut json = Map::new();
        if !resources.is_empty() {
            json.insert("resources".into(), Json::Array(resources));
        }
        if !module.is_empty() {
            json.insert("address".into(), json!(module));
        }
        if !children.is_empty() {
            json.insert("child_modules".into(), children.iter().map(|child| write(places, child)).collect());
        }
        Json::Object(json)
    }
    write(&mut places, "")
}

pub fn stored_object(resource: &Resource, instance: &Instance, schemas: &Schemas) -> Json {
    let address = resource.address(instance.index_key.clone());
    let mut json = header(&address, &resource.provider);
    json.insert("schema_version".into(), json!(instance.schema_version));
    if let Some(schema) = schema_of(schemas, &resource.provider, &address)
        && let Ok(value) = encode::stored_value(instance, &schema.block)
    {
        json.insert("values".into(), plain(&value));
        json.insert("sensitive_values".into(), sensitive_places(&value));
    }
    if !instance.dependencies.is_empty() {
        json.insert("depends_on".into(), json!(instance.dependencies));
    }
    if instance.tainted() {
        json.insert("tainted".into(), json!(true));
    }
    if let Some(identity) = &instance.identity {
        json.insert("identity".into(), serde_json::from_str(identity.get()).unwrap_or_default());
        if let Some(version) = instance.identity_schema_version {
            json.insert("identity_schema_version".into(), json!(version));
        }
    }
    if let Some(key) = &instance.deposed {
        json.insert("deposed_key".into(), json!(key));
    }
    Json::Object(json)
}

fn without_schema_marks(value: &Value, schema: &Schema) -> Value {
    let from_schema = schema_marks(&schema.block, value);
    let (bare, mut places) = value.clone().unmark_deep_with_paths();
    places.retain(|(path, _)| !from_schema.iter().any(|(other, _)| other == path));
    bare.mark_paths(&places)
}

fn path(path: &Path) -> Json {
    let step = |step: &Step| match step {
        Step::Attribute(name) | Step::Key(name) => json!(name),
        Step::Index(index) => json!(index),
        Step::Element(element) => plain(element),
    };
    path.iter().map(step).collect()
}

fn plain(value: &Value) -> Json {
    bare(value).to_plain_json().unwrap_or(Json::Null)
}

/// What is known of a value; `None` if nothing is.
fn known(value: &Value) -> Option<Json> {
    if !value.is_known() {
        return None;
    }
    if let Some(elements) = value.as_sequence() {
        return Some(elements.iter().map(|element| known(element).unwrap_or(Json::Null)).collect());
    }
    if let Some(fields) = value.as_mapping() {
        let fields = fields.iter().filter_map(|(name, field)| Some((name.clone(), known(field)?)));
        return Some(Json::Object(fields.collect()));
    }
    Some(plain(value))
}

fn unknown_places(value: &Value) -> Json {
    places(value, &|value| !value.is_known())
}

fn sensitive_places(value: &Value) -> Json {
    places(value, &|value| value.has_mark(Mark::Sensitive))
}

/// The shape of a value with `true` where something holds; fields of which nothing can be said are left out.
fn places(value: &Value, holds: &dyn Fn(&Value) -> bool) -> Json {
    if holds(value) {
        return json!(true);
    }
    match &value.ty {
        _ if value.is_null() => json!(false),
        Type::List(_) | Type::Set(_) | Type::Tuple(_) => {
            let elements = value.as_sequence().unwrap_or_default();
            elements.iter().map(|element| places(element, holds)).collect()
        }
        Type::Map(_) | Type::Object { .. } => {
            let fields = value.as_mapping().into_iter().flatten();
            let shapes = fields.map(|(name, field)| (name.clone(), places(field, holds)));
            Json::Object(shapes.filter(|(_, shape)| *shape != json!(false)).collect())
        }
        _ => json!(false),
    }
}
