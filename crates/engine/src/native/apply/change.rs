//! One object at a time: made, changed, read or ended.

use landform_cty::{Type, Value};
use landform_protocol::{ApplyResourceChange, Schema};

use super::Apply;
use super::journal::{Fate, Target};
use super::result::changed;
use crate::native::change::{incompatibilities, sensitivity_differs};
use crate::native::config::ResourceConfig;
use crate::native::eval::Each;
use crate::native::object::{
    Bound, Id, Identity, Memory, Object, Outcome, Planned, Told, Wishes, at, bare, id_of, id_or_name_of,
};
use crate::native::show::source_of;
use crate::{Action, Address, Diagnostic, IntentAction, Stage, Work};

impl<'a> Apply<'a> {
    /// Nothing is to be done about an object, but what it promises is checked again.
    pub(super) async fn conditions(&self, planned: &Planned) -> Outcome<()> {
        let (resource, each) = self.block_of(&planned.address)?;
        // OpenTofu takes the object from the state for it.
        if let Some(instance) = self.stored(&planned.address, None) {
            let bound = self.session.bound(&planned.provider, &self.eval).await?;
            bound.read_state(&planned.address, &instance).await?;
        }
        self.eval.conditions(resource, &planned.address, &each, None)?;
        self.eval.conditions(resource, &planned.address, &each, Some(&planned.after))
    }

    /// A data source that could not be read while the plan was made.
    pub(super) async fn read(&self, planned: &Planned) -> Outcome<()> {
        let address = &planned.address;
        let (resource, each) = self.block_of(address)?;
        let bound = self.session.bound(&planned.provider, &self.eval).await?;
        let schema = bound.data_source(address)?;
        self.eval.conditions(resource, address, &each, None)?;
        let config = self.eval.body(resource, address, &each, &schema.block)?;
        if !bare(&config).is_wholly_known() {
            return Err(vec![unknown_config(address)]);
        }
        let value = match (bound.read_data(address, &config, self.progress).await, &self.config().block(resource).check)
        {
            (Ok(value), _) => value,
            (Err(found), Some(check)) => {
                self.eval.check_data_failed(check, resource, address, found);
                return Ok(());
            }
            (Err(found), None) => return Err(found),
        };
        let object = Object::read(&value, &config);
        let instance = self.instance(schema, address, &object)?;
        self.put(address, &bound, schema, instance);
        self.eval.conditions(resource, address, &each, Some(&value))
    }

    /// Ends an object: the current one, or the deposed one with this key.
    pub(super) async fn destroy(&self, planned: &Planned, deposed: Option<String>) -> Outcome<()> {
        let address = &planned.address;
        let bound = self.session.bound(&planned.provider, &self.eval).await?;
        let Some(instance) = self.stored(address, deposed.as_deref()) else { return Ok(()) };
        let object = bound.read_state(address, &instance).await?;
        // The end of a deposed object is planned when it comes, as OpenTofu has it.
        let replanned = match &deposed {
            Some(_) => Some(bound.plan_destroy(address, &object, None).await?),
            None => None,
        };
        let ending = replanned.as_ref().unwrap_or(planned);
        let work = Work::Change(Action::Delete);
        let told = Told::begin(self.progress, address, deposed.as_deref(), work, id_or_name_of(&ending.before));
        let outcome =
            self.end_object(planned, ending, object, &bound, Target { address, deposed: deposed.as_deref() }).await;
        told.end(if outcome.is_ok() { Stage::Done } else { Stage::Failed }, Id::default());
        outcome
    }

    async fn end_object(
        &self,
        planned: &Planned,
        ending: &Planned,
        object: Object,
        bound: &Bound,
        target: Target<'_>,
    ) -> Outcome<()> {
        let Target { address, deposed } = target;
        let schema = bound.resource(address)?;
        let nothing = Value::null(schema.block.implied_type());
        let call = ApplyResourceChange {
            type_name: address.type_name.clone(),
            prior: bare(&ending.before),
            planned: nothing.clone(),
            config: nothing,
            planned_private: ending.private.clone(),
            // Of a replacement, the identity that is planned is that of the new object.
            planned_identity: sent(&ending.identity_after).filter(|_| ending.action == Action::Delete),
        };
        let made = self.make(bound, target, &ending.private, IntentAction::Delete, call).await?;
        let (mut diagnostics, answer) = (made.diagnostics, made.answer);
        let failed = diagnostics.iter().any(Diagnostic::is_error);
        if !answer.new_state.is_null() && !failed {
            let what = "returned a non-null object after a destroy";
            diagnostics.push(bound.broken(address, "Provider returned invalid result object after apply", what));
        }
        let fate = if answer.new_state.is_null() && failed {
            Fate::Untouched
        } else if answer.new_state.is_null() {
            Fate::Gone
        } else {
            let value = bound.with_marks(schema, answer.new_state, &planned.before.clone().unmark_deep_with_paths().1);
            let create_before_destroy = object.create_before_destroy && deposed.is_none();
            let identity = bound.identity(address, answer.identity);
            let kept = Object { value, private: answer.private, identity, create_before_destroy, ..object };
            self.fate(schema, address, &kept)?
        };
        self.settle(made.intent, bound, target, fate).await?;
        self.finish(diagnostics)
    }

    /// Lets an object go: it stays where it is, and the state has it no longer.
    pub(super) async fn forget(&self, planned: &Planned) -> Outcome<()> {
        let (address, deposed) = (&planned.address, planned.deposed.as_deref());
        let Some(instance) = self.stored(address, deposed) else { return Ok(()) };
        // OpenTofu takes it from the state once more before.
        let bound = self.session.bound(&planned.provider, &self.eval).await?;
        bound.read_state(address, &instance).await?;
        self.world().state.remove(address, deposed);
        Ok(())
    }

    pub(super) async fn change(&self, planned: &Planned) -> Outcome<()> {
        let address = &planned.address;
        let (resource, each) = self.block_of(address)?;
        let mut bound = self.session.bound(&planned.provider, &self.eval).await?;
        if self.stands_on_changes(resource) {
            // The provider may plan it otherwise by now: it can look at what was not there yet.
            bound.memory = Memory::None;
        }
        let schema = bound.resource(address)?;
        if planned.action == Action::CreateBeforeDestroy {
            self.depose(address);
        }
        let mut told = None;
        let outcome = self.change_object(planned, (resource, &each), &bound, schema, &mut told).await;
        let begun = told.is_some();
        if let Some(told) = told {
            match self.eval.values().object(address).filter(|_| outcome.is_ok()) {
                Some(value) => told.end(Stage::Done, id_of(&value)),
                None => told.end(Stage::Failed, Id::default()),
            }
        }
        let restored = outcome.is_err() && self.restore(address);
        // What could not be made has no value, whatever the plan said.
        let made = outcome.is_ok() || self.stored(address, None).is_some();
        let value = match restored {
            true => Some(planned.before.clone()),
            false => self.eval.values().object(address).filter(|_| made),
        };
        let held = match value {
            Some(_) if !begun && outcome.is_err() => Ok(()),
            Some(value) => self.eval.conditions(resource, address, &each, Some(&value)),
            // What could not be made may be anything; a condition may be about something else.
            None if begun && outcome.is_err() => {
                self.eval.conditions(resource, address, &each, Some(&Value::unknown(Type::Dynamic)))
            }
            None => Ok(()),
        };
        match outcome {
            Ok(()) => held,
            Err(problems) => Err([problems, held.err().unwrap_or_default()].concat()),
        }
    }

    /// Whether this plan changes something that these objects depend on.
    fn stands_on_changes(&self, resource: &ResourceConfig) -> bool {
        let changes = |block: &String| {
            let places = self.by_block.get(block).map_or(&[][..], Vec::as_slice);
            places.iter().any(|at| self.content.changes[*at].action != Action::NoOp)
        };
        resource.dependencies.iter().any(changes)
    }

    /// `told`: that it was begun, as soon as it is.
    async fn change_object(
        &self,
        planned: &Planned,
        (resource, each): (&ResourceConfig, &Each),
        bound: &Bound,
        schema: &Schema,
        told: &mut Option<Told<'a>>,
    ) -> Outcome<()> {
        let address = &planned.address;
        let mut prior = match self.stored(address, None) {
            Some(instance) => Some(bound.read_state(address, &instance).await?),
            None => None,
        };
        if let Some(prior) = prior.as_mut().filter(|_| planned.assumed) {
            prior.value = planned.before.clone();
        }
        self.eval.conditions(resource, address, each, None)?;
        let config = self.eval.body(resource, address, each, &schema.block)?;
        let wishes = Wishes {
            force: None,
            ignore: &self.config().block(resource).lifecycle.ignore_changes,
            create_before_destroy: resource.create_before_destroy,
            keep: self.eval.keeps(resource),
            gone_private: Vec::new(),
        };
        let actual = bound.plan(address, prior.as_ref(), &config, &wishes, Some(planned)).await?;
        self.check_actual(bound, schema, planned, &actual)?;
        if actual.action == Action::NoOp {
            // Others go on with what it is, and no more with what it might have become.
            self.eval.set_object(address, actual.after.clone());
            return Ok(());
        }
        let dependencies: Vec<String> = resource.dependencies.iter().cloned().collect();
        let create_before_destroy = self.early.contains(address);
        let before = if actual.action == Action::Update { actual.before.clone() } else { null_like(schema) };
        let work = Work::Change(if actual.action == Action::Update { Action::Update } else { Action::Create });
        *told = Some(Told::begin(self.progress, address, None, work, id_or_name_of(&before)));
        let only_sensitivity = actual.action == Action::Update
            && bare(&before).equals(&bare(&actual.after)).as_bool() == Some(true)
            && sensitivity_differs(&before, &actual.after);
        if let Some(prior) = prior.as_ref().filter(|_| only_sensitivity) {
            // Nothing changes for the provider, so it is not asked.
            let object = Object { value: actual.after.clone(), dependencies, create_before_destroy, ..prior.clone() };
            let instance = self.instance(schema, address, &object)?;
            self.put(address, bound, schema, instance);
            return Ok(());
        }
        let bare_config = bare(&config);
        if !bare_config.is_wholly_known() {
            return Err(vec![unknown_config(address)]);
        }
        let call = ApplyResourceChange {
            type_name: address.type_name.clone(),
            prior: bare(&before),
            planned: bare(&actual.after),
            config: bare_config,
            planned_private: actual.private.clone(),
            planned_identity: sent(&actual.identity_after),
        };
        let action = if actual.action == Action::Update { IntentAction::Update } else { IntentAction::Create };
        let target = Target { address, deposed: None };
        let made = self.make(bound, target, &actual.private, action, call).await?;
        let (object, diagnostics) = changed(bound, schema, &actual, prior.as_ref(), made.answer, made.diagnostics);
        let fate = match object {
            Some(object) => {
                let failed = diagnostics.iter().any(Diagnostic::is_error);
                let skip_destroy = if failed { object.skip_destroy } else { self.eval.keeps(resource)? };
                self.fate(schema, address, &Object { dependencies, create_before_destroy, skip_destroy, ..object })?
            }
            None => Fate::Untouched,
        };
        self.settle(made.intent, bound, target, fate).await?;
        self.finish(diagnostics)
    }

    /// Puts the current object aside, so that its replacement can take its place.
    fn depose(&self, address: &Address) {
        let mut world = self.world();
        let Some((provider, instance)) = world.state.current(address) else { return };
        let (provider, mut instance) = (provider.to_owned(), instance.clone());
        let key: String = uuid::Uuid::new_v4().simple().to_string()[..8].to_owned();
        world.state.remove(address, None);
        instance.deposed = Some(key.clone());
        world.state.put(address, &provider, instance);
        world.deposed.insert(address.clone(), key);
    }

    /// The replacement was not made: the object that was put aside is the current one again.
    fn restore(&self, address: &Address) -> bool {
        let mut world = self.world();
        let Some(key) = world.deposed.get(address).cloned() else { return false };
        if world.state.current(address).is_some() {
            return false;
        }
        let Some((provider, instance)) = world.state.object(address, Some(&key)) else { return false };
        let (provider, mut instance) = (provider.to_owned(), instance.clone());
        world.state.remove(address, Some(&key));
        instance.deposed = None;
        world.state.put(address, &provider, instance);
        world.deposed.remove(address);
        true
    }

    /// The plan that comes out with all values known must keep what the approved plan promised.
    fn check_actual(&self, bound: &Bound, schema: &Schema, planned: &Planned, actual: &Planned) -> Outcome<()> {
        let broken = |what: String| {
            let words = format!(
                "When expanding the plan for {} to include new values learned so far during apply, provider {:?} {what}.",
                planned.address,
                source_of(&bound.address.to_string())
            );
            bound.blamed(&planned.address, "Provider produced inconsistent final plan", words)
        };
        let mut found = Vec::new();
        let settled = matches!(
            (planned.action, actual.action),
            // The old object is forgotten by now.
            (Action::Update, Action::NoOp) | (Action::ForgetThenCreate, Action::Create)
        );
        if planned.action != actual.action && !settled {
            let named = |action: Action| match action {
                Action::Replace => "DeleteThenCreate".to_owned(),
                Action::CreateBeforeDestroy => "CreateThenDelete".to_owned(),
                action => format!("{action:?}"),
            };
            let what = format!("changed the planned action from {} to {}", named(planned.action), named(actual.action));
            found.push(broken(what));
        }
        for problem in incompatibilities(&schema.block, &planned.after, &actual.after) {
            found.push(broken(format!("produced an invalid new value for {problem}")));
        }
        if found.is_empty() { Ok(()) } else { Err(found) }
    }
}

fn unknown_config(address: &Address) -> Diagnostic {
    let detail = format!("The configuration of {address} still has unknown values during apply.");
    at(address, Diagnostic::error("Configuration contains unknown value", detail))
}

fn sent(identity: &Option<Identity>) -> landform_protocol::Identity {
    identity.as_ref().map(|identity| identity.value.clone())
}

fn null_like(schema: &Schema) -> Value {
    Value::null(schema.block.implied_type())
}
