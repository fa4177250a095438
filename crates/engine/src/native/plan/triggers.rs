use landform_lang::Trigger;

use super::Planner;
use crate::native::config::ResourceConfig;
use crate::native::eval::Each;
use crate::native::object::{Outcome, Planned, bare};
use crate::{Action, Address, Key};

impl Planner<'_> {
    /// Whether a change of what `replace_triggered_by` names is planned.
    pub(super) fn triggered(&self, resource: &ResourceConfig, address: &Address, each: &Each) -> Outcome<bool> {
        for trigger in &self.config().block(resource).lifecycle.replace_triggered_by {
            if self.trigger(trigger, resource, address, each)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn trigger(&self, trigger: &Trigger, resource: &ResourceConfig, address: &Address, each: &Each) -> Outcome<bool> {
        let local = trigger.reference.to_string();
        let keys: Vec<Option<Key>> = match &trigger.key {
            Some(expr) => {
                let key = self.eval.about(expr, resource, address, each)?;
                let key = match (key.as_str(), key.as_number().and_then(|number| number.to_string().parse().ok())) {
                    (Some(name), _) => Some(Key::Name(name.to_owned())),
                    (None, index) => index.map(Key::Index),
                };
                vec![key]
            }
            None => {
                let values = self.eval.values();
                let keys = values.keys(&address.module, &local).map(|keys| keys.all()).unwrap_or_default();
                keys.into_iter().map(|(key, _)| key).collect()
            }
        };
        let Some(seen) = Address::parse(&local) else { return Ok(false) };
        let world = self.world();
        Ok(keys.into_iter().any(|key| {
            let wanted = Address { module: address.module.clone(), key, ..seen.clone() };
            let planned = world.by_address.get(&wanted).map(|place| &world.changes[*place]);
            planned.is_some_and(|planned| changes(planned, &trigger.path))
        }))
    }
}

/// Whether an object changes, or that part of it. A part counts whatever happens to the whole.
fn changes(planned: &Planned, path: &landform_cty::Path) -> bool {
    if path.is_empty() {
        return planned.action == Action::Create || planned.action == Action::Update || planned.renews();
    }
    let (before, after) = (bare(&planned.before), bare(&planned.after));
    match (before.at_path(path), after.at_path(path)) {
        (Some(before), Some(after)) => after.equals(before).as_bool() != Some(true),
        (None, Some(part)) | (Some(part), None) => !part.is_null(),
        (None, None) => false,
    }
}
