//! The configuration as a plan's JSON shows it: blocks and expressions, not their values.

use std::collections::BTreeMap;

use landform_lang::{Outline, Part, Repetition, Resource, Variable, outline, outline_body};
use landform_protocol::Block;
use serde_json::{Map, Value as Json, json};

use super::{Schemas, source_of};
use crate::native::config::{Config, ModuleId, body_spec};

pub fn configuration(config: &Config, schemas: &Schemas) -> Json {
    let providers = Providers::of(config, schemas);
    let mut json = Map::new();
    let shown: Map<String, Json> = providers
        .0
        .iter()
        .filter(|(_, entry)| entry.passed_from.is_none())
        .map(|(key, entry)| (key.clone(), Json::Object(entry.json.clone())))
        .collect();
    put(&mut json, "provider_config", Json::Object(shown));
    json.insert("root_module".into(), module(config, 0, &providers, schemas));
    Json::Object(json)
}

/// What is empty is left out.
fn put(json: &mut Map<String, Json>, name: &str, value: Json) {
    let empty = match &value {
        Json::Null | Json::Bool(false) => true,
        Json::String(text) => text.is_empty(),
        Json::Array(elements) => elements.is_empty(),
        Json::Object(fields) => fields.is_empty(),
        _ => false,
    };
    if !empty {
        json.insert(name.to_owned(), value);
    }
}

fn module(config: &Config, id: ModuleId, providers: &Providers, schemas: &Schemas) -> Json {
    let node = &config.modules[id];
    let mut json = Map::new();
    let outputs = node.module.outputs.values().map(|output| {
        let mut shown = Map::from_iter([("expression".to_owned(), expression(&outline(&output.value)))]);
        put(&mut shown, "sensitive", output.sensitive.into());
        put(&mut shown, "ephemeral", output.ephemeral.into());
        put(&mut shown, "deprecated", output.deprecated.clone().unwrap_or_default().into());
        put(&mut shown, "description", output.description.clone().into());
        put(&mut shown, "depends_on", output.depends_on.iter().map(ToString::to_string).collect());
        (output.name.clone(), Json::Object(shown))
    });
    put(&mut json, "outputs", Json::Object(outputs.collect()));
    let mut blocks: Vec<&Resource> = node.module.resources.iter().collect();
    blocks.sort_by_key(|block| (block.data, block.address()));
    let resources = blocks.into_iter().map(|block| resource(config, id, block, providers, schemas));
    put(&mut json, "resources", resources.collect());
    let calls = node.module.calls.values().filter_map(|call| {
        let inner = *node.children.get(&call.name)?;
        let mut shown = Map::new();
        put(&mut shown, "source", call.source.clone().into());
        let inputs = call.inputs.iter().map(|(name, expr)| (name.clone(), expression(&outline(expr))));
        put(&mut shown, "expressions", Json::Object(inputs.collect()));
        repetition(&mut shown, &call.repetition);
        shown.insert("module".into(), module(config, inner, providers, schemas));
        put(&mut shown, "depends_on", call.depends_on.iter().map(ToString::to_string).collect());
        Some((call.name.clone(), Json::Object(shown)))
    });
    put(&mut json, "module_calls", Json::Object(calls.collect()));
    let variables = node.module.variables.values().map(|declared| (declared.name.clone(), variable(declared)));
    put(&mut json, "variables", Json::Object(variables.collect()));
    Json::Object(json)
}

fn resource(config: &Config, id: ModuleId, block: &Resource, providers: &Providers, schemas: &Schemas) -> Json {
    let alias = block.provider.as_ref().and_then(|(_, alias)| alias.as_deref());
    let key = Providers::key(&config.modules[id].path, &compact(block.provider_name(), alias));
    let mut json = Map::from_iter([
        ("address".to_owned(), json!(block.address())),
        ("mode".to_owned(), json!(if block.data { "data" } else { "managed" })),
        ("type".to_owned(), json!(block.resource_type)),
        ("name".to_owned(), json!(block.name)),
        ("provider_config_key".to_owned(), json!(providers.source(&key))),
    ]);
    let types = schemas.get(&config.provider_of(id, block)).map(|schema| match block.data {
        true => &schema.data_sources,
        false => &schema.resources,
    });
    if let Some(schema) = types.and_then(|types| types.get(&block.resource_type)) {
        // Data is not stored for long, so its schema has no version that matters.
        json.insert("schema_version".into(), json!(if block.data { 0 } else { schema.version }));
        put(&mut json, "expressions", parts(&outline_body(&block.body, &body_spec(&schema.block))));
    }
    repetition(&mut json, &block.repetition);
    put(&mut json, "depends_on", block.depends_on.iter().map(ToString::to_string).collect());
    Json::Object(json)
}

fn repetition(json: &mut Map<String, Json>, repetition: &Repetition) {
    match repetition {
        Repetition::Once | Repetition::Enabled(_) => {}
        Repetition::Count(expr) => put(json, "count_expression", expression(&outline(expr))),
        Repetition::ForEach(expr) => put(json, "for_each_expression", expression(&outline(expr))),
    }
}

fn variable(declared: &Variable) -> Json {
    let mut json = Map::new();
    if declared.ty != landform_cty::Type::Dynamic {
        json.insert("type".into(), declared.ty.to_json());
    }
    match &declared.default {
        Some(default) => drop(json.insert("default".into(), default.to_plain_json().unwrap_or_default())),
        None => drop(json.insert("required".into(), json!(true))),
    }
    put(&mut json, "description", declared.description.clone().into());
    put(&mut json, "deprecated", declared.deprecated.clone().unwrap_or_default().into());
    put(&mut json, "sensitive", declared.sensitive.into());
    put(&mut json, "ephemeral", declared.ephemeral.into());
    Json::Object(json)
}

fn expression(outline: &Outline) -> Json {
    let mut json = Map::new();
    if let Some(value) = &outline.constant {
        json.insert("constant_value".into(), value.clone());
    }
    put(&mut json, "references", outline.references.clone().into());
    Json::Object(json)
}

fn parts(said: &BTreeMap<String, Part>) -> Json {
    let part = |part: &Part| match part {
        Part::Argument(outline) => expression(outline),
        Part::Block(inner) => parts(inner),
        Part::Blocks(all) => all.iter().map(parts).collect(),
        Part::Labelled(all) => Json::Object(all.iter().map(|(label, inner)| (label.clone(), parts(inner))).collect()),
    };
    Json::Object(said.iter().map(|(name, inner)| (name.clone(), part(inner))).collect())
}

fn compact(name: &str, alias: Option<&str>) -> String {
    alias.map_or(name.to_owned(), |alias| format!("{name}.{alias}"))
}

/// What each module calls its providers, and where each is really configured.
struct Providers(BTreeMap<String, Entry>);

struct Entry {
    json: Map<String, Json>,
    full_name: String,
    /// The key of the provider that it is, if the module has it from the outside.
    passed_from: Option<String>,
}

impl Providers {
    fn of(config: &Config, schemas: &Schemas) -> Providers {
        let mut providers = Providers(BTreeMap::new());
        for (id, node) in config.modules.iter().enumerate() {
            let full = |name: &str| source_of(&config.provider_source(id, name)).to_owned();
            let outside = node.parent.as_ref().map(|(parent, call)| (&config.modules[*parent], call));
            for block in node.module.providers.iter().chain(&node.proxies) {
                let mut more = Map::new();
                put(&mut more, "alias", block.alias.clone().into());
                put(&mut more, "version_constraint", config.constraint(id, &block.name).into());
                let full_name = full(&block.name);
                let mut known = schemas.iter().filter(|(address, _)| source_of(address) == full_name);
                let schema = known.next().map_or_else(Block::default, |(_, schema)| schema.provider.block.clone());
                put(&mut more, "expressions", parts(&outline_body(&block.body, &body_spec(&schema))));
                let key = compact(&block.name, block.alias.as_deref());
                providers.add(&node.path, &key, &block.name, full_name, more, None);
            }
            for ((name, alias), (passed, passed_alias)) in
                outside.iter().flat_map(|(parent, call)| &parent.module.calls[*call].providers)
            {
                let own = compact(name, alias.as_deref());
                let theirs = compact(passed, passed_alias.as_deref());
                let from = outside.map(|(parent, _)| (parent.path.as_str(), theirs));
                providers.add(&node.path, &own, &own, full(name), Map::new(), from);
            }
            let from = |name: &str| outside.map(|(parent, _)| (parent.path.as_str(), name.to_owned()));
            for name in node.module.required_providers.keys() {
                let mut more = Map::new();
                put(&mut more, "version_constraint", config.constraint(id, name).into());
                providers.add(&node.path, name, name, full(name), more, from(name));
            }
            let names = node.module.resources.iter().map(Resource::provider_name);
            let blocks = node.module.providers.iter().map(|block| block.name.as_str());
            let required = node.module.required_providers.keys().map(String::as_str);
            for name in names.chain(blocks).chain(required) {
                // What nobody declares is known by the last part of its source.
                let full_name = full(name);
                let kind = full_name.rsplit('/').next().unwrap_or_default().to_owned();
                providers.add(&node.path, &kind, &kind, full_name.clone(), Map::new(), from(&kind));
            }
        }
        providers
    }

    fn key(module: &str, name: &str) -> String {
        if module.is_empty() { name.to_owned() } else { format!("{module}:{name}") }
    }

    /// What is there already stays.
    fn add(
        &mut self,
        module: &str,
        key: &str,
        name: &str,
        full_name: String,
        more: Map<String, Json>,
        from: Option<(&str, String)>,
    ) {
        let key = Providers::key(module, key);
        if self.0.contains_key(&key) {
            return;
        }
        let passed_from = from
            .map(|(module, name)| Providers::key(module, &name))
            .filter(|theirs| self.0.get(theirs).is_some_and(|entry| entry.full_name == full_name))
            .map(|theirs| self.source(&theirs).to_owned());
        let mut json = more;
        json.insert("name".into(), json!(name));
        json.insert("full_name".into(), json!(full_name));
        put(&mut json, "module_address", json!(module));
        self.0.insert(key, Entry { json, full_name, passed_from });
    }

    /// The key under which the provider is configured that has this key in its module.
    fn source<'k>(&'k self, key: &'k str) -> &'k str {
        self.0.get(key).and_then(|entry| entry.passed_from.as_deref()).unwrap_or(key)
    }
}
