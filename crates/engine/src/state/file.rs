use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::text::{DEEPEST, depth, in_one_line, indent};
use super::{Object, StateError};
use crate::{Address, Key};

/// The version that Landform works as, and signs its states with.
pub const TERRAFORM_VERSION: &str = landform_lang::OPENTOFU_VERSION;

/// A whole state. Resources and instances are kept in the order in which OpenTofu sorts them.
#[derive(Clone, Debug)]
pub struct State {
    pub serial: u64,
    pub lineage: String,
    pub outputs: BTreeMap<String, StateOutput>,
    resources: Vec<Resource>,
    /// Results of `check` blocks and conditions.
    check_results: Option<Box<RawValue>>,
}

#[derive(Serialize, Deserialize)]
struct File {
    version: u64,
    terraform_version: String,
    serial: u64,
    lineage: String,
    #[serde(default)]
    outputs: BTreeMap<String, StateOutput>,
    #[serde(default)]
    resources: Vec<Resource>,
    #[serde(default)]
    check_results: Option<Box<RawValue>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StateOutput {
    pub value: Box<RawValue>,
    #[serde(rename = "type")]
    pub ty: Box<RawValue>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub sensitive: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub deprecated: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Resource {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub module: String,
    pub mode: String,
    #[serde(rename = "type")]
    pub type_name: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    each: String,
    /// `provider["registry.opentofu.org/hashicorp/time"]`
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider: String,
    #[serde(default)]
    pub instances: Vec<Instance>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Instance {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_key: Option<Key>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deposed: Option<String>,
    /// Only of one whose provider is one of several that a block makes: `provider["…"].ALIAS["KEY"]`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider: String,
    #[serde(default)]
    pub schema_version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes_flat: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensitive_attributes: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "base64_text")]
    pub private: Vec<u8>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub create_before_destroy: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub skip_destroy: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity_schema_version: Option<u64>,
}

impl Instance {
    pub fn tainted(&self) -> bool {
        self.status == "tainted"
    }

    pub fn set_tainted(&mut self, tainted: bool) {
        self.status = if tainted { "tainted" } else { "" }.to_owned();
    }

    fn order(&self) -> (&Option<Key>, &Option<String>) {
        (&self.index_key, &self.deposed)
    }
}

impl Resource {
    pub fn managed(type_name: &str, name: &str, provider: &str) -> Resource {
        Resource {
            module: String::new(),
            mode: "managed".to_owned(),
            type_name: type_name.to_owned(),
            name: name.to_owned(),
            each: String::new(),
            provider: provider.to_owned(),
            instances: Vec::new(),
        }
    }

    /// An entry for the resource that an object belongs to.
    fn of(address: &Address, provider: &str) -> Resource {
        let (module, mode) = (address.module.clone(), mode(address).to_owned());
        Resource { module, mode, ..Resource::managed(&address.type_name, &address.name, provider) }
    }

    pub fn address(&self, key: Option<Key>) -> Address {
        Address {
            module: self.module.clone(),
            data: self.mode == "data",
            type_name: self.type_name.clone(),
            name: self.name.clone(),
            key,
        }
    }

    /// The provider in charge of one of its instances.
    pub fn provider_of<'s>(&'s self, instance: &'s Instance) -> &'s str {
        if instance.provider.is_empty() { &self.provider } else { &instance.provider }
    }

    /// A state names providers at the resource, or at each instance where one of them has a key. Here the resource always
    /// has the block's, and an instance what has a key.
    fn join_providers(&mut self) {
        for instance in &mut self.instances {
            let (block, key) = split_provider(&instance.provider);
            if self.provider.is_empty() {
                self.provider = block.to_owned();
            }
            if key.is_none() {
                instance.provider.clear();
            }
        }
    }

    fn with_split_providers(&self) -> Resource {
        let mut resource = self.clone();
        if self.instances.iter().any(|instance| !instance.provider.is_empty()) {
            for instance in resource.instances.iter_mut().filter(|instance| instance.provider.is_empty()) {
                instance.provider.clone_from(&self.provider);
            }
            resource.provider.clear();
        }
        resource
    }

    /// Where an instance is, or would have to be.
    fn instance(&self, key: Option<&Key>, deposed: Option<&str>) -> Result<usize, usize> {
        self.instances
            .binary_search_by(|other| (other.index_key.as_ref(), other.deposed.as_deref()).cmp(&(key, deposed)))
    }

    fn order(&self) -> (&str, &str, &str, &str) {
        (&self.module, &self.mode, &self.type_name, &self.name)
    }
}

impl State {
    pub fn new(lineage: String) -> State {
        State { serial: 0, lineage, outputs: BTreeMap::new(), resources: Vec::new(), check_results: None }
    }

    pub fn read(bytes: &[u8]) -> Result<State, StateError> {
        // Looked at first, so that a foreign file is named as what it is and not as a missing field.
        #[derive(Deserialize)]
        struct Envelope {
            version: Option<u64>,
            encrypted_data: Option<Box<RawValue>>,
        }
        let malformed = |error: serde_json::Error| StateError::Malformed(error.to_string());
        if depth(bytes) > DEEPEST {
            return Err(StateError::Malformed(format!("it is nested deeper than {DEEPEST} levels")));
        }
        let envelope: Envelope = serde_json::from_slice(bytes).map_err(malformed)?;
        match envelope {
            Envelope { encrypted_data: Some(_), .. } => return Err(StateError::Encrypted),
            Envelope { version: Some(4), .. } => {}
            Envelope { version: Some(other), .. } => return Err(StateError::Format(other)),
            Envelope { version: None, .. } => return Err(StateError::Malformed("it has no version".into())),
        }
        let file: File = serde_json::from_slice(bytes).map_err(malformed)?;
        let mut state = State {
            serial: file.serial,
            lineage: file.lineage,
            outputs: file.outputs,
            resources: file.resources,
            check_results: file.check_results,
        };
        state.check()?;
        state.resources.iter_mut().for_each(Resource::join_providers);
        state.sort();
        Ok(state)
    }

    fn check(&self) -> Result<(), StateError> {
        let malformed = |text: String| Err(StateError::Malformed(text));
        let mut seen = std::collections::HashSet::new();
        for resource in &self.resources {
            if !matches!(resource.mode.as_str(), "managed" | "data") {
                return malformed(format!("resource {} has the mode {:?}", resource.address(None), resource.mode));
            }
            for instance in &resource.instances {
                let address = resource.address(instance.index_key.clone());
                if !matches!(instance.status.as_str(), "" | "tainted") {
                    return malformed(format!("instance {address} has the status {:?}", instance.status));
                }
                if resource.provider.is_empty() && instance.provider.is_empty() {
                    return malformed(format!("instance {address} has no provider"));
                }
                if !seen.insert((address.clone(), instance.deposed.clone())) {
                    return malformed(format!("instance {address} appears twice"));
                }
            }
        }
        Ok(())
    }

    /// The bytes that OpenTofu would write.
    pub fn write(&self) -> Vec<u8> {
        indent(&self.text()).into_bytes()
    }

    /// The same all in one line, as OpenTofu hands a state on.
    pub fn write_in_one_line(&self) -> String {
        in_one_line(&self.text())
    }

    fn text(&self) -> String {
        let file = File {
            version: 4,
            terraform_version: TERRAFORM_VERSION.to_owned(),
            serial: self.serial,
            lineage: self.lineage.clone(),
            outputs: self.outputs.clone(),
            resources: self.resources.iter().map(Resource::with_split_providers).collect(),
            check_results: self.check_results.clone(),
        };
        serde_json::to_string(&file).expect("a state has string keys only")
    }

    /// Whether both say the same about the world, whatever their serial and lineage.
    pub fn says_the_same(&self, other: &State) -> bool {
        let comparable = |state: &State| {
            let mut bytes = State { serial: 0, lineage: String::new(), ..state.clone() };
            bytes.sort();
            serde_json::from_slice::<serde_json::Value>(&bytes.write()).ok()
        };
        comparable(self) == comparable(other)
    }

    /// Gives this state the serial that follows from `base`: one more if anything changed, otherwise the same.
    pub fn follow(&mut self, base: Option<&State>) {
        self.serial = match base {
            Some(base) if self.says_the_same(base) => base.serial,
            Some(base) => base.serial + 1,
            None => 1,
        };
    }

    /// Whether it has neither objects nor outputs.
    pub fn is_empty(&self) -> bool {
        self.resources().is_empty() && self.outputs.is_empty()
    }

    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    pub fn objects(&self) -> impl Iterator<Item = Object> + '_ {
        self.resources.iter().flat_map(|resource| {
            resource.instances.iter().map(|instance| Object {
                address: resource.address(instance.index_key.clone()),
                deposed: instance.deposed.clone(),
                tainted: instance.tainted(),
            })
        })
    }

    /// Where the resource of an address is, or would have to be.
    fn place(&self, address: &Address) -> Result<usize, usize> {
        let wanted = (address.module.as_str(), mode(address), address.type_name.as_str(), address.name.as_str());
        self.resources.binary_search_by(|resource| resource.order().cmp(&wanted))
    }

    /// The current (not deposed) object at an address, with the provider that it belongs to.
    pub fn current(&self, address: &Address) -> Option<(&str, &Instance)> {
        self.object(address, None)
    }

    /// The object at an address: the current one, or the deposed one with this key.
    pub fn object(&self, address: &Address, deposed: Option<&str>) -> Option<(&str, &Instance)> {
        let resource = &self.resources[self.place(address).ok()?];
        let instance = &resource.instances[resource.instance(address.key.as_ref(), deposed).ok()?];
        Some((resource.provider_of(instance), instance))
    }

    /// Puts an object in the place of the one with the same address and deposed key.
    pub fn put(&mut self, address: &Address, provider: &str, instance: Instance) {
        let (block, key) = split_provider(provider);
        let instance = Instance { provider: key.map(|_| provider.to_owned()).unwrap_or_default(), ..instance };
        let at = self.place(address).unwrap_or_else(|at| {
            self.resources.insert(at, Resource::of(address, block));
            at
        });
        let resource = &mut self.resources[at];
        if resource.provider != block {
            resource.provider = block.to_owned();
        }
        match resource.instance(instance.index_key.as_ref(), instance.deposed.as_deref()) {
            Ok(at) => resource.instances[at] = instance,
            Err(at) => resource.instances.insert(at, instance),
        }
    }

    /// Removes an object; a resource without instances goes with its last one.
    pub fn remove(&mut self, address: &Address, deposed: Option<&str>) {
        let Ok(at) = self.place(address) else { return };
        let resource = &mut self.resources[at];
        if let Ok(instance) = resource.instance(address.key.as_ref(), deposed) {
            resource.instances.remove(instance);
        }
        if resource.instances.is_empty() {
            self.resources.remove(at);
        }
    }

    /// Makes an entry for a resource, which may have no object yet. False if there is one.
    pub fn expect(&mut self, address: &Address, provider: &str) -> bool {
        let Err(at) = self.place(address) else { return false };
        self.resources.insert(at, Resource::of(address, provider));
        true
    }

    /// Takes the entry of a resource out if there is no object in it.
    pub fn forget_if_empty(&mut self, address: &Address) {
        if let Ok(at) = self.place(address)
            && self.resources[at].instances.is_empty()
        {
            self.resources.remove(at);
        }
    }

    /// Takes all entries out that have no object in them.
    pub fn forget_empty(&mut self) {
        self.resources.retain(|resource| !resource.instances.is_empty());
    }

    /// The results of checks, in OpenTofu's form.
    pub fn check_results(&self) -> Option<&RawValue> {
        self.check_results.as_deref()
    }

    /// Puts the results of checks into the state, in OpenTofu's form.
    pub fn set_check_results(&mut self, results: Option<Box<RawValue>>) {
        self.check_results = results;
    }

    fn sort(&mut self) {
        self.resources.sort_by(|a, b| a.order().cmp(&b.order()));
        for resource in &mut self.resources {
            resource.instances.sort_by(|a, b| a.order().cmp(&b.order()));
        }
    }
}

/// The address of a provider's block, and the key of one of the configurations that it makes, as it is written.
pub fn split_provider(provider: &str) -> (&str, Option<&str>) {
    // The source stands in brackets, too.
    let source = provider.find("\"]").map_or(0, |at| at + 2);
    match provider[source..].find('[') {
        Some(at) => {
            let key = &provider[source + at + 1..];
            (&provider[..source + at], Some(key.strip_suffix(']').unwrap_or(key)))
        }
        None => (provider, None),
    }
}

fn mode(address: &Address) -> &'static str {
    if address.data { "data" } else { "managed" }
}

fn is_false(value: &bool) -> bool {
    !value
}

mod base64_text {
    use super::*;

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        STANDARD.decode(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Key::Index(index) => serializer.serialize_u64(*index),
            Key::Name(name) => serializer.serialize_str(name),
        }
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(name) => Ok(Key::Name(name)),
            serde_json::Value::Number(number) if number.as_u64().is_some() => {
                Ok(Key::Index(number.as_u64().unwrap_or_default()))
            }
            other => Err(serde::de::Error::custom(format!("{other} is no instance key"))),
        }
    }
}
