//! What a resource is where nothing is planned: what the state has of it, whatever the configuration says.

use std::collections::BTreeMap;

use landform_cty::Value;
use landform_lang::Repetition;
use landform_protocol::Block;

use super::{Eval, Keys};
use crate::native::config::ResourceConfig;
use crate::native::encode;
use crate::state::Instance;
use crate::{Address, Key};

impl Eval<'_> {
    /// Makes references to a resource mean the objects that are there, which are these.
    pub fn only_what_is_there(
        &self,
        resource: &ResourceConfig,
        there: Vec<(Address, Instance)>,
        block: Option<&Block>,
    ) {
        let mut by_module: BTreeMap<String, BTreeMap<Option<Key>, Instance>> = BTreeMap::new();
        for (address, stored) in there {
            let keys = by_module.entry(address.module).or_default();
            // One that was replaced stands for its instance only where no other does.
            if stored.deposed.is_none() || !keys.contains_key(&address.key) {
                keys.insert(address.key, stored);
            }
        }
        for instance in self.instances(resource.module) {
            let mut there = by_module.remove(&instance).unwrap_or_default();
            let keys = present(&self.config.block(resource).repetition, &there);
            self.values_mut().expand_resource(&instance, &resource.local, keys.clone());
            // Of what has nothing in the state not even the type is left.
            let Some(block) = block.filter(|_| !there.is_empty()) else { continue };
            for (key, _) in keys.all() {
                let stored = there.remove(&key).filter(|stored| stored.deposed.is_none());
                let value = stored.and_then(|stored| encode::stored_value(&stored, block).ok());
                let value = value.unwrap_or_else(|| Value::unknown(block.implied_type()));
                self.set_object(&resource.instance(&instance, key), value);
            }
        }
    }
}

/// The instances that a resource has by what there is of it: counted ones up to the last.
fn present<T>(repetition: &Repetition, there: &BTreeMap<Option<Key>, T>) -> Keys {
    let keys = there.keys().flatten();
    match repetition {
        Repetition::Once => Keys::Once,
        Repetition::Enabled(_) if there.contains_key(&None) => Keys::Once,
        Repetition::Enabled(_) => Keys::Off,
        Repetition::Count(_) => {
            let index = |key: &Key| if let Key::Index(index) = key { Some(index + 1) } else { None };
            Keys::Count(keys.filter_map(index).max().unwrap_or_default())
        }
        Repetition::ForEach(_) => {
            let name = |key: &Key| if let Key::Name(name) = key { Some(name.clone()) } else { None };
            Keys::Each(keys.filter_map(name).map(|name| (name, Value::null(landform_cty::Type::Dynamic))).collect())
        }
    }
}
