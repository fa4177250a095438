//! What expressions mean while a plan is carried out.

use crate::native::config::{Node, ResourceConfig, config_address};
use crate::native::encode;
use crate::native::eval::Each;
use crate::native::object::{Outcome, at, bare};
use crate::state::Instance;
use crate::{Address, Diagnostic, Mode};

use super::Apply;

impl<'a> Apply<'a> {
    /// Evaluates what provider blocks refer to, where nothing else of the configuration is evaluated.
    pub(super) async fn prepare_providers(&self) -> Outcome<()> {
        for place in self.config().graph.before_providers() {
            self.node(place).await?;
        }
        Ok(())
    }

    /// Outputs of a plan that changes no object are known already.
    pub(super) fn known_outputs(&self) {
        for (name, output) in self.content.outputs.iter().filter(|(_, output)| !output.removed) {
            if let Ok(Some(stored)) = encode::output(&bare(&output.after), output.sensitive) {
                self.world().state.outputs.insert(name.clone(), stored);
            }
        }
    }

    /// One node of the configuration: its expressions now mean what they mean after all that comes before it.
    pub(super) async fn node(&self, place: usize) -> Outcome<()> {
        let node = &self.config().graph.nodes()[place];
        let Some(resource) = self.config().resource_of(node) else {
            self.eval.node(node)?;
            return match node {
                Node::Output(0, name) => self.output(name),
                _ => Ok(()),
            };
        };
        for instance in self.eval.instances(resource.module) {
            self.eval.expand_resource(resource, &instance)?;
        }
        if resource.data || self.content.mode != Mode::Normal {
            self.values_from_state(resource).await?;
        }
        let mut values = self.eval.values_mut();
        for at in self.by_block.get(&resource.address).into_iter().flatten() {
            let planned = &self.content.changes[*at];
            if !planned.after.is_null() && planned.deposed.is_none() {
                values.set(&planned.address, planned.after.clone());
            }
        }
        Ok(())
    }

    /// What was read while the plan was made, or exists and is about to go, is only in the state.
    async fn values_from_state(&self, resource: &ResourceConfig) -> Outcome<()> {
        let stored: Vec<(Address, Instance)> = {
            let world = self.world();
            let own = world
                .state
                .resources()
                .iter()
                .filter(|stored| config_address(&stored.address(None)) == resource.address);
            let current = own.flat_map(|stored| {
                let instances = stored.instances.iter().filter(|instance| instance.deposed.is_none());
                instances.map(|instance| (stored.address(instance.index_key.clone()), instance.clone()))
            });
            current.collect()
        };
        if stored.is_empty() {
            return Ok(());
        }
        let schema = self.session.schema(&resource.provider, self.config()).await?;
        let schemas = if resource.data { &schema.data_sources } else { &schema.resources };
        let Some(schema) = schemas.get(&resource.type_name) else { return Ok(()) };
        let mut values = self.eval.values_mut();
        for (address, instance) in stored {
            if let Ok(value) = encode::stored_value(&instance, &schema.block) {
                values.set(&address, value);
            }
        }
        Ok(())
    }

    /// The block of an object, and which of its instances the object is.
    pub(super) fn block_of(&self, address: &Address) -> Outcome<(&'a ResourceConfig, Each)> {
        let missing = || {
            vec![at(
                address,
                Diagnostic::error("Resource has no configuration", format!("{address} is not configured.")),
            )]
        };
        let resource = self.config().resource(address).ok_or_else(missing)?;
        let values = self.eval.values();
        let keys = values.keys(&address.module, &resource.local).ok_or_else(missing)?;
        Ok((resource, keys.each(&address.key).ok_or_else(missing)?))
    }

    fn output(&self, name: &str) -> Outcome<()> {
        let Some(planned) = self.content.outputs.get(name) else { return Ok(()) };
        let value = self.eval.root_output(name).unwrap_or_else(|| planned.after.clone());
        let stored = encode::output(&bare(&value), planned.sensitive)
            .map_err(|detail| vec![Diagnostic::error(format!("Cannot save output {name:?}"), detail)])?;
        let mut world = self.world();
        match stored {
            Some(output) => drop(world.state.outputs.insert(name.to_owned(), output)),
            None => drop(world.state.outputs.remove(name)),
        }
        Ok(())
    }
}
