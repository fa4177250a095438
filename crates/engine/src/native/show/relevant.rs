//! Which parts of which objects decided about what a plan changes: everything that its changes refer to, near and far.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use landform_cty::Step;
use landform_lang::{Mention, Reference, mentions, mentions_at};
use serde_json::{Value as Json, json};

use super::{Schemas, path};
use crate::native::config::{Config, ModuleId, Node, ResourceConfig, body_spec, config_address, module_path};
use crate::native::content::Content;
use crate::native::eval::parent_instance;
use crate::state::State;
use crate::{Action, Address, Key, Mode};

/// A mention, with the instance of a module that it stands in.
#[derive(Clone)]
struct Place {
    module: String,
    /// The resource whose `count` or `for_each` is meant, where one is.
    owner: Option<String>,
    mention: Mention,
}

impl Place {
    /// Two mentions of the same thing have the same name.
    fn name(&self) -> String {
        format!("{}/{:?}/{:?}", self.module, self.owner, self.mention)
    }

    /// What a plan's JSON shows, if it is a part of an object.
    fn shown(&self) -> Option<Json> {
        let (data, type_name, name) = match &self.mention.reference {
            Reference::Resource { resource_type, name } => (false, resource_type.clone(), name.clone()),
            Reference::Data { resource_type, name } => (true, resource_type.clone(), name.clone()),
            _ => return None,
        };
        let key = self.mention.key.as_ref().and_then(key);
        let address = Address { module: self.module.clone(), data, type_name, name, key };
        Some(json!({ "resource": address.to_string(), "attribute": path(&self.mention.path) }))
    }
}

fn key(step: &Step) -> Option<Key> {
    match step {
        Step::Key(name) => Some(Key::Name(name.clone())),
        Step::Index(index) => Some(Key::Index(u64::try_from(*index).ok()?)),
        Step::Attribute(_) | Step::Element(_) => None,
    }
}

/// `said`: the outputs of modules that have a value, by instance.
pub fn relevant(content: &Content, config: &Config, said: &[(String, String)], schemas: &Schemas) -> Vec<Json> {
    let analysis = Analysis { config, schemas };
    let mut open: Vec<Place> = Vec::new();
    // All instances of a block in one instance of its module mention the same.
    let effective = content.changes.iter().filter(|planned| planned.action != Action::NoOp);
    let changed = effective.map(|planned| planned.address.clone());
    let blocks: BTreeSet<(String, String)> =
        changed.chain(ended_data(content)).map(|address| (config_address(&address), address.module)).collect();
    for (address, module) in blocks {
        if let Some(resource) = Address::parse(&address).as_ref().and_then(|address| config.resource(address)) {
            open.extend(analysis.of_resource(resource, &module, &[]));
        }
    }
    let changed = content.outputs.iter().filter(|(_, output)| output.action() != Action::NoOp);
    let changed = changed.map(|(name, _)| (String::new(), name.clone()));
    for (module, name) in changed.chain(said.iter().cloned()) {
        open.extend(analysis.of_output(&module, &name));
    }
    let mut seen: BTreeMap<String, Place> = BTreeMap::new();
    while let Some(place) = open.pop() {
        if let Entry::Vacant(entry) = seen.entry(place.name()) {
            open.extend(analysis.behind(&place));
            entry.insert(place);
        }
    }
    let mut shown: Vec<Json> = seen.values().filter_map(Place::shown).collect();
    shown.sort_by_key(|one| (one["resource"].to_string(), one["attribute"].to_string()));
    shown
}

/// What was read goes with everything else, though a plan does not say so.
fn ended_data(content: &Content) -> Vec<Address> {
    match State::read(&content.refreshed) {
        Ok(state) if content.mode == Mode::Destroy => {
            state.objects().map(|object| object.address).filter(|address| address.data).collect()
        }
        _ => Vec::new(),
    }
}

struct Analysis<'a> {
    config: &'a Config,
    schemas: &'a Schemas,
}

impl Analysis<'_> {
    fn module(&self, instance: &str) -> Option<ModuleId> {
        let path = module_path(instance);
        self.config.modules.iter().position(|node| node.path == path)
    }

    /// What stands behind a mention: that which the thing itself mentions.
    fn behind(&self, place: &Place) -> Vec<Place> {
        let Some(id) = self.module(&place.module) else { return Vec::new() };
        let node = &self.config.modules[id];
        match &place.mention.reference {
            Reference::Variable(name) => {
                let Some((parent, call)) = &node.parent else { return Vec::new() };
                let given = self.config.modules[*parent].module.calls[call].inputs.get(name);
                given.map(|expr| places(parent_instance(&place.module), mentions(expr))).unwrap_or_default()
            }
            Reference::Local(name) => {
                let local = node.module.locals.get(name);
                local.map(|local| places(&place.module, mentions(&local.value))).unwrap_or_default()
            }
            Reference::Module { name, output } => {
                let key = place.mention.key.as_ref().and_then(key).map(|key| format!("[{key}]")).unwrap_or_default();
                let inner = match place.module.as_str() {
                    "" => format!("module.{name}{key}"),
                    outer => format!("{outer}.module.{name}{key}"),
                };
                let Some(child) = node.children.get(name) else { return Vec::new() };
                let outputs = self.config.modules[*child].module.outputs.keys();
                let meant = outputs.filter(|one| output.as_ref().is_none_or(|output| output == *one));
                meant.flat_map(|output| self.of_output(&inner, output)).collect()
            }
            Reference::Resource { .. } | Reference::Data { .. } => {
                let local = place.mention.reference.to_string();
                let resource = self.resource(id, &local);
                resource
                    .map(|resource| self.of_resource(resource, &place.module, &place.mention.path))
                    .unwrap_or_default()
            }
            Reference::CountIndex | Reference::EachKey | Reference::EachValue => {
                let resource = place.owner.as_ref().and_then(|local| self.resource(id, local));
                let repetition = resource.and_then(|resource| self.config.block(resource).repetition.expr());
                repetition.map(|expr| places(&place.module, mentions(expr))).unwrap_or_default()
            }
            Reference::SelfObject | Reference::Path(_) | Reference::Workspace => Vec::new(),
        }
    }

    fn resource(&self, id: ModuleId, local: &str) -> Option<&ResourceConfig> {
        self.config.resource_of(&Node::Resource(id, local.to_owned()))
    }

    fn of_output(&self, instance: &str, name: &str) -> Vec<Place> {
        let output = self.module(instance).and_then(|id| self.config.modules[id].module.outputs.get(name));
        output.map(|output| places(instance, mentions(&output.value))).unwrap_or_default()
    }

    fn of_resource(&self, resource: &ResourceConfig, instance: &str, path: &[Step]) -> Vec<Place> {
        let Some(schema) = self.schemas.get(&resource.provider) else { return Vec::new() };
        let types = if resource.data { &schema.data_sources } else { &schema.resources };
        let Some(schema) = types.get(&resource.type_name) else { return Vec::new() };
        let body = &self.config.block(resource).body;
        let mut found = places(instance, mentions_at(body, &body_spec(&schema.block), path));
        for place in &mut found {
            let repeated = [Reference::CountIndex, Reference::EachKey, Reference::EachValue];
            if repeated.contains(&place.mention.reference) {
                place.owner = Some(resource.local.clone());
            }
        }
        found
    }
}

fn places(module: &str, mentions: Vec<Mention>) -> Vec<Place> {
    let place = |mention| Place { module: module.to_owned(), owner: None, mention };
    mentions.into_iter().map(place).collect()
}
