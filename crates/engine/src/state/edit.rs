//! Changes of a state that a person asks for, without any provider.

use super::{Object, State};

impl State {
    /// Forgets the objects at these addresses: objects, whole resources or whole modules. Returns what it forgot.
    pub fn remove_within(&mut self, wanted: &[String]) -> Vec<Object> {
        let mut removed = Vec::new();
        for wanted in wanted {
            let within: Vec<Object> = self.objects().filter(|object| object.address.is_within(wanted)).collect();
            within.iter().for_each(|object| self.remove(&object.address, object.deposed.as_deref()));
            removed.extend(within);
        }
        removed
    }
}
