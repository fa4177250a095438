//! Carrying out a plan: object by object along the graph, each change journalled before it is made.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use landform_cty::Value;
use landform_protocol::{ApplyAnswer, ApplyResourceChange, CallError, Schema};
use tokio::sync::Semaphore;

use super::change::{incompatibilities, sensitivity_differs};
use super::config::{Config, Values};
use super::content::Content;
use super::object::{Bound, Object, Outcome, Planned, at, bare, translate};
use super::order::{Step, steps};
use super::result::changed;
use super::session::Session;
use super::walk::End;
use super::{PARALLELISM, encode};
use crate::state::{Instance, State, StateOutput};
use crate::{
    Action, Address, Diagnostic, EngineError, Intent, IntentAction, IntentId, Journal, Progress, ProgressEvent,
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
    pub config: &'a Config,
    pub content: &'a Content,
    pub session: &'a Session<'a>,
    pub journal: &'a dyn Journal,
    pub progress: &'a dyn Progress,
    pub stop: &'a Stop,
    pub permits: Semaphore,
    pub world: Mutex<World>,
}

/// What changes while the plan is carried out.
pub struct World {
    pub state: State,
    pub values: Values,
    pub diagnostics: Vec<Diagnostic>,
    halt: Option<Halt>,
}

impl World {
    pub fn new(state: State, values: Values) -> World {
        World { state, values, diagnostics: Vec::new(), halt: None }
    }
}

/// Where the walk ended.
pub struct Ended {
    pub state: State,
    pub diagnostics: Vec<Diagnostic>,
    pub stopped: bool,
}

impl<'a> Apply<'a> {
    pub fn new(
        config: &'a Config,
        content: &'a Content,
        session: &'a Session<'a>,
        ports: (&'a dyn Journal, &'a dyn Progress, &'a Stop),
        world: World,
    ) -> Apply<'a> {
        let (journal, progress, stop) = ports;
        let permits = Semaphore::new(PARALLELISM);
        Apply { config, content, session, journal, progress, stop, permits, world: Mutex::new(world) }
    }

    pub async fn run(self) -> Result<Ended, EngineError> {
        let steps = steps(self.content, self.config, &self.world().state);
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
        let world = self.world.into_inner().unwrap_or_else(PoisonError::into_inner);
        match world.halt {
            Some(Halt::Refused(refused)) => Err(EngineError::Refused(refused)),
            Some(Halt::Lost(detail)) => Err(EngineError::Lost(detail)),
            None => Ok(Ended { state: world.state, diagnostics: world.diagnostics, stopped }),
        }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn step(&self, step: &Step) -> bool {
        let outcome = match step {
            Step::Output(name) => self.output(name),
            Step::Destroy(at) | Step::Change(at) => {
                let planned = &self.content.changes[*at];
                let permit = self.permits.acquire().await;
                if permit.is_err() || self.stop.is_cancelled() || self.world().halt.is_some() {
                    return false;
                }
                // People see the two halves of a replacement as what they are.
                let action = match (step, planned.action) {
                    (Step::Destroy(_), _) => Action::Delete,
                    (_, Action::Replace) => Action::Create,
                    (_, action) => action,
                };
                let begun = Instant::now();
                self.report(&planned.address, action, Stage::Started, None);
                let outcome = match step {
                    Step::Destroy(_) => self.destroy(planned).await,
                    _ => self.change(planned).await,
                };
                let stage = if outcome.is_ok() { Stage::Done } else { Stage::Failed };
                self.report(&planned.address, action, stage, Some(begun));
                outcome
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

    fn report(&self, address: &Address, action: Action, stage: Stage, begun: Option<Instant>) {
        let millis = begun.map(|begun| u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX));
        self.progress.report(ProgressEvent::Object { address: address.to_string(), action, stage, millis });
    }

    async fn destroy(&self, planned: &Planned) -> Outcome<()> {
        let address = &planned.address;
        let bound = self.session.bound(&planned.provider, self.config, &self.values()).await?;
        let Some(instance) = self.stored(address) else { return Ok(()) };
        let object = bound.read_state(address, &instance).await?;
        let schema = bound.resource(address)?;
        let nothing = Value::null(schema.block.implied_type());
        let call = ApplyResourceChange {
            type_name: address.type_name.clone(),
            prior: bare(&planned.before),
            planned: nothing.clone(),
            config: nothing,
            planned_private: planned.private.clone(),
        };
        let made = self.make(&bound, planned, IntentAction::Delete, call).await?;
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
            let kept = Object { value, private: answer.private, ..object };
            self.fate(schema, address, &kept)?
        };
        self.settle(made.intent, &bound, address, fate).await?;
        self.finish(diagnostics)
    }

    async fn change(&self, planned: &Planned) -> Outcome<()> {
        let address = &planned.address;
        let bound = self.session.bound(&planned.provider, self.config, &self.values()).await?;
        let schema = bound.resource(address)?;
        let prior = match self.stored(address) {
            Some(instance) => Some(bound.read_state(address, &instance).await?),
            None => None,
        };
        let config = self.config.body(address, &schema.block, &self.values())?;
        let actual = bound.plan(address, prior.as_ref(), &config, false, Some(planned)).await?;
        self.check_actual(&bound, schema, planned, &actual)?;
        if actual.action == Action::NoOp {
            return Ok(());
        }
        let dependencies: Vec<String> = self.config.dependencies(&address.resource()).into_iter().collect();
        let before = if actual.action == Action::Update { actual.before.clone() } else { null_like(schema) };
        let only_sensitivity = actual.action == Action::Update
            && bare(&before).equals(&bare(&actual.after)).as_bool() == Some(true)
            && sensitivity_differs(&before, &actual.after);
        if let Some(prior) = prior.as_ref().filter(|_| only_sensitivity) {
            // Nothing changes for the provider, so it is not asked.
            let object = Object { value: actual.after.clone(), dependencies, ..prior.clone() };
            let instance = self.instance(schema, address, &object)?;
            self.put(address, &bound, schema, instance);
            return Ok(());
        }
        let bare_config = bare(&config);
        if !bare_config.is_wholly_known() {
            let detail = format!("The configuration of {address} still has unknown values during apply.");
            return Err(vec![at(address, Diagnostic::error("Configuration contains unknown value", detail))]);
        }
        let call = ApplyResourceChange {
            type_name: address.type_name.clone(),
            prior: bare(&before),
            planned: bare(&actual.after),
            config: bare_config,
            planned_private: actual.private.clone(),
        };
        let action = if actual.action == Action::Update { IntentAction::Update } else { IntentAction::Create };
        let made = self.make(&bound, &actual, action, call).await?;
        let (object, diagnostics) = changed(&bound, schema, &actual, prior.as_ref(), made.answer, made.diagnostics);
        let fate = match object {
            Some(object) => self.fate(schema, address, &Object { dependencies, ..object })?,
            None => Fate::Untouched,
        };
        self.settle(made.intent, &bound, address, fate).await?;
        self.finish(diagnostics)
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
        planned: &Planned,
        action: IntentAction,
        call: ApplyResourceChange,
    ) -> Outcome<Made> {
        let address = &planned.address;
        let intent = Intent {
            address: address.to_string(),
            deposed: None,
            action,
            type_name: address.type_name.clone(),
            provider: planned.provider.clone(),
            planned: encode::known_json(&call.planned),
            private: planned.private.clone(),
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
                self.settle(intent, bound, address, Fate::Untouched).await?;
                Err(vec![at(address, Diagnostic::error("Provider cannot apply", error.to_string()))])
            }
            Err(error) => {
                let detail = format!("{address}: {error}");
                self.world().halt.get_or_insert(Halt::Lost(detail));
                Err(Vec::new())
            }
        }
    }

    async fn settle(&self, intent: IntentId, bound: &Bound, address: &Address, fate: Fate<'_>) -> Outcome<()> {
        let settlement = match fate {
            Fate::Untouched => Settlement::Untouched,
            Fate::Gone => {
                self.world().state.remove(address, None);
                Settlement::Gone
            }
            Fate::Object(schema, instance) => {
                let entry = encode::entry(address, &bound.address, &instance);
                self.put(address, bound, schema, *instance);
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
        let mut world = self.world();
        if let Ok(value) = encode::stored_value(&instance, &schema.block) {
            world.values.set(address, value);
        }
        world.state.put(address, &bound.address, instance);
    }

    /// Errors fail the step; warnings are passed on all the same.
    fn finish(&self, diagnostics: Vec<Diagnostic>) -> Outcome<()> {
        if diagnostics.iter().any(Diagnostic::is_error) {
            return Err(diagnostics);
        }
        self.world().diagnostics.extend(diagnostics);
        Ok(())
    }

    fn stored(&self, address: &Address) -> Option<Instance> {
        self.world().state.current(address).map(|(_, instance)| instance.clone())
    }

    fn values(&self) -> Values {
        self.world().values.clone()
    }

    fn output(&self, name: &str) -> Outcome<()> {
        let planned = &self.content.outputs[name];
        if planned.removed {
            self.world().state.outputs.remove(name);
            return Ok(());
        }
        let value = if planned.after.is_wholly_known() {
            planned.after.clone()
        } else {
            self.config.output(name, &self.values())?
        };
        let stored = encode::output(&bare(&value), planned.sensitive)
            .map_err(|detail| vec![Diagnostic::error(format!("Cannot save output {name:?}"), detail)])?;
        let mut world = self.world();
        match stored {
            Some(output) => drop::<Option<StateOutput>>(world.state.outputs.insert(name.to_owned(), output)),
            None => drop(world.state.outputs.remove(name)),
        }
        Ok(())
    }
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
