//! Making a plan: every object is read, and compared with what the configuration wants.

mod data;
mod doubts;
mod imports;
mod moves;
mod objects;
mod orphans;
mod triggers;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::future::join_all;
use landform_cty::{Type, Value};
use landform_lang::Repetition;
use landform_protocol::Block;
use tokio::sync::Semaphore;

pub use moves::moved_state;

use super::change::{mark_existing, schema_marks};
use super::config::{Config, Node, ResourceConfig, config_address, failure};
use super::content::PlannedOutput;
use super::encode;
use super::eval::{Checks, Eval, Keys};
use super::object::{ImportTarget, Object, Outcome, Planned, at, bare};
use super::outputs::{planned_outputs, removed_outputs};
use super::session::Session;
use super::walk::Steps;
use crate::state::State;
use crate::{Action, Address, Diagnostic, EngineError, Mode, Progress, ProgressEvent, Stage, Stop};

pub struct Planner<'a> {
    pub eval: Eval<'a>,
    pub session: &'a Session<'a>,
    pub base: &'a State,
    /// Where objects were before they were moved, by where they are now.
    pub moved: BTreeMap<Address, Address>,
    pub refresh: bool,
    pub mode: Mode,
    /// Objects to take over, by address.
    pub adopt: BTreeMap<Address, ImportTarget>,
    pub replace: BTreeSet<Address>,
    /// What objects may be like after updates that were interrupted.
    pub doubted: BTreeMap<Address, Vec<serde_json::Value>>,
    pub progress: &'a dyn Progress,
    pub stop: &'a Stop,
    pub permits: Semaphore,
    parallelism: usize,
    /// The objects of the state by the block that they belong to.
    known: HashMap<String, Vec<Known>>,
    world: Mutex<World>,
}

/// An object that the state has.
#[derive(Clone)]
struct Known {
    address: Address,
    deposed: Option<String>,
}

/// What comes out of the walk.
pub struct World {
    /// The state after the refresh.
    pub refreshed: State,
    pub changes: Vec<Planned>,
    pub drift: Vec<Planned>,
    /// The current objects among the changes, by address.
    by_address: HashMap<Address, usize>,
    diagnostics: Vec<Diagnostic>,
}

/// What a plan consists of.
pub struct Made {
    pub world: World,
    pub outputs: BTreeMap<String, PlannedOutput>,
    /// The outputs of modules that have a value, by instance.
    pub said: Vec<(String, String)>,
    pub checks: Checks,
    pub warnings: Vec<Diagnostic>,
}

/// One thing to look at: a part of the configuration, or an object that the configuration does not have.
enum Step<'a> {
    Node(&'a Node),
    Orphan(Known),
}

impl<'a> Planner<'a> {
    pub fn new(
        config: &'a Config,
        session: &'a Session<'a>,
        base: &'a State,
        (progress, stop): (&'a dyn Progress, &'a Stop),
        parallelism: usize,
        time: &str,
    ) -> Planner<'a> {
        let mut known: HashMap<String, Vec<Known>> = HashMap::new();
        for object in base.objects() {
            let place = known.entry(config_address(&object.address)).or_default();
            place.push(Known { address: object.address, deposed: object.deposed });
        }
        let world = World {
            refreshed: base.clone(),
            changes: Vec::new(),
            drift: Vec::new(),
            by_address: HashMap::new(),
            diagnostics: Vec::new(),
        };
        Planner {
            eval: Eval::planning(config, time),
            session,
            base,
            moved: BTreeMap::new(),
            refresh: true,
            mode: Mode::Normal,
            adopt: BTreeMap::new(),
            replace: BTreeSet::new(),
            doubted: BTreeMap::new(),
            progress,
            stop,
            permits: Semaphore::new(parallelism),
            parallelism,
            known,
            world: Mutex::new(world),
        }
    }

    fn config(&self) -> &'a Config {
        self.eval.config
    }

    pub async fn run(self) -> Result<Made, EngineError> {
        self.validate().await?;
        fail(self.unreachable())?;
        if self.mode == Mode::Normal {
            fail(self.imports_of_nothing())?;
        }
        let said = self.session.warnings.take();
        let anything = self.base.objects().next().is_some();
        let looked = self.mode != Mode::Destroy || (self.refresh && anything);
        let mut outputs = BTreeMap::new();
        if looked {
            self.walk().await?;
            if self.mode == Mode::Normal {
                fail(self.not_adopted())?;
            }
            outputs = planned_outputs(&self.eval, self.base).map_err(failure)?;
            known_outputs(&mut self.world().refreshed, &outputs)?;
        } else {
            self.eval.prepare_providers().map_err(failure)?;
            self.eval.prepare_protection().map_err(failure)?;
        }
        let outputs = match self.mode {
            Mode::Destroy => {
                // What was looked at only to be destroyed is warned of no more.
                self.session.warnings.take();
                self.walk_destroy().await?;
                removed_outputs(&self.world().refreshed).map_err(failure)?
            }
            Mode::Normal | Mode::RefreshOnly => outputs,
        };
        self.session.warnings.add(said);
        let checks = match self.mode {
            Mode::Destroy => Eval::unchecked_outputs(self.config()),
            _ => self.eval.checks(),
        };
        let warnings = match self.mode {
            Mode::Destroy => Vec::new(),
            _ => self.eval.take_warnings(),
        };
        let said = match self.mode {
            Mode::Destroy => Vec::new(),
            _ => self.eval.values().module_outputs(),
        };
        let mut world = self.world.into_inner().unwrap_or_else(PoisonError::into_inner);
        let order = |a: &Planned, b: &Planned| (&a.address, &a.deposed).cmp(&(&b.address, &b.deposed));
        world.changes.sort_by(order);
        world.drift.sort_by(order);
        Ok(Made { world, outputs, said, checks, warnings })
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first pass: whether the configuration is sound whatever the inputs are. OpenTofu makes it before every plan,
    /// and providers find mistakes in it that a plan of today's inputs would not show.
    async fn validate(&self) -> Result<(), EngineError> {
        let found = validate(self.config(), self.session).await;
        fail(found)
    }

    /// Objects that only a provider can end whose configuration is gone with theirs.
    fn unreachable(&self) -> Vec<Diagnostic> {
        let gone = self.known.values().flatten().filter(|known| self.config().resource(&known.address).is_none());
        let problem = |known: &Known| {
            let (provider, _) = self.base.object(&known.address, known.deposed.as_deref())?;
            let missing = !self.config().can_configure(provider);
            missing.then(|| at(&known.address, missing_provider(&known.address.to_string(), provider)))
        };
        let mut found: Vec<Diagnostic> = gone.filter_map(problem).collect();
        // And those whose own has never been there.
        let wanted = self.config().resources().iter().filter(|own| !self.config().can_configure(&own.provider));
        found.extend(wanted.map(|own| missing_provider(&own.address, &own.provider)));
        found
    }

    async fn walk(&self) -> Result<(), EngineError> {
        let graph = &self.config().graph;
        let mut steps = Steps::new();
        let places: Vec<_> = graph.nodes().iter().map(|node| steps.add(Step::Node(node))).collect();
        for (later, place) in places.iter().enumerate() {
            for earlier in graph.before(later) {
                steps.order(places[*earlier], *place);
            }
        }
        for known in self.known.values().flatten() {
            if self.config().resource(&known.address).is_none() {
                let step = steps.add(Step::Orphan(known.clone()));
                let object = self.base.object(&known.address, known.deposed.as_deref());
                let provider = object.and_then(|(address, _)| graph.place(&Node::Provider(address.to_owned())));
                if let Some(place) = provider {
                    steps.order(places[place], step);
                }
            }
        }
        steps.walk(|| self.stop.is_cancelled(), |step| self.step(step)).await;
        self.end_of_walk()
    }

    async fn step(&self, step: &Step<'_>) -> bool {
        let outcome = match step {
            Step::Node(node) => match self.config().resource_of(node) {
                Some(resource) => self.resource(resource).await,
                None => self.prepare(node).await,
            },
            Step::Orphan(known) => self.orphan(known).await,
        };
        match outcome {
            Ok(()) => true,
            Err(found) => {
                self.world().diagnostics.extend(found);
                false
            }
        }
    }

    /// What is no resource. A provider that has something to do is configured even if nothing comes of it.
    async fn prepare(&self, node: &Node) -> Outcome<()> {
        self.eval.node(node)?;
        match node {
            Node::Provider(address) if self.config().resources().iter().any(|own| own.provider == *address) => {
                self.session.bound(address, &self.eval).await.map(drop)
            }
            _ => Ok(()),
        }
    }

    fn end_of_walk(&self) -> Result<(), EngineError> {
        let found = std::mem::take(&mut self.world().diagnostics);
        if self.stop.is_cancelled() && found.is_empty() {
            return Err(EngineError::Stopped);
        }
        fail(found)
    }

    /// What somebody wants to be taken over to an address that the configuration does not have.
    fn not_adopted(&self) -> Vec<Diagnostic> {
        let world = self.world();
        let nowhere = |address: &&Address| {
            !world.by_address.contains_key(*address) && world.refreshed.object(address, None).is_none()
        };
        self.adopt.keys().filter(nowhere).map(|address| imports::not_configured(&address.to_string())).collect()
    }

    fn note(&self, planned: Planned) {
        let (address, action) = (planned.address.to_string(), planned.action);
        if action != Action::NoOp {
            self.progress.report(ProgressEvent::Object { address, action, stage: Stage::Planned, millis: None });
        }
        if !planned.after.is_null() {
            self.eval.values_mut().set(&planned.address, planned.after.clone());
        }
        let mut world = self.world();
        if planned.deposed.is_none() {
            let place = world.changes.len();
            world.by_address.insert(planned.address.clone(), place);
        }
        world.changes.push(planned);
    }

    fn note_drift(&self, address: &Address, provider: &str, before: &Object, after: Option<&Object>) {
        let nothing = Value::null(Type::Dynamic);
        let now = after.map_or(&nothing, |object| &object.value);
        if before.value == *now {
            return;
        }
        self.world().drift.push(Planned {
            address: address.clone(),
            provider: provider.to_owned(),
            action: if after.is_some() { Action::Update } else { Action::Delete },
            reason: None,
            before: before.value.clone(),
            after: now.clone(),
            private: Vec::new(),
            identity_before: before.identity.clone(),
            identity_after: after.and_then(|object| object.identity.clone()),
            replace_paths: Vec::new(),
            importing: None,
            deposed: None,
            previous: self.moved.get(address).cloned(),
            assumed: false,
        });
    }

    /// Writes what is known of an object into the refreshed state.
    fn remember(
        &self,
        schema: &landform_protocol::Schema,
        (address, deposed): (&Address, Option<&str>),
        provider: &str,
        object: Option<&Object>,
    ) -> Outcome<()> {
        let Some(object) = object else {
            self.world().refreshed.remove(address, deposed);
            return Ok(());
        };
        let mut instance = encode::instance(schema, address, object)
            .map_err(|detail| vec![at(address, Diagnostic::error("Failed to encode object in state", detail))])?;
        instance.deposed = deposed.map(str::to_owned);
        self.world().refreshed.put(address, provider, instance);
        Ok(())
    }
}

fn missing_provider(address: &str, provider: &str) -> Diagnostic {
    let detail = format!(
        "To work with {address} its original provider configuration at {provider} is required, but it has been removed. \
         This occurs when a provider configuration is removed while objects created by that provider still exist in the \
         state. Re-add the provider configuration to destroy {address}, after which you can remove the provider \
         configuration again."
    );
    Diagnostic::error("Provider configuration not present", detail)
}

/// Asks every provider whether what the configuration says to it can be right, whatever the inputs are.
pub async fn validate(config: &Config, session: &Session<'_>) -> Vec<Diagnostic> {
    let eval = Eval::blind(config);
    let mut found = config.problems();
    let mut failed: HashSet<usize> = HashSet::new();
    for place in config.graph.in_order() {
        // What stands on something that is wrong has nothing to say of its own.
        if config.graph.before(place).iter().any(|earlier| failed.contains(earlier)) {
            failed.insert(place);
            continue;
        }
        let node = &config.graph.nodes()[place];
        let outcome = match config.resource_of(node) {
            Some(resource) => expand_blind(&eval, session, resource).await,
            None => eval.node(node),
        };
        if let Err(problems) = outcome {
            failed.insert(place);
            found.extend(problems);
        }
    }
    for address in config.configured_providers() {
        let outcome = async {
            let started = session.started(&address, config).await?;
            let value = eval.provider(&address, &started.schema.provider.block)?;
            session.validate(&address, config, bare(&value)).await
        };
        found.extend(outcome.await.err().into_iter().flatten());
    }
    let sound = config.resources().iter().filter(|resource| {
        let place = config.graph.place(&Node::Resource(resource.module, resource.local.clone()));
        !place.is_some_and(|place| failed.contains(&place))
    });
    for outcome in join_all(sound.map(|resource| validate_resource(&eval, session, resource))).await {
        found.extend(outcome.err().into_iter().flatten());
    }
    without_repetition(found)
}

/// One mistake may be found by looking at the expression and by evaluating it.
fn without_repetition(found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut unique: Vec<Diagnostic> = Vec::new();
    for diagnostic in found {
        let same = |other: &Diagnostic| {
            other == &diagnostic
                || (other.range.is_some() && (&other.summary, &other.range) == (&diagnostic.summary, &diagnostic.range))
        };
        if !unique.iter().any(same) {
            unique.push(diagnostic);
        }
    }
    unique
}

/// Of an object of which nothing is known yet, its type is known at least.
async fn expand_blind(eval: &Eval<'_>, session: &Session<'_>, resource: &ResourceConfig) -> Outcome<()> {
    let bound = session.blank(&resource.provider, eval.config).await?;
    for instance in eval.instances(resource.module) {
        let address = resource.instance(&instance, None);
        let schema = if resource.data { bound.data_source(&address)? } else { bound.resource(&address)? };
        if let Keys::Once = eval.expand_resource(resource, &instance)? {
            // Of one that may be switched off not even that is known.
            let always = !matches!(eval.config.block(resource).repetition, Repetition::Enabled(_));
            let ty = schema.block.implied_type();
            let value = if always { unknown_object(&schema.block) } else { Value::unknown(ty) };
            eval.values_mut().set(&address, value);
        }
    }
    Ok(())
}

/// What can be said of an object that is not there yet: its type, and what of it is secret.
fn unknown_object(block: &Block) -> Value {
    let nothing = Value::unknown(block.implied_type());
    let Type::Object { attributes, .. } = &nothing.ty else { return nothing };
    let parts = attributes.iter().map(|(name, ty)| (name.clone(), Value::unknown(ty.clone())));
    let value = Value::object(parts);
    match schema_marks(block, &value).as_slice() {
        [] => nothing,
        marks => mark_existing(value, marks),
    }
}

async fn validate_resource(eval: &Eval<'_>, session: &Session<'_>, resource: &ResourceConfig) -> Outcome<()> {
    let address = resource.instance(&eval.config.modules[resource.module].path, None);
    let bound = session.blank(&resource.provider, eval.config).await?;
    let schema = if resource.data { bound.data_source(&address)? } else { bound.resource(&address)? };
    let keys = eval.values().keys(&address.module, &resource.local).cloned().unwrap_or_default();
    let value = eval.body(resource, &address, &keys.each(&None).unwrap_or_default(), &schema.block)?;
    match resource.data {
        true => bound.validate_data(&address, &value).await,
        false => {
            let identities = imports::check_identities(eval, &bound, resource);
            bound.validate(&address, &value).await?;
            identities
        }
    }
}

/// Outputs that are known already are part of the refreshed state, as in OpenTofu.
fn known_outputs(state: &mut State, outputs: &BTreeMap<String, PlannedOutput>) -> Result<(), EngineError> {
    for (name, output) in outputs.iter().filter(|(_, output)| !output.removed && output.after.is_wholly_known()) {
        let stored = encode::output(&output.after, output.sensitive);
        match stored
            .map_err(|detail| EngineError::Diagnostics(vec![Diagnostic::error("Cannot save output", detail)]))?
        {
            Some(stored) => drop(state.outputs.insert(name.clone(), stored)),
            None => drop(state.outputs.remove(name)),
        }
    }
    Ok(())
}

fn fail(found: Vec<Diagnostic>) -> Result<(), EngineError> {
    if found.is_empty() { Ok(()) } else { Err(failure(without_repetition(found))) }
}
