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
        let Some(named) = Address::parse(&local) else { return Ok(false) };
        let named = Address { module: address.module.clone(), ..named };
        let key = trigger.key.as_ref().map(|expr| self.eval.about(expr, resource, address, each)).transpose()?;
        let key = key.map(|key| match (key.as_str(), key.as_number()) {
            (Some(name), _) => Some(Key::Name(name.to_owned())),
            (None, number) => number.and_then(|number| number.to_string().parse().ok()).map(Key::Index),
        });
        let world = self.world();
        let meant: Vec<&Planned> = match &key {
            Some(key) => {
                let wanted = Address { key: key.clone(), ..named.clone() };
                world.by_address.get(&wanted).map(|place| &world.changes[*place]).into_iter().collect()
            }
            // An object that is alone, or all of them.
            None => {
                let of_it = |planned: &&Planned| Address { key: None, ..planned.address.clone() } == named;
                world.changes.iter().filter(of_it).collect()
            }
        };
        if meant.is_empty() {
            let wanted = Address { module: String::new(), key: key.flatten(), ..named };
            let place = if address.module.is_empty() { "the root module" } else { &address.module };
            return Err(vec![Diagnostic::error(format!("no change found for {wanted} in {place}"), "")]);
        }
        Ok(meant.into_iter().any(|planned| changes(planned, &trigger.path)))
    }
}

/// Whether an object comes to be or changes, or that part of it.
fn changes(planned: &Planned, path: &landform_cty::Path) -> bool {
    if planned.deposed.is_some() || !(matches!(planned.action, Action::Create | Action::Update) || planned.renews()) {
        return false;
    }
    if path.is_empty() {
        return true;
    }
    let (before, after) = (bare(&planned.before), bare(&planned.after));
    match (before.at_path(path), after.at_path(path)) {
        (Some(before), Some(after)) => after.equals(before).as_bool() != Some(true),
        (None, None) => false,
        _ => true,
    }
}
