use std::collections::BTreeMap;

use landform_cty::{Type, Value};

use super::content::Content;
use crate::{Address, Key};

/// What references to resources mean at this moment of a plan or an apply.
#[derive(Clone, Default)]
pub struct Values {
    resources: BTreeMap<String, Instances>,
}

#[derive(Clone)]
enum Instances {
    One(Value),
    /// With `count`: a tuple, in which what is not there yet is unknown.
    Counted(Vec<Value>),
}

impl Values {
    /// The values that a plan promises; an apply replaces them one by one with what really is.
    pub fn of_plan(content: &Content) -> Values {
        let mut values = Values::default();
        for planned in content.changes.iter().filter(|planned| !planned.after.is_null()) {
            values.set(&planned.address, planned.after.clone());
        }
        values
    }

    /// Says how many instances a resource has; `None` for a resource without `count`.
    pub fn expand(&mut self, resource: &str, count: Option<u64>) {
        let open = || Value::unknown(Type::Dynamic);
        let instances = match count {
            Some(count) => Instances::Counted((0..count).map(|_| open()).collect()),
            None => Instances::One(open()),
        };
        self.resources.insert(resource.to_owned(), instances);
    }

    pub fn set(&mut self, address: &Address, value: Value) {
        let entry = self.resources.entry(address.resource());
        match &address.key {
            Some(Key::Index(index)) => {
                let index = usize::try_from(*index).expect("an instance index fits into memory");
                let entry = entry.or_insert_with(|| Instances::Counted(Vec::new()));
                if let Instances::Counted(values) = entry {
                    if values.len() <= index {
                        values.resize(index + 1, Value::unknown(Type::Dynamic));
                    }
                    values[index] = value;
                }
            }
            _ => drop(entry.insert_entry(Instances::One(value))),
        }
    }

    /// The value of `TYPE.NAME[INDEX]`, without making the value of `TYPE.NAME`.
    pub fn element(&self, resource: &str, index: usize) -> Option<Value> {
        match self.resources.get(resource)? {
            Instances::Counted(values) => values.get(index).cloned(),
            Instances::One(_) => None,
        }
    }

    /// The value of `TYPE.NAME`.
    pub fn get(&self, resource: &str) -> Option<Value> {
        Some(match self.resources.get(resource)? {
            Instances::One(value) => value.clone(),
            Instances::Counted(values) => Value::tuple(values.clone()),
        })
    }
}
