use landform_cty::Value;

use super::Planner;
use crate::native::change::planned_data;
use crate::native::config::{ResourceConfig, config_address, module_path};
use crate::native::eval::Each;
use crate::native::object::{Object, Outcome, Planned, Reason, bare, known_or_null};
use crate::{Action, Address, Mode};

impl Planner<'_> {
    /// A data source: read now, or when the plan is applied, if something that it needs is not there yet.
    pub(super) async fn data(&self, resource: &ResourceConfig, address: &Address, each: &Each) -> Outcome<()> {
        let provider = &self.eval.provider_for(resource, address, each)?;
        let bound = self.bound(address, provider).await?;
        let schema = bound.data_source(address)?;
        self.eval.deprecations.learn(resource, &bound.schema);
        self.eval.conditions(resource, address, each, None)?;
        let config = self.eval.body(resource, address, each, &schema.block)?;
        let bare_config = bare(&config);
        let reason = if !bare_config.is_wholly_known() {
            Some(Reason::ReadBecauseConfigUnknown)
        } else if self.pending(resource, address) {
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
                if !self.import_only {
                    self.world().refreshed.remove(address, None);
                }
                later()
            }
            (None, check) => {
                let value = match (bound.read_data(address, &config, self.progress).await, check) {
                    (Ok(value), _) => value,
                    (Err(found), Some(check)) => {
                        self.eval.check_data_failed(check, resource, address, found);
                        later()
                    }
                    (Err(found), None) => return Err(found),
                };
                let object = Object::read(&known_or_null(value.clone()), &config);
                self.remember(schema, (address, None), provider, Some(&object))?;
                value
            }
        };
        // The data of a check is read again when the plan is applied.
        let reason = reason.or(check.map(|_| Reason::ReadBecauseCheckNested));
        // Where nothing is planned, what cannot be read yet is not there.
        match reason.filter(|_| self.mode != Mode::RefreshOnly) {
            Some(reason) => {
                let before = Value::null(schema.block.implied_type());
                let planned = Planned::plain(address, provider, Action::Read, (before, value.clone()));
                self.note(Planned { reason: Some(reason), ..planned });
            }
            None => self.eval.set_object(address, value.clone()),
        }
        self.eval.conditions(resource, address, each, Some(&value))
    }

    /// Whether something that it waits for is still to be changed.
    fn pending(&self, resource: &ResourceConfig, address: &Address) -> bool {
        let awaited = self.config().awaited(resource);
        if awaited.is_empty() {
            return false;
        }
        // Of its own module only its own instance matters.
        let own = module_path(&address.module);
        let elsewhere = |other: &str| other != address.module && module_path(other) == own;
        let world = self.world();
        world.changes.iter().any(|planned| {
            !planned.address.data
                && planned.action != Action::NoOp
                && !elsewhere(&planned.address.module)
                && awaited.contains(&config_address(&planned.address))
        })
    }
}
