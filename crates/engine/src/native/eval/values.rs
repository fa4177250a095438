use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use landform_cty::{Type, Value};

use crate::{Address, Key};

/// What references mean at this moment of a plan or an apply, for every instance of every module.
#[derive(Default)]
pub struct Values {
    modules: HashMap<String, ModuleValues>,
    /// By the path without keys: the instances of a module, in their order.
    instances: HashMap<String, Vec<String>>,
}

/// The values inside of one instance of a module.
#[derive(Default)]
struct ModuleValues {
    each: Each,
    variables: HashMap<String, Value>,
    locals: HashMap<String, Value>,
    outputs: BTreeMap<String, Value>,
    /// By the address inside of the module.
    resources: HashMap<String, Instances>,
    calls: HashMap<String, Keys>,
}

/// Which instance of a resource or a module is being evaluated.
#[derive(Clone, Debug, Default)]
pub enum Each {
    #[default]
    Once,
    Index(u64),
    Pair(String, Value),
    /// One of a plan whose value is gone by the time it is carried out.
    Lost(String),
    /// One with `count`, but which one is not known.
    AnyIndex,
    /// One with `for_each`, but which one is not known.
    AnyPair,
}

/// The instances that a resource or a module has.
#[derive(Clone, Debug, Default)]
pub enum Keys {
    #[default]
    Once,
    /// Switched off: there is none.
    Off,
    Count(u64),
    Each(BTreeMap<String, Value>),
    /// Not expanded: `count` and `for_each` before inputs are known.
    AnyCount,
    AnyEach,
}

impl Keys {
    /// Every instance: its key, and what it may refer to as `count` or `each`.
    pub fn all(&self) -> Vec<(Option<Key>, Each)> {
        match self {
            Keys::Once => vec![(None, Each::Once)],
            Keys::Off => Vec::new(),
            Keys::AnyCount => vec![(None, Each::AnyIndex)],
            Keys::AnyEach => vec![(None, Each::AnyPair)],
            Keys::Count(count) => (0..*count).map(|index| (Some(Key::Index(index)), Each::Index(index))).collect(),
            Keys::Each(pairs) => {
                let each = |(key, value): (&String, &Value)| {
                    (Some(Key::Name(key.clone())), Each::Pair(key.clone(), value.clone()))
                };
                pairs.iter().map(each).collect()
            }
        }
    }

    pub fn each(&self, key: &Option<Key>) -> Option<Each> {
        match (self, key) {
            (Keys::Once, None) => Some(Each::Once),
            (Keys::AnyCount, None) => Some(Each::AnyIndex),
            (Keys::AnyEach, None) => Some(Each::AnyPair),
            (Keys::Count(count), Some(Key::Index(index))) => (index < count).then_some(Each::Index(*index)),
            (Keys::Each(pairs), Some(Key::Name(name))) => {
                pairs.get(name).map(|value| Each::Pair(name.clone(), value.clone()))
            }
            _ => None,
        }
    }

    /// An instance that was planned by a key which is there no longer.
    pub fn lost(&self, key: &Option<Key>) -> Option<Each> {
        match (self, key) {
            (Keys::Each(_), Some(Key::Name(name))) => Some(Each::Lost(name.clone())),
            (Keys::Count(_), Some(Key::Index(index))) => Some(Each::Index(*index)),
            _ => None,
        }
    }
}

/// The instances of one resource, each with its value once it has one.
struct Instances {
    keys: Keys,
    one: Value,
    counted: Vec<Value>,
    named: BTreeMap<String, Value>,
    /// All of them together: made when it is first asked for, since thousands may refer to it.
    whole: OnceLock<Value>,
}

impl Instances {
    fn new(keys: Keys) -> Instances {
        let open = || Value::unknown(Type::Dynamic);
        let counted = match &keys {
            Keys::Count(count) => (0..*count).map(|_| open()).collect(),
            _ => Vec::new(),
        };
        let named = match &keys {
            Keys::Each(pairs) => pairs.keys().map(|key| (key.clone(), open())).collect(),
            _ => BTreeMap::new(),
        };
        Instances { keys, one: open(), counted, named, whole: OnceLock::new() }
    }

    fn set(&mut self, key: Option<&Key>, value: Value) {
        self.whole = OnceLock::new();
        match key {
            None => self.one = value,
            Some(Key::Index(index)) => {
                let index = usize::try_from(*index).expect("an instance index fits into memory");
                if let Some(place) = self.counted.get_mut(index) {
                    *place = value;
                }
            }
            Some(Key::Name(name)) => {
                if let Some(place) = self.named.get_mut(name) {
                    *place = value;
                }
            }
        }
    }

    /// Has places for these instances and no others, whatever `count` or `for_each` says.
    fn only(&mut self, keys: &[&Key]) {
        let open = || Value::unknown(Type::Dynamic);
        match &self.keys {
            Keys::Count(_) => {
                let places =
                    keys.iter().filter_map(|key| if let Key::Index(index) = key { Some(index + 1) } else { None });
                let count = usize::try_from(places.max().unwrap_or(0)).expect("an instance index fits into memory");
                self.counted.resize_with(count, open);
            }
            Keys::Each(_) => {
                let names =
                    keys.iter().filter_map(|key| if let Key::Name(name) = key { Some(name.clone()) } else { None });
                self.named = names.map(|name| (name, open())).collect();
            }
            _ => return,
        }
        self.whole = OnceLock::new();
    }

    fn whole(&self) -> Value {
        let make = || match &self.keys {
            Keys::Once => self.one.clone(),
            Keys::Off => Value::null(Type::Dynamic),
            Keys::AnyCount | Keys::AnyEach => Value::unknown(Type::Dynamic),
            Keys::Count(_) => Value::tuple(self.counted.clone()),
            Keys::Each(_) => Value::object(self.named.clone()),
        };
        self.whole.get_or_init(make).clone()
    }
}

impl Values {
    /// A place for the values of the root module.
    pub fn new() -> Values {
        let mut values = Values::default();
        values.add_module("", "", Each::Once);
        values
    }

    fn add_module(&mut self, path: &str, instance: &str, each: Each) {
        self.modules.insert(instance.to_owned(), ModuleValues { each, ..ModuleValues::default() });
        self.instances.entry(path.to_owned()).or_default().push(instance.to_owned());
    }

    /// The instances of the module at a path without keys.
    pub fn instances(&self, path: &str) -> &[String] {
        self.instances.get(path).map(Vec::as_slice).unwrap_or_default()
    }

    pub fn has_instance(&self, instance: &str) -> bool {
        self.modules.contains_key(instance)
    }

    /// Whether it is known which instances a called module has.
    pub fn has_call(&self, instance: &str, name: &str) -> bool {
        self.modules.get(instance).is_some_and(|module| module.calls.contains_key(name))
    }

    /// What the expressions of a call may refer to as `count` or `each`, for one instance of the called module.
    pub fn each(&self, instance: &str) -> Each {
        self.modules.get(instance).map(|module| module.each.clone()).unwrap_or_default()
    }

    /// Makes the instances of a called module.
    pub fn expand_module(&mut self, path: &str, parent: &str, name: &str, keys: Keys) {
        for (key, each) in keys.all() {
            let prefix = if parent.is_empty() { String::new() } else { format!("{parent}.") };
            let key = key.map(|key| format!("[{key}]")).unwrap_or_default();
            self.add_module(path, &format!("{prefix}module.{name}{key}"), each);
        }
        if let Some(module) = self.modules.get_mut(parent) {
            module.calls.insert(name.to_owned(), keys);
        }
        self.instances.entry(path.to_owned()).or_default();
    }

    pub fn set_variable(&mut self, instance: &str, name: &str, value: Value) {
        if let Some(module) = self.modules.get_mut(instance) {
            module.variables.insert(name.to_owned(), value);
        }
    }

    pub fn set_local(&mut self, instance: &str, name: &str, value: Value) {
        if let Some(module) = self.modules.get_mut(instance) {
            module.locals.insert(name.to_owned(), value);
        }
    }

    pub fn set_output(&mut self, instance: &str, name: &str, value: Value) {
        if let Some(module) = self.modules.get_mut(instance) {
            module.outputs.insert(name.to_owned(), value);
        }
    }

    /// Says which instances a resource has. Values that are there already stay.
    pub fn expand_resource(&mut self, instance: &str, local: &str, keys: Keys) {
        if let Some(module) = self.modules.get_mut(instance) {
            module.resources.insert(local.to_owned(), Instances::new(keys));
        }
    }

    pub fn keys(&self, instance: &str, local: &str) -> Option<&Keys> {
        Some(&self.modules.get(instance)?.resources.get(local)?.keys)
    }

    /// Has places for these objects of a resource and no others, in each of the instances of its module.
    pub fn only<'a>(&mut self, homes: &[String], local: &str, objects: impl Iterator<Item = &'a Address>) {
        let mut keys: HashMap<&str, Vec<&Key>> = HashMap::new();
        for object in objects {
            keys.entry(&object.module).or_default().extend(&object.key);
        }
        for home in homes {
            let module = self.modules.get_mut(home);
            if let Some(instances) = module.and_then(|module| module.resources.get_mut(local)) {
                instances.only(keys.get(home.as_str()).map(Vec::as_slice).unwrap_or_default());
            }
        }
    }

    pub fn set(&mut self, address: &Address, value: Value) {
        let local = address.local();
        if let Some(module) = self.modules.get_mut(&address.module)
            && let Some(instances) = module.resources.get_mut(&local)
        {
            instances.set(address.key.as_ref(), value);
        }
    }

    pub fn variable(&self, instance: &str, name: &str) -> Option<Value> {
        self.modules.get(instance)?.variables.get(name).cloned()
    }

    pub fn local(&self, instance: &str, name: &str) -> Option<Value> {
        self.modules.get(instance)?.locals.get(name).cloned()
    }

    pub fn output(&self, instance: &str, name: &str) -> Option<Value> {
        self.modules.get(instance)?.outputs.get(name).cloned()
    }

    /// The value of `TYPE.NAME`: an object, or all its instances.
    pub fn resource(&self, instance: &str, local: &str) -> Option<Value> {
        Some(self.modules.get(instance)?.resources.get(local)?.whole())
    }

    /// The value of one object.
    pub fn object(&self, address: &Address) -> Option<Value> {
        let instances = self.modules.get(&address.module)?.resources.get(&address.local())?;
        match &address.key {
            None => Some(instances.one.clone()),
            Some(Key::Index(index)) => instances.counted.get(usize::try_from(*index).ok()?).cloned(),
            Some(Key::Name(name)) => instances.named.get(name).cloned(),
        }
    }

    /// The outputs of modules that are not null, each with the instance that has it.
    pub fn module_outputs(&self) -> Vec<(String, String)> {
        let inner = self.modules.iter().filter(|(instance, _)| !instance.is_empty());
        let named = inner.flat_map(|(instance, module)| {
            let said = module.outputs.iter().filter(|(_, value)| !value.is_null());
            said.map(move |(name, _)| (instance.clone(), name.clone()))
        });
        named.collect()
    }

    /// The value of `module.NAME`: the outputs of the module, or of all its instances. What has not been evaluated yet is
    /// unknown.
    pub fn module(&self, parent: &str, name: &str, outputs: &[&str]) -> Option<Value> {
        let keys = self.modules.get(parent)?.calls.get(name)?;
        let prefix = if parent.is_empty() { String::new() } else { format!("{parent}.") };
        let one = |key: &str| {
            let module = self.modules.get(&format!("{prefix}module.{name}{key}"));
            let value = |output: &&str| {
                let value = module.and_then(|module| module.outputs.get(*output).cloned());
                ((*output).to_owned(), value.unwrap_or_else(|| Value::unknown(Type::Dynamic)))
            };
            Value::object(outputs.iter().map(value))
        };
        Some(match keys {
            Keys::Once => one(""),
            Keys::Off => Value::null(Type::Dynamic),
            // How many there are is not known, but what each of them has is.
            Keys::AnyCount => Value::unknown(Type::list(each_of(outputs))),
            Keys::AnyEach => Value::unknown(Type::map(each_of(outputs))),
            Keys::Count(count) => Value::tuple((0..*count).map(|index| one(&format!("[{index}]"))).collect()),
            Keys::Each(pairs) => {
                let each = |key: &String| (key.clone(), one(&format!("[{}]", Key::Name(key.clone()))));
                Value::object(pairs.keys().map(each))
            }
        })
    }

    /// One instance of `module.NAME`, without making the others.
    pub fn module_instance(&self, parent: &str, name: &str, key: &Key, outputs: &[&str]) -> Option<Value> {
        let keys = self.modules.get(parent)?.calls.get(name)?;
        keys.each(&Some(key.clone()))?;
        let prefix = if parent.is_empty() { String::new() } else { format!("{parent}.") };
        let module = self.modules.get(&format!("{prefix}module.{name}[{key}]"))?;
        let value = |output: &&str| {
            let value = module.outputs.get(*output).cloned();
            ((*output).to_owned(), value.unwrap_or_else(|| Value::unknown(Type::Dynamic)))
        };
        Some(Value::object(outputs.iter().map(value)))
    }
}

/// The type of one instance of a module of which nothing is known but the names of its outputs.
fn each_of(outputs: &[&str]) -> Type {
    Type::object(outputs.iter().map(|output| ((*output).to_owned(), Type::Dynamic)))
}
