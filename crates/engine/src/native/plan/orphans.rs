use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use landform_cty::Value;
use landform_protocol::Schema;
use petgraph::graph::NodeIndex;

use super::{Known, Planner};
use crate::native::config::{config_address, module_path};
use crate::native::eval::warning;
use crate::native::object::{Bound, Object, Outcome, Planned, Reason};
use crate::native::walk::Steps;
use crate::state::{Instance, State};
use crate::{Action, Address, Diagnostic, EngineError, Mode};

impl Planner<'_> {
    /// An object of a block that the configuration does not have.
    pub(super) async fn orphan(&self, known: &Known) -> Outcome<()> {
        let reason = match self.moved.contains_key(&known.address) {
            true => Reason::DeleteBecauseNoMoveTarget,
            false => Reason::DeleteBecauseNoResourceConfig,
        };
        self.unwanted(known, reason).await
    }

    /// An object that the configuration does not want (any longer).
    pub(super) async fn unwanted(&self, known: &Known, reason: Reason) -> Outcome<()> {
        if known.deposed.is_some() {
            return self.deposed(known).await;
        }
        let address = &known.address;
        let _permit = self.permits.acquire().await;
        let Some((provider, instance)) = self.base.current(address) else { return Ok(()) };
        if address.data {
            // What was read is forgotten; there is nothing to end.
            self.world().refreshed.remove(address, None);
            return Ok(());
        }
        let bound = self.bound(address, provider).await?;
        let schema = bound.resource(address)?;
        let mut object = Some(bound.read_state(address, instance).await?);
        if let Some(before) = object.clone().filter(|_| self.refresh) {
            (object, _) = self.asked(&bound, (address, None), before.clone()).await?;
            self.note_drift(address, provider, &before, object.as_ref());
        }
        self.remember(schema, (address, None), provider, object.as_ref())?;
        let Some(object) = object.filter(|_| self.mode != Mode::RefreshOnly) else { return Ok(()) };
        let mut planned = match self.lets_go(address, &object)? {
            Some(why) => {
                self.warn_of_loss(address);
                bound.plan_forget(address, &object, why.or(Some(reason)))?
            }
            None => bound.plan_destroy(address, &object, Some(reason)).await?,
        };
        planned.previous = self.moved.get(address).cloned();
        let goes = planned.action == Action::Delete;
        self.note(planned);
        match self.config().resource(address) {
            Some(resource) if goes && reason != Reason::DeleteBecauseNoModule => {
                self.eval.check_protection(resource, address, true)
            }
            _ => Ok(()),
        }
    }

    /// Whether an object that nobody wants is left where it is, and which `lifecycle` says so. A `removed` block has the
    /// last word: it is what people have said most recently.
    fn lets_go(&self, address: &Address, object: &Object) -> Outcome<Option<Option<Reason>>> {
        let said = self.kept(address, object)?;
        Ok(match self.config().removal(address) {
            Some(true) => None,
            Some(false) => Some(said),
            None => said.map(Some),
        })
    }

    /// The `lifecycle` by which an object is never destroyed: that of its resource, or the last one that it had.
    fn kept(&self, address: &Address, object: &Object) -> Outcome<Option<Reason>> {
        let resource = self.config().resource(address);
        if resource.map_or(Ok(false), |resource| self.eval.keeps(resource))? {
            return Ok(Some(Reason::ForgotBecauseLifecycleDestroyInConfig));
        }
        Ok(object.skip_destroy.then_some(Reason::ForgotBecauseLifecycleDestroyInState))
    }

    fn warn_of_loss(&self, address: &Address) {
        let detail = format!(
            "After this plan is applied, the resource {address} will not be managed anymore by OpenTofu.\n\nIn case you want to manage \
             the resource again, you will have to import it."
        );
        let warning = warning(Diagnostic::error("Resource will be removed from the state", detail));
        self.session.warnings.add(vec![warning]);
    }

    /// An object that was replaced and waits for its end.
    pub(super) async fn deposed(&self, known: &Known) -> Outcome<()> {
        let _permit = self.permits.acquire().await;
        let (address, key) = (&known.address, known.deposed.as_deref());
        let Some((provider, instance)) = self.base.object(address, key) else { return Ok(()) };
        let bound = self.bound(address, provider).await?;
        let schema = bound.resource(address)?;
        let mut object = Some(bound.read_state(address, instance).await?);
        if let Some(before) = object.clone().filter(|_| self.refresh) {
            (object, _) = self.asked(&bound, (address, key), before).await?;
        }
        self.remember(schema, (address, key), provider, object.as_ref())?;
        if self.mode == Mode::RefreshOnly {
            return Ok(());
        }
        let mut planned = match object {
            Some(object) => self.end_of_deposed(&bound, address, &object).await?,
            None => nothing_left(address, provider, schema),
        };
        planned.deposed = known.deposed.clone();
        self.note(planned);
        Ok(())
    }

    async fn end_of_deposed(&self, bound: &Bound, address: &Address, object: &Object) -> Outcome<Planned> {
        match self.lets_go(address, object)? {
            Some(why) => {
                self.warn_of_loss(address);
                bound.plan_forget(address, object, why)
            }
            None => bound.plan_destroy(address, object, None).await,
        }
    }

    /// The second pass of a destroy plan: everything that the refreshed state has is to go.
    pub(super) async fn walk_destroy(&self) -> Result<(), EngineError> {
        let refreshed = {
            let mut world = self.world();
            world.changes.clear();
            // What is about to go is not compared with what it was.
            world.drift.clear();
            world.by_address.clear();
            world.refreshed.clone()
        };
        let destroy = |doomed: Doomed| async move {
            let Doomed { address, provider, instance } = doomed;
            let _permit = self.permits.acquire().await;
            if self.stop.is_cancelled() {
                return Ok(());
            }
            let bound = self.bound(&address, &provider).await?;
            let object = bound.read_state(&address, &instance).await?;
            let mut planned = if instance.deposed.is_some() {
                self.end_of_deposed(&bound, &address, &object).await?
            } else if let Some(why) = self.kept(&address, &object)? {
                bound.plan_forget(&address, &object, Some(why))?
            } else {
                bound.plan_destroy(&address, &object, None).await?
            };
            planned.deposed = instance.deposed;
            planned.previous = self.moved.get(&address).cloned();
            let goes = planned.action == Action::Delete && planned.deposed.is_none();
            self.note(planned);
            match self.config().resource(&address) {
                Some(resource) if goes => self.eval.check_protection(resource, &address, true),
                _ => Ok(()),
            }
        };
        let steps = in_order_of_end(&refreshed);
        let found = Mutex::new(Vec::new());
        let run = |doomed: &Option<Doomed>| {
            let ended = doomed.clone().map(destroy);
            let found = &found;
            async move {
                let Some(ended) = ended else { return true };
                let problems = ended.await.err().unwrap_or_default();
                let well = problems.is_empty();
                found.lock().unwrap_or_else(PoisonError::into_inner).extend(problems);
                well
            }
        };
        steps.walk(|| self.stop.is_cancelled(), run).await;
        self.world().diagnostics.extend(found.into_inner().unwrap_or_else(PoisonError::into_inner));
        self.end_of_walk()
    }
}

/// An object of the state that is to go.
#[derive(Clone)]
struct Doomed {
    address: Address,
    provider: String,
    instance: Instance,
}

/// All objects of a state: what something stands on goes after it, so it stays if that does. Between the objects of one block
/// and those of another is a step without any, or there would be as many edges as there are pairs.
fn in_order_of_end(state: &State) -> Steps<Option<Doomed>> {
    let mut steps = Steps::new();
    // By the block, and by the instance of its module.
    let mut gates: HashMap<String, BTreeMap<String, (NodeIndex, NodeIndex)>> = HashMap::new();
    let mut needed: BTreeSet<(String, String, String)> = BTreeSet::new();
    for resource in state.resources().iter().filter(|resource| resource.mode != "data") {
        let (block, home) = (config_address(&resource.address(None)), &resource.module);
        let of_block = gates.entry(block.clone()).or_default();
        let (before, after) = *of_block.entry(home.clone()).or_insert_with(|| (steps.add(None), steps.add(None)));
        for instance in &resource.instances {
            let address = resource.address(instance.index_key.clone());
            let provider = resource.provider_of(instance).to_owned();
            let step = steps.add(Some(Doomed { address, provider, instance: instance.clone() }));
            // What was put aside goes whenever it may.
            if instance.deposed.is_some() {
                continue;
            }
            let dependencies = instance.dependencies.iter().filter(|needed| **needed != block);
            needed.extend(dependencies.map(|needed| (block.clone(), home.clone(), needed.clone())));
            steps.order(before, step);
            steps.order(step, after);
        }
    }
    for (block, home, needed) in &needed {
        let Some((_, ended)) = gates.get(block).and_then(|homes| homes.get(home)) else { continue };
        let Some(homes) = gates.get(needed) else { continue };
        // Instances of one module do not wait for each other.
        let same_module = !home.is_empty() && homes.keys().any(|other| module_path(other) == module_path(home));
        for (_, (begun, _)) in homes.iter().filter(|(other, _)| !same_module || *other == home) {
            steps.order(*ended, *begun);
        }
    }
    // They would wait for each other for ever. Only somebody who writes a state by hand makes such a circle.
    if steps.has_circle() {
        steps.forget_order();
    }
    steps
}

/// The object is gone already. OpenTofu's plan mentions it all the same.
fn nothing_left(address: &Address, provider: &str, schema: &Schema) -> Planned {
    let nothing = Value::null(schema.block.implied_type());
    Planned::plain(address, provider, Action::NoOp, (nothing.clone(), nothing))
}
