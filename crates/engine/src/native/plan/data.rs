use landform_cty::Value;

use super::Planner;
use crate::native::change::planned_data;
use crate::native::config::{ResourceConfig, config_address};
use crate::native::eval::Each;
use crate::native::object::{Object, Outcome, Planned, Reason, bare};
use crate::{Action, Address};

impl Planner<'_> {
    /// A data source: read now, or when the plan is applied, if something that it needs is not there yet.
    pub(super) async fn data(&self, resource: &ResourceConfig, address: &Address, each: &Each) -> Outcome<()> {
        let bound = self.session.bound(&resource.provider, &self.eval).await?;
        let schema = bound.data_source(address)?;
        self.eval.conditions(resource, address, each, None)?;
        let config = self.eval.body(resource, address, each, &schema.block)?;
        let bare_config = bare(&config);
        let reason = if !bare_config.is_wholly_known() {
            Some(Reason::ReadBecauseConfigUnknown)
        } else if self.pending(resource) {
            Some(Reason::ReadBecauseDependencyPending)
        } else {
            None
        };
        let Some(reason) = reason else {
            let value = bound.read_data(address, &config).await?;
            let object = Object::read(&value, &config);
            self.remember(schema, (address, None), &resource.provider, Some(&object))?;
            self.eval.values_mut().set(address, value.clone());
            return self.eval.conditions(resource, address, each, Some(&value));
        };
        let (_, places) = config.clone().unmark_deep_with_paths();
        let after = bound.with_marks(schema, planned_data(&schema.block, &bare_config), &places);
        self.world().refreshed.remove(address, None);
        self.note(Planned {
            address: address.clone(),
            provider: resource.provider.clone(),
            action: Action::Read,
            reason: Some(reason),
            before: Value::null(schema.block.implied_type()),
            after: after.clone(),
            private: Vec::new(),
            identity_before: None,
            identity_after: None,
            replace_paths: Vec::new(),
            importing: None,
            deposed: None,
            previous: None,
            assumed: false,
        });
        self.eval.conditions(resource, address, each, Some(&after))
    }

    /// Whether something that it waits for is still to be changed.
    fn pending(&self, resource: &ResourceConfig) -> bool {
        let awaited = self.config().awaited(resource);
        if awaited.is_empty() {
            return false;
        }
        let world = self.world();
        world.changes.iter().any(|planned| {
            !planned.address.data
                && planned.action != Action::NoOp
                && awaited.contains(&config_address(&planned.address))
        })
    }
}
