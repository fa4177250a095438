use futures::future::join_all;
use landform_cty::Value;
use landform_protocol::Schema;

use super::{Known, Planner};
use crate::native::eval::warning;
use crate::native::object::{Bound, Object, Outcome, Planned, Reason};
use crate::state::Instance;
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
        let destroy = |(address, provider, instance): (Address, String, Instance)| async move {
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
        let objects = refreshed.resources().iter().filter(|resource| resource.mode != "data").flat_map(|resource| {
            let object = |instance: &Instance| {
                let provider = resource.provider_of(instance).to_owned();
                (resource.address(instance.index_key.clone()), provider, instance.clone())
            };
            resource.instances.iter().map(object)
        });
        let outcomes = join_all(objects.map(destroy)).await;
        self.world().diagnostics.extend(outcomes.into_iter().filter_map(Result::err).flatten());
        self.end_of_walk()
    }
}

/// The object is gone already. OpenTofu's plan mentions it all the same.
fn nothing_left(address: &Address, provider: &str, schema: &Schema) -> Planned {
    let nothing = Value::null(schema.block.implied_type());
    Planned::plain(address, provider, Action::NoOp, (nothing.clone(), nothing))
}
