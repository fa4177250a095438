use landform_cty::Value;

use super::Planner;
use crate::native::change::planned_data;
use crate::native::config::{ResourceConfig, config_address};
use crate::native::eval::Each;
use crate::native::object::{Object, Outcome, Planned, Reason, bare, known_or_null};
use crate::{Action, Address, Mode};

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
        let later = || {
            let (_, places) = config.clone().unmark_deep_with_paths();
            bound.with_marks(schema, planned_data(&schema.block, &bare_config), &places)
        };
        let check = self.config().block(resource).check.as_deref();
        let value = match (reason, check) {
            (Some(_), _) => {
                self.world().refreshed.remove(address, None);
                later()
            }
            (None, check) => {
                let value = match (bound.read_data(address, &config).await, check) {
                    (Ok(value), _) => value,
                    (Err(found), Some(check)) => {
                        self.eval.check_data_failed(check, resource, address, found);
                        later()
                    }
                    (Err(found), None) => return Err(found),
                };
                let object = Object::read(&known_or_null(value.clone()), &config);
                self.remember(schema, (address, None), &resource.provider, Some(&object))?;
                value
            }
        };
        // The data of a check is read again when the plan is applied.
        let nested = check.filter(|_| self.mode != Mode::RefreshOnly).map(|_| Reason::ReadBecauseCheckNested);
        match reason.or(nested) {
            Some(reason) => {
                let before = Value::null(schema.block.implied_type());
                self.note(to_be_read(resource, address, reason, (before, value.clone())));
            }
            None => self.eval.values_mut().set(address, value.clone()),
        }
        self.eval.conditions(resource, address, each, Some(&value))
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

fn to_be_read(
    resource: &ResourceConfig,
    address: &Address,
    reason: Reason,
    (before, after): (Value, Value),
) -> Planned {
    Planned {
        address: address.clone(),
        provider: resource.provider.clone(),
        action: Action::Read,
        reason: Some(reason),
        before,
        after,
        private: Vec::new(),
        identity_before: None,
        identity_after: None,
        replace_paths: Vec::new(),
        importing: None,
        deposed: None,
        previous: None,
        assumed: false,
    }
}
