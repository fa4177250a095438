//! Making a plan: every object is read, and compared with what the configuration wants.

mod data;
mod doubts;
mod imports;
mod moves;
mod objects;
mod orphans;
mod triggers;
mod validate;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use landform_cty::{Type, Value};
use tokio::sync::Semaphore;

pub use imports::not_configured;
use moves::check_moves;
pub use moves::moved_state;
pub use validate::validate;
use validate::{missing_instance, missing_provider, without_repetition};

use super::config::{Config, Node, config_address, failure};
use super::content::PlannedOutput;
use super::encode;
use super::eval::{Checks, Eval, Values};
use super::object::{Bound, ImportTarget, Object, Outcome, Planned, at, bare, known_or_null};
use super::outputs::{planned_outputs, removed_outputs};
use super::session::Session;
use super::walk::Steps;
use crate::state::{State, split_provider};
use crate::{Action, Address, Diagnostic, EngineError, Mode, Progress, ProgressEvent, Stage, Stop};

pub struct Planner<'a> {
    pub eval: Eval<'a>,
    pub session: &'a Session<'a>,
    pub base: &'a State,
    /// Where objects were before they were moved, by where they are now.
    pub moved: BTreeMap<Address, Address>,
    pub refresh: bool,
    pub mode: Mode,
    /// Nothing but what is taken over, and data, is looked at; all else is as the state has it.
    import_only: bool,
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
    /// What went wrong while objects were looked at, if something did: then this is a part of the plan.
    pub problems: Vec<Diagnostic>,
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
            import_only: false,
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
        let (outputs, problems) = match self.look().await {
            // Whoever is told of mistakes is told of what might be one, too.
            Err(EngineError::Diagnostics(found)) => {
                let more = self.eval.take_warnings();
                return Err(EngineError::Diagnostics([found, more, self.session.warnings.take()].concat()));
            }
            outcome => outcome?,
        };
        let checks = match self.mode {
            Mode::Destroy => Eval::unchecked_outputs(self.config()),
            _ => self.eval.checks(),
        };
        let warnings = [self.eval.take_warnings(), self.half_named()].concat();
        let said = match self.mode {
            Mode::Destroy => Vec::new(),
            _ => self.eval.values().module_outputs(),
        };
        let mut world = self.world.into_inner().unwrap_or_else(PoisonError::into_inner);
        let order = |a: &Planned, b: &Planned| (&a.address, &a.deposed).cmp(&(&b.address, &b.deposed));
        world.changes.sort_by(order);
        world.drift.sort_by(order);
        Ok(Made { world, outputs, said, checks, warnings, problems })
    }

    /// The state with one object more. Data sources are read, and outputs are what they are by now.
    pub async fn import(mut self, address: &Address, target: ImportTarget) -> Result<State, EngineError> {
        (self.mode, self.refresh, self.import_only) = (Mode::RefreshOnly, false, true);
        self.eval.lenient = true;
        self.adopt.insert(address.clone(), target);
        self.walk().await?;
        fail(self.not_adopted())?;
        let mut outputs = planned_outputs(&self.eval, self.base).map_err(failure)?;
        let mut state = self.world.into_inner().unwrap_or_else(PoisonError::into_inner).refreshed;
        // There is no plan that could have what is not known.
        outputs.retain(|name, output| match output.removed || output.after.is_wholly_known() {
            true => true,
            false => {
                let stored = encode::present_output(&known_or_null(bare(&output.after)), output.sensitive);
                stored.map(|stored| state.outputs.insert(name.clone(), stored)).is_err()
            }
        });
        known_outputs(&mut state, &outputs)?;
        state.set_check_results(None);
        Ok(state)
    }

    /// Looks at everything, and finds what becomes of the outputs; and what went wrong with objects, after which there is
    /// still a part of the plan to be seen.
    async fn look(&self) -> Result<(BTreeMap<String, PlannedOutput>, Vec<Diagnostic>), EngineError> {
        self.validate().await?;
        if self.mode != Mode::Normal && !self.replace.is_empty() {
            let detail =
                "Forcing resource instance replacement (with -replace=...) is allowed only in normal planning mode.";
            return Err(failure(vec![Diagnostic::error("Unsupported plan mode", detail)]));
        }
        let anything = self.base.objects().next().is_some() || !self.base.outputs.is_empty();
        let looked = self.mode != Mode::Destroy || (self.refresh && anything);
        if looked && self.mode != Mode::RefreshOnly {
            fail(self.config().still_declared())?;
        }
        fail(self.unreachable())?;
        if self.mode == Mode::Normal {
            fail(self.imports_of_nothing())?;
        }
        let said = self.session.warnings.take();
        let (mut outputs, mut problems) = (BTreeMap::new(), Vec::new());
        if looked {
            let walked = self.walk().await;
            self.check_moves(&self.eval.values())?;
            if self.mode != Mode::Destroy
                && let Err(EngineError::Diagnostics(found)) = walked
            {
                // That is not found while objects are looked at, so nothing is shown of what was found before.
                if found.iter().any(|one| one.summary == imports::NOT_CONFIGURED) {
                    return Err(EngineError::Diagnostics(found));
                }
                self.session.warnings.add_each(said);
                return Ok((self.sound_outputs(), found));
            }
            walked?;
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
                self.eval.take_warnings();
                let walked = self.walk_destroy().await;
                if !looked {
                    self.check_moves(&Values::new())?;
                }
                match walked {
                    Err(EngineError::Diagnostics(found)) => problems = found,
                    walked => walked?,
                }
                removed_outputs(&self.world().refreshed).map_err(failure)?
            }
            Mode::Normal | Mode::RefreshOnly => outputs,
        };
        self.session.warnings.add_each(said);
        Ok((outputs, problems))
    }

    /// The outputs that nothing went wrong with.
    fn sound_outputs(&self) -> BTreeMap<String, PlannedOutput> {
        let mut outputs = planned_outputs(&self.eval, self.base).unwrap_or_default();
        outputs.retain(|name, output| output.removed || self.eval.root_output(name).is_some());
        outputs
    }

    /// What moves to a wrong place makes other mistakes: nothing else is told of.
    fn check_moves(&self, values: &Values) -> Result<(), EngineError> {
        check_moves(self.config(), values).inspect_err(|_| {
            self.eval.take_warnings();
            self.session.warnings.take();
        })
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
            missing.then(|| at(&known.address, missing_provider(&format!("{} (orphan)", known.address), provider)))
        };
        gone.filter_map(problem).collect()
    }

    /// The provider that an object belongs to, ready to work.
    async fn bound(&self, address: &Address, provider: &str) -> Outcome<Bound> {
        if self.eval.provider_each(provider)?.is_none() {
            // Those that there are get ready all the same.
            for instance in self.config().provider_instances(split_provider(provider).0)? {
                self.session.bound(&instance, &self.eval).await?;
            }
            return Err(vec![missing_instance(address, provider)]);
        }
        self.session.bound(provider, &self.eval).await
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
            if self.config().resource(&known.address).is_none() && !self.import_only {
                let step = steps.add(Step::Orphan(known.clone()));
                let object = self.base.object(&known.address, known.deposed.as_deref());
                let block = object.map(|(address, _)| split_provider(address).0.to_owned());
                let provider = block.and_then(|address| graph.place(&Node::Provider(address)));
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
                for instance in self.config().provider_instances(address)? {
                    self.session.bound(&instance, &self.eval).await?;
                }
                Ok(())
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
        self.adopt.keys().filter(nowhere).map(|address| not_configured(&address.to_string())).collect()
    }

    fn note(&self, planned: Planned) {
        let (address, action) = (planned.address.to_string(), planned.action);
        if action != Action::NoOp {
            self.progress.report(ProgressEvent::Object { address, action, stage: Stage::Planned, millis: None });
        }
        if !planned.after.is_null() {
            self.eval.set_object(&planned.address, planned.after.clone());
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
        let same = before.value == *now;
        // Where nothing is planned, a move is told of as if it had come from outside.
        if same && !(self.mode == Mode::RefreshOnly && self.moved.contains_key(address)) {
            return;
        }
        let action = match after {
            _ if same => Action::NoOp,
            Some(_) => Action::Update,
            None => Action::Delete,
        };
        self.world().drift.push(Planned {
            identity_before: before.identity.clone(),
            identity_after: after.and_then(|object| object.identity.clone()),
            previous: self.moved.get(address).cloned(),
            ..Planned::plain(address, provider, action, (before.value.clone(), now.clone()))
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
