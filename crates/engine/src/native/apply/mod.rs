//! Carrying out a plan: object by object along the graph, each change journalled before it is made.

mod order;
mod result;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use landform_cty::Value;
use landform_protocol::{ApplyAnswer, ApplyResourceChange, CallError, Schema};
use tokio::sync::Semaphore;

use self::order::{Step, steps};
use self::result::changed;
use super::change::{incompatibilities, sensitivity_differs};
use super::config::{Config, Node, ResourceConfig, config_address};
use super::content::Content;
use super::encode;
use super::eval::{Checks, Each, Eval};
use super::object::{Bound, Object, Outcome, Planned, Wishes, at, bare, translate};
use super::plan::as_configured;
use super::session::Session;
use super::walk::End;
use crate::state::{Instance, State};
use crate::{
    Action, Address, Diagnostic, EngineError, Intent, IntentAction, IntentId, Journal, Mode, Progress, ProgressEvent,
    Refused, Settlement, Stage, Stop,
};

/// Why nothing more may be changed.
enum Halt {
    Refused(Refused),
    /// A provider did not come back from a change. Its intent stays open on purpose: whether the change was made is not
    /// known, and only the journal keeps that doubt alive. A state with diagnostics would close it.
    Lost(String),
}

pub struct Apply<'a> {
    content: &'a Content,
    eval: Eval<'a>,
    session: &'a Session<'a>,
    journal: &'a dyn Journal,
    progress: &'a dyn Progress,
    stop: &'a Stop,
    permits: Semaphore,
    /// The changes by the block that they belong to.
    by_block: HashMap<String, Vec<usize>>,
    world: Mutex<World>,
}

/// What changes while the plan is carried out.
struct World {
    state: State,
    /// The keys of objects that were deposed by this apply.
    deposed: HashMap<Address, String>,
    diagnostics: Vec<Diagnostic>,
    halt: Option<Halt>,
}

/// Where the walk ended.
pub struct Ended {
    pub state: State,
    pub checks: Checks,
    pub diagnostics: Vec<Diagnostic>,
    pub stopped: bool,
}

impl<'a> Apply<'a> {
    pub fn new(
        config: &'a Config,
        content: &'a Content,
        session: &'a Session<'a>,
        ports: (&'a dyn Journal, &'a dyn Progress, &'a Stop),
        state: State,
        parallelism: usize,
    ) -> Apply<'a> {
        let (journal, progress, stop) = ports;
        let mut by_block: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, planned) in content.changes.iter().enumerate() {
            by_block.entry(config_address(&planned.address)).or_default().push(at);
        }
        let world = World { state, deposed: HashMap::new(), diagnostics: Vec::new(), halt: None };
        let permits = Semaphore::new(parallelism);
        let (eval, world) = (Eval::applying(config), Mutex::new(world));
        Apply { content, eval, session, journal, progress, stop, permits, by_block, world }
    }

    fn config(&self) -> &'a Config {
        self.eval.config
    }

    pub async fn run(self) -> Result<Ended, EngineError> {
        let steps = steps(self.content, self.config(), &self.world().state);
        if self.content.mode != Mode::Normal {
            self.prepare_providers().await.map_err(EngineError::Diagnostics)?;
            self.known_outputs();
        }
        for name in self.content.outputs.iter().filter(|(_, output)| output.removed).map(|(name, _)| name) {
            self.world().state.outputs.remove(name);
        }
        let halted = || self.stop.is_cancelled() || self.world().halt.is_some();
        let walk = steps.walk(halted, |step| self.step(step));
        let stopper = async {
            self.stop.cancelled().await;
            self.session.stop_calls().await;
            std::future::pending::<()>().await
        };
        let ends = tokio::select! {
            ends = walk => ends,
            () = stopper => unreachable!("it never ends"),
        };
        let stopped = self.stop.is_cancelled() && ends.contains(&End::Skipped);
        let checks = match self.content.mode {
            Mode::Normal => self.eval.checks(),
            Mode::Destroy => Eval::unchecked_outputs(self.config()),
            Mode::RefreshOnly => self.content.checks.clone(),
        };
        let warnings = self.eval.take_warnings();
        let mut world = self.world.into_inner().unwrap_or_else(PoisonError::into_inner);
        match world.halt {
            Some(Halt::Refused(refused)) => Err(EngineError::Refused(refused)),
            Some(Halt::Lost(detail)) => Err(EngineError::Lost(detail)),
            None => {
                if self.content.mode == Mode::Destroy && ends.iter().all(|end| *end == End::Done) {
                    forget_data(&mut world.state);
                }
                let mut diagnostics = [world.diagnostics, warnings].concat();
                if ends.contains(&End::Skipped) && !stopped && !diagnostics.iter().any(Diagnostic::is_error) {
                    let detail = "Some changes wait for each other, so none of them was begun.";
                    diagnostics.push(Diagnostic::error("Cycle in the plan", detail));
                }
                Ok(Ended { state: world.state, checks, diagnostics, stopped })
            }
        }
    }

    /// Evaluates what provider blocks refer to, where nothing else of the configuration is evaluated.
    async fn prepare_providers(&self) -> Outcome<()> {
        for place in self.config().graph.before_providers() {
            self.node(place).await?;
        }
        Ok(())
    }

    /// Outputs of a plan that changes no object are known already.
    fn known_outputs(&self) {
        for (name, output) in self.content.outputs.iter().filter(|(_, output)| !output.removed) {
            if let Ok(Some(stored)) = encode::output(&bare(&output.after), output.sensitive) {
                self.world().state.outputs.insert(name.clone(), stored);
            }
        }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn step(&self, step: &Step) -> bool {
        let outcome = match step {
            Step::Gate => Ok(()),
            Step::Node(place) => self.node(*place).await,
            Step::Forget(at) => {
                self.world().state.remove(&self.content.changes[*at].address, None);
                Ok(())
            }
            Step::Change(at) | Step::Destroy(at) | Step::DestroyDeposed(at) => {
                let planned = &self.content.changes[*at];
                let permit = self.permits.acquire().await;
                if permit.is_err() || self.stop.is_cancelled() || self.world().halt.is_some() {
                    return false;
                }
                self.object(step, planned).await
            }
        };
        match outcome {
            Ok(()) => true,
            Err(diagnostics) => {
                self.world().diagnostics.extend(diagnostics);
                false
            }
        }
    }

    async fn object(&self, step: &Step, planned: &Planned) -> Outcome<()> {
        // People see the two halves of a replacement as what they are.
        let action = match (step, planned.action) {
            (Step::Destroy(_) | Step::DestroyDeposed(_), _) => Action::Delete,
            (_, Action::Replace | Action::CreateBeforeDestroy) => Action::Create,
            (_, action) => action,
        };
        if action == Action::NoOp {
            return self.conditions(planned);
        }
        let begun = Instant::now();
        self.report(&planned.address, action, Stage::Started, None);
        let outcome = match step {
            Step::Destroy(_) => self.destroy(planned, None).await,
            Step::DestroyDeposed(_) => {
                let made = self.world().deposed.get(&planned.address).cloned();
                self.destroy(planned, planned.deposed.clone().or(made)).await
            }
            _ if action == Action::Read => self.read(planned).await,
            _ => self.change(planned).await,
        };
        let stage = if outcome.is_ok() { Stage::Done } else { Stage::Failed };
        self.report(&planned.address, action, stage, Some(begun));
        outcome
    }

    /// One node of the configuration: its expressions now mean what they mean after all that comes before it.
    async fn node(&self, place: usize) -> Outcome<()> {
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
    fn block_of(&self, address: &Address) -> Outcome<(&'a ResourceConfig, Each)> {
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

    /// Nothing is to be done about an object, but what it promises is checked again.
    fn conditions(&self, planned: &Planned) -> Outcome<()> {
        let (resource, each) = self.block_of(&planned.address)?;
        self.eval.conditions(resource, &planned.address, &each, None)?;
        self.eval.conditions(resource, &planned.address, &each, Some(&planned.after))
    }

    /// A data source that could not be read while the plan was made.
    async fn read(&self, planned: &Planned) -> Outcome<()> {
        let address = &planned.address;
        let (resource, each) = self.block_of(address)?;
        let bound = self.session.bound(&planned.provider, &self.eval).await?;
        let schema = bound.data_source(address)?;
        self.eval.conditions(resource, address, &each, None)?;
        let config = self.eval.body(resource, address, &each, &schema.block)?;
        if !bare(&config).is_wholly_known() {
            return Err(vec![unknown_config(address)]);
        }
        let value = bound.read_data(address, &config).await?;
        let object = Object {
            value: as_configured(&value, &config),
            private: Vec::new(),
            tainted: false,
            dependencies: Vec::new(),
            create_before_destroy: false,
        };
        let instance = self.instance(schema, address, &object)?;
        self.put(address, &bound, schema, instance);
        self.eval.conditions(resource, address, &each, Some(&value))
    }

    fn report(&self, address: &Address, action: Action, stage: Stage, begun: Option<Instant>) {
        let millis = begun.map(|begun| u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX));
        self.progress.report(ProgressEvent::Object { address: address.to_string(), action, stage, millis });
    }

    /// Ends an object: the current one, or the deposed one with this key.
    async fn destroy(&self, planned: &Planned, deposed: Option<String>) -> Outcome<()> {
        let address = &planned.address;
        let bound = self.session.bound(&planned.provider, &self.eval).await?;
        let Some(instance) = self.stored(address, deposed.as_deref()) else { return Ok(()) };
        let object = bound.read_state(address, &instance).await?;
        let schema = bound.resource(address)?;
        let nothing = Value::null(schema.block.implied_type());
        // The end of a deposed object is planned when it comes, as OpenTofu has it.
        let replanned = match &deposed {
            Some(_) => Some(bound.plan_destroy(address, &object, None).await?),
            None => None,
        };
        let ending = replanned.as_ref().unwrap_or(planned);
        let call = ApplyResourceChange {
            type_name: address.type_name.clone(),
            prior: bare(&ending.before),
            planned: nothing.clone(),
            config: nothing,
            planned_private: ending.private.clone(),
        };
        let target = Target { address, deposed: deposed.as_deref() };
        let made = self.make(&bound, target, &ending.private, IntentAction::Delete, call).await?;
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
            let kept = Object { value, private: answer.private, create_before_destroy, ..object };
            self.fate(schema, address, &kept)?
        };
        self.settle(made.intent, &bound, target, fate).await?;
        self.finish(diagnostics)
    }

    async fn change(&self, planned: &Planned) -> Outcome<()> {
        let address = &planned.address;
        let (resource, each) = self.block_of(address)?;
        let bound = self.session.bound(&planned.provider, &self.eval).await?;
        let schema = bound.resource(address)?;
        if planned.action == Action::CreateBeforeDestroy {
            self.depose(address);
        }
        let outcome = self.change_object(planned, resource, &each, &bound, schema).await;
        if outcome.is_err() {
            self.restore(address);
        }
        outcome?;
        let value = self.eval.values().object(address);
        match value {
            Some(value) => self.eval.conditions(resource, address, &each, Some(&value)),
            None => Ok(()),
        }
    }

    async fn change_object(
        &self,
        planned: &Planned,
        resource: &ResourceConfig,
        each: &Each,
        bound: &Bound,
        schema: &Schema,
    ) -> Outcome<()> {
        let address = &planned.address;
        let prior = match self.stored(address, None) {
            Some(instance) => Some(bound.read_state(address, &instance).await?),
            None => None,
        };
        self.eval.conditions(resource, address, each, None)?;
        let config = self.eval.body(resource, address, each, &schema.block)?;
        let wishes = Wishes {
            force: None,
            ignore: &self.config().block(resource).lifecycle.ignore_changes,
            create_before_destroy: resource.create_before_destroy,
        };
        let actual = bound.plan(address, prior.as_ref(), &config, &wishes, Some(planned)).await?;
        self.check_actual(bound, schema, planned, &actual)?;
        if actual.action == Action::NoOp {
            return Ok(());
        }
        let dependencies: Vec<String> = resource.dependencies.iter().cloned().collect();
        let create_before_destroy = resource.create_before_destroy;
        let before = if actual.action == Action::Update { actual.before.clone() } else { null_like(schema) };
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
        };
        let action = if actual.action == Action::Update { IntentAction::Update } else { IntentAction::Create };
        let target = Target { address, deposed: None };
        let made = self.make(bound, target, &actual.private, action, call).await?;
        let (object, diagnostics) = changed(bound, schema, &actual, prior.as_ref(), made.answer, made.diagnostics);
        let fate = match object {
            Some(object) => self.fate(schema, address, &Object { dependencies, create_before_destroy, ..object })?,
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
    fn restore(&self, address: &Address) {
        let mut world = self.world();
        let Some(key) = world.deposed.get(address).cloned() else { return };
        if world.state.current(address).is_some() {
            return;
        }
        let Some((provider, instance)) = world.state.object(address, Some(&key)) else { return };
        let (provider, mut instance) = (provider.to_owned(), instance.clone());
        world.state.remove(address, Some(&key));
        instance.deposed = None;
        world.state.put(address, &provider, instance);
        world.deposed.remove(address);
    }

    /// The plan that comes out with all values known must keep what the approved plan promised.
    fn check_actual(&self, bound: &Bound, schema: &Schema, planned: &Planned, actual: &Planned) -> Outcome<()> {
        let summary = "Provider produced inconsistent final plan";
        let mut found = Vec::new();
        let settled = planned.action == Action::Update && actual.action == Action::NoOp;
        if planned.action != actual.action && !settled {
            let what = format!("changed the planned action from {:?} to {:?}", planned.action, actual.action);
            found.push(bound.broken(&planned.address, summary, &what));
        }
        for problem in incompatibilities(&schema.block, &planned.after, &actual.after) {
            let what = format!("produced an invalid new value during apply ({problem})");
            found.push(bound.broken(&planned.address, summary, &what));
        }
        if found.is_empty() { Ok(()) } else { Err(found) }
    }

    /// Journals the intent, then makes the call. Without an answer, or without the journal, everything stops.
    async fn make(
        &self,
        bound: &Bound,
        target: Target<'_>,
        private: &[u8],
        action: IntentAction,
        call: ApplyResourceChange,
    ) -> Outcome<Made> {
        let address = target.address;
        let intent = Intent {
            address: address.to_string(),
            deposed: target.deposed.map(str::to_owned),
            action,
            type_name: address.type_name.clone(),
            provider: bound.address.clone(),
            planned: encode::known_json(&call.planned),
            private: private.to_vec(),
        };
        let ids = self.journal.intend(vec![intent]).await.map_err(|refused| self.refused(refused))?;
        let intent = ids[0];
        match bound.provider.apply_resource_change(call).await {
            Ok(mut answer) => {
                let diagnostics = std::mem::take(&mut answer.diagnostics);
                let diagnostics = diagnostics.into_iter().map(|diagnostic| translate(address, diagnostic)).collect();
                Ok(Made { intent, answer, diagnostics })
            }
            Err(error @ CallError::Unsupported { .. }) => {
                self.settle(intent, bound, target, Fate::Untouched).await?;
                Err(vec![at(address, Diagnostic::error("Provider cannot apply", error.to_string()))])
            }
            Err(error) => {
                let detail = format!("{address}: {error}");
                self.world().halt.get_or_insert(Halt::Lost(detail));
                Err(Vec::new())
            }
        }
    }

    async fn settle(&self, intent: IntentId, bound: &Bound, target: Target<'_>, fate: Fate<'_>) -> Outcome<()> {
        let Target { address, deposed } = target;
        let settlement = match fate {
            Fate::Untouched => Settlement::Untouched,
            Fate::Gone => {
                self.world().state.remove(address, deposed);
                Settlement::Gone
            }
            Fate::Object(schema, mut instance) => {
                instance.deposed = deposed.map(str::to_owned);
                // The journal alone must be able to tell that the old object is still there.
                let aside = match deposed {
                    None => {
                        let world = self.world();
                        let key = world.deposed.get(address);
                        key.and_then(|key| world.state.object(address, Some(key))).map(|(_, aside)| aside.clone())
                    }
                    Some(_) => None,
                };
                let instances: Vec<&Instance> = std::iter::once(&*instance).chain(aside.as_ref()).collect();
                let entry = encode::entry(address, &bound.address, &instances);
                match deposed {
                    None => self.put(address, bound, schema, *instance),
                    Some(_) => self.world().state.put(address, &bound.address, *instance),
                }
                Settlement::Object(entry)
            }
        };
        self.journal.settle(intent, settlement).await.map_err(|refused| self.refused(refused))
    }

    fn refused(&self, refused: Refused) -> Vec<Diagnostic> {
        self.world().halt.get_or_insert(Halt::Refused(refused));
        Vec::new()
    }

    fn fate<'s>(&self, schema: &'s Schema, address: &Address, object: &Object) -> Outcome<Fate<'s>> {
        Ok(Fate::Object(schema, Box::new(self.instance(schema, address, object)?)))
    }

    fn instance(&self, schema: &Schema, address: &Address, object: &Object) -> Outcome<Instance> {
        encode::instance(schema, address, object)
            .map_err(|detail| vec![at(address, Diagnostic::error("Failed to encode object in state", detail))])
    }

    fn put(&self, address: &Address, bound: &Bound, schema: &Schema, instance: Instance) {
        if let Ok(value) = encode::stored_value(&instance, &schema.block) {
            self.eval.values_mut().set(address, value);
        }
        self.world().state.put(address, &bound.address, instance);
    }

    /// Errors fail the step; warnings are passed on all the same.
    fn finish(&self, diagnostics: Vec<Diagnostic>) -> Outcome<()> {
        if diagnostics.iter().any(Diagnostic::is_error) {
            return Err(diagnostics);
        }
        self.world().diagnostics.extend(diagnostics);
        Ok(())
    }

    fn stored(&self, address: &Address, deposed: Option<&str>) -> Option<Instance> {
        self.world().state.object(address, deposed).map(|(_, instance)| instance.clone())
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

/// The object that a call is about.
#[derive(Clone, Copy)]
struct Target<'a> {
    address: &'a Address,
    deposed: Option<&'a str>,
}

/// When everything is gone, what was read about it is of no use.
fn forget_data(state: &mut State) {
    let data: Vec<Address> = state.objects().map(|object| object.address).filter(|address| address.data).collect();
    data.iter().for_each(|address| state.remove(address, None));
}

fn unknown_config(address: &Address) -> Diagnostic {
    let detail = format!("The configuration of {address} still has unknown values during apply.");
    at(address, Diagnostic::error("Configuration contains unknown value", detail))
}

/// What became of an object.
enum Fate<'a> {
    Object(&'a Schema, Box<Instance>),
    Gone,
    Untouched,
}

struct Made {
    intent: IntentId,
    answer: ApplyAnswer,
    diagnostics: Vec<Diagnostic>,
}

fn null_like(schema: &Schema) -> Value {
    Value::null(schema.block.implied_type())
}
