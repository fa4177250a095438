//! What expressions mean while a plan is carried out.

use std::collections::BTreeSet;

use crate::native::config::{Node, ResourceConfig, config_address};
use crate::native::encode;
use crate::native::eval::Each;
use crate::native::object::{Outcome, Planned, at, bare, known_or_null};
use crate::state::Instance;
use crate::{Address, Diagnostic, Mode};

use super::Apply;

impl<'a> Apply<'a> {
    /// Evaluates what provider blocks refer to, where nothing else of the configuration is evaluated but what is to be
    /// checked once more.
    pub(super) async fn prepare(&self) -> Outcome<()> {
        let graph = &self.config().graph;
        let providers: BTreeSet<usize> = graph.before_providers().into_iter().collect();
        let checked = self.checked_again();
        let before = checked.iter().flat_map(|place| graph.all_before(*place));
        let wanted: BTreeSet<usize> = before.chain(providers.iter().chain(&checked).copied()).collect();
        for place in graph.in_order().into_iter().filter(|place| wanted.contains(place)) {
            let outcome = match checked.contains(&place) {
                // Its value is known from the plan.
                true => self.eval.node(&graph.nodes()[place]),
                false => self.node(place).await,
            };
            match outcome {
                Err(found) if !providers.contains(&place) => self.world().diagnostics.extend(found),
                outcome => outcome?,
            }
        }
        Ok(())
    }

    /// Where a plan does nothing but save what is known, checks are looked at again, and the conditions of outputs of the
    /// root module and of those that they stand on.
    fn checked_again(&self) -> BTreeSet<usize> {
        let (config, graph) = (self.config(), &self.config().graph);
        if self.content.mode != Mode::RefreshOnly {
            return BTreeSet::new();
        }
        let places = |wanted: fn(&Node) -> bool| {
            graph.nodes().iter().enumerate().filter(move |(_, node)| wanted(node)).map(|(place, _)| place)
        };
        let outputs = places(|node| matches!(node, Node::Output(0, _)));
        let outputs = outputs.flat_map(|place| graph.all_before(place).into_iter().chain([place])).filter(|place| {
            let Node::Output(id, name) = &graph.nodes()[*place] else { return false };
            !config.modules[*id].module.outputs[name].preconditions.is_empty()
        });
        outputs.chain(places(|node| matches!(node, Node::Check(..)))).collect()
    }

    /// Outputs of a plan that changes no object are known already. What is not known by then stays so, since what it came from
    /// is gone: it is null.
    pub(super) fn known_outputs(&self) {
        for (name, output) in self.content.outputs.iter().filter(|(_, output)| !output.removed) {
            let after = bare(&output.after);
            let stored = match after.is_wholly_known() {
                true => encode::output(&after, output.sensitive),
                false => encode::present_output(&known_or_null(after), output.sensitive).map(Some),
            };
            if let Ok(Some(stored)) = stored {
                self.world().state.outputs.insert(name.clone(), stored);
            }
        }
    }

    /// One node of the configuration: its expressions now mean what they mean after all that comes before it.
    pub(super) async fn node(&self, place: usize) -> Outcome<()> {
        let node = &self.config().graph.nodes()[place];
        let idle = self.idle.contains(&place);
        let Some(resource) = self.config().resource_of(node) else {
            match node {
                Node::Output(0, name) if self.is_planned(name) => self.eval.known_output(name)?,
                Node::Output(id, name) if idle => self.quietly(|| self.eval.idle_output(*id, name))?,
                _ if idle => self.quietly(|| self.eval.node(node))?,
                _ => self.eval.node(node)?,
            }
            return match node {
                Node::Output(0, name) => self.output(name),
                _ => Ok(()),
            };
        };
        let expand = || -> Outcome<()> {
            for instance in self.eval.homes(resource) {
                self.eval.expand_resource(resource, &instance)?;
                self.expect(place, resource.instance(&instance, None), &resource.provider);
            }
            Ok(())
        };
        if idle { self.quietly(expand) } else { expand() }?;
        if self.content.deprecations {
            let schema = self.session.schema(&resource.provider, self.config()).await?;
            self.eval.deprecations.learn(resource, &schema);
        }
        if resource.data || self.content.mode != Mode::Normal {
            self.values_from_state(resource).await?;
        }
        let planned = self.by_block.get(&resource.address).into_iter().flatten();
        let planned = planned.map(|at| &self.content.changes[*at]);
        let planned: Vec<&Planned> =
            planned.filter(|planned| !planned.after.is_null() && planned.deposed.is_none()).collect();
        if self.content.mode == Mode::Normal && !resource.data {
            // What a file says may be another thing by now: the plan counts.
            let homes = self.eval.homes(resource);
            self.eval.values_mut().only(&homes, &resource.local, planned.iter().map(|planned| &planned.address));
        }
        for planned in planned {
            self.eval.set_object(&planned.address, planned.after.clone());
        }
        Ok(())
    }

    /// The state has an entry for a resource before it has any object of it.
    fn expect(&self, place: usize, address: Address, provider: &str) {
        let mut world = self.world();
        if self.content.mode == Mode::Normal && world.state.expect(&address, provider) {
            world.expected.push((place, address));
        }
    }

    /// Whether the plan knows all of an output's value already: then it is not evaluated again.
    fn is_planned(&self, name: &str) -> bool {
        self.content.outputs.get(name).is_some_and(|planned| planned.after.is_wholly_known())
    }

    fn quietly<T>(&self, evaluate: impl FnOnce() -> T) -> T {
        self.eval.deprecations.quietly(evaluate)
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
            let all = own.flat_map(|stored| {
                let instances = stored.instances.iter();
                instances.map(|instance| (stored.address(instance.index_key.clone()), instance.clone()))
            });
            all.collect()
        };
        let of_check = self.config().block(resource).check.is_some();
        let looked_at = self.content.mode == Mode::RefreshOnly && !of_check;
        if stored.is_empty() {
            if looked_at {
                self.eval.only_what_is_there(resource, stored, None);
            }
            return Ok(());
        }
        let schema = self.session.schema(&resource.provider, self.config()).await?;
        let schemas = if resource.data { &schema.data_sources } else { &schema.resources };
        let Some(schema) = schemas.get(&resource.type_name) else { return Ok(()) };
        if looked_at {
            self.eval.only_what_is_there(resource, stored, Some(&schema.block));
            return Ok(());
        }
        for (address, instance) in stored.iter().filter(|(_, instance)| instance.deposed.is_none()) {
            if let Ok(value) = encode::stored_value(instance, &schema.block) {
                self.eval.set_object(address, value);
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
        let each = keys.each(&address.key).or_else(|| keys.lost(&address.key));
        Ok((resource, each.ok_or_else(missing)?))
    }

    fn output(&self, name: &str) -> Outcome<()> {
        let Some(planned) = self.content.outputs.get(name) else { return Ok(()) };
        // What a plan knows is what it says, even if a file has changed since.
        let evaluated = self.eval.root_output(name).filter(|_| !planned.after.is_wholly_known());
        let value = evaluated.unwrap_or_else(|| planned.after.clone());
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
