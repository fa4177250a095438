//! Changes of a state that a person asks for, without any provider.

use crate::Address;

use super::{Object, State};

impl State {
    /// Forgets the objects at these addresses: objects, whole resources or whole modules. Returns what it forgot.
    pub fn remove_within(&mut self, wanted: &[String]) -> Vec<Object> {
        let within = |object: &Object| wanted.iter().any(|wanted| object.address.is_within(wanted));
        let removed: Vec<Object> = self.objects().filter(within).collect();
        for object in &removed {
            self.remove(&object.address, object.deposed.as_deref());
        }
        removed
    }

    /// Gives an object, all of a resource or all of a module another address. Nothing may be there already.
    pub fn rename(&mut self, from: &str, to: &str) -> Result<Vec<(Address, Address)>, String> {
        let known: Vec<Object> = self.objects().collect();
        let mut moves = Vec::new();
        for object in known.iter().filter(|object| object.address.is_within(from)) {
            let text = object.address.to_string();
            let target = format!("{to}{}", &text[from.len()..]);
            let target =
                Address::parse(&target).ok_or_else(|| format!("{target:?} is not the address of an object"))?;
            if (target.data, &target.type_name) != (object.address.data, &object.address.type_name) {
                return Err(format!("{} cannot become {target}: the types differ", object.address));
            }
            if known.iter().any(|other| other.address == target) {
                return Err(format!("there is already an object at {target}"));
            }
            moves.push((object.clone(), target));
        }
        if moves.is_empty() {
            return Err(format!("there is nothing at {from}"));
        }
        for (object, target) in &moves {
            let deposed = object.deposed.as_deref();
            let Some((provider, instance)) = self.object(&object.address, deposed) else { continue };
            let (provider, mut instance) = (provider.to_owned(), instance.clone());
            self.remove(&object.address, deposed);
            instance.index_key.clone_from(&target.key);
            self.put(target, &provider, instance);
        }
        Ok(moves.into_iter().map(|(object, target)| (object.address, target)).collect())
    }
}
