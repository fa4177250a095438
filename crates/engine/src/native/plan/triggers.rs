use landform_lang::Trigger;

use super::Planner;
use crate::native::config::ResourceConfig;
use crate::native::eval::{Each, warning};
use crate::native::object::{Outcome, Planned, bare};
use crate::{Action, Address, Diagnostic, Key};

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

    /// Requests to replace a resource of several instances, of which none is named.
    pub(super) fn half_named(&self) -> Vec<Diagnostic> {
        let values = self.eval.values();
        let warn = |address: &Address| {
            let keys = values.keys(&address.module, &address.local())?;
            if address.key.is_some() || keys.each(&None).is_some() {
                return None;
            }
            let named = |(key, _)| format!("\n  -replace={:?}", Address { key, ..address.clone() }.to_string());
            let options: Vec<String> = keys.all().into_iter().map(named).collect();
            let lacks = "it lacks an instance key.\n\nTo force replacement of";
            let because = match options.as_slice() {
                [] => "this resource doesn't have any instances.".to_owned(),
                [one] => format!("{lacks} the single declared instance, use the following option instead:{one}"),
                many => {
                    let many = many.concat();
                    format!("{lacks} particular instances, use one or more of the following options instead:{many}")
                }
            };
            let detail = format!(
                "Your force-replace request for {address} doesn't match any resource instances because {because}"
            );
            Some(warning(Diagnostic::error("Incompletely-matched force-replace resource instance", detail)))
        };
        self.replace.iter().filter_map(warn).collect()
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
