//! Carrying out a plan: object by object along the graph, each change journalled before it is made.

mod change;
mod early;
mod journal;
mod order;
mod result;
mod values;

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{Semaphore, mpsc};

use self::journal::Settling;
use self::order::{Step, idle, steps, unasked};
use super::config::{Config, config_address};
use super::content::Content;
use super::eval::{Checks, Eval};
use super::object::{Outcome, Planned, Told, id_of_target};
use super::session::Session;
use super::walk::End;
use crate::state::{Instance, State};
use crate::{
    Action, Address, Diagnostic, EngineError, Journal, Mode, Progress, ProgressEvent, Refused, Stage, Stop, Work,
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
    settling: mpsc::Sender<Settling<'a>>,
    sent: Option<mpsc::Receiver<Settling<'a>>>,
    /// The changes by the block that they belong to.
    by_block: HashMap<String, Vec<usize>>,
    /// What nothing asks for that is done, by its place in the configuration's graph.
    idle: HashSet<usize>,
    /// The changes whose objects are to be replaced before their predecessors end.
    early: HashSet<Address>,
    world: Mutex<World>,
}

/// What changes while the plan is carried out.
struct World {
    state: State,
    /// Entries of resources that were made before there was an object, each with its place in the configuration's graph.
    expected: Vec<(usize, Address)>,
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
        let (expected, deposed) = (Vec::new(), HashMap::new());
        let world = World { state, expected, deposed, diagnostics: Vec::new(), halt: None };
        let permits = Semaphore::new(parallelism);
        // A change settles one object, or two that take turns.
        let (settling, sent) = mpsc::channel(2 * content.changes.len().max(1));
        let eval = Eval::applying(config, &content.timestamp, content.checks.not_looked_at());
        let world = Mutex::new(world);
        let (sent, idle) = (Some(sent), idle(content, config));
        let early = early::early(content, config).into_iter().map(|at| content.changes[at].address.clone()).collect();
        Apply { content, eval, session, journal, progress, stop, permits, settling, sent, by_block, idle, early, world }
    }

    fn config(&self) -> &'a Config {
        self.eval.config
    }

    pub async fn run(mut self) -> Result<Ended, EngineError> {
        let sent = self.sent.take().expect("an apply runs once");
        let steps = steps(self.content, self.config(), &self.world().state);
        if self.content.mode != Mode::Normal {
            self.prepare().await.map_err(EngineError::Diagnostics)?;
            self.known_outputs();
        }
        for name in self.content.outputs.iter().filter(|(_, output)| output.removed).map(|(name, _)| name) {
            self.world().state.outputs.remove(name);
        }
        for planned in &self.content.changes {
            if let Some(target) = &planned.importing {
                let id = || id_of_target(target);
                Told::begin(self.progress, &planned.address, None, Work::Import, id()).end(Stage::Done, id());
            }
        }
        let halted = || self.stop.is_cancelled() || self.world().halt.is_some();
        let walk = steps.walk(halted, |step| self.step(step));
        let stopper = async {
            self.stop.cancelled().await;
            self.session.stop_calls().await;
            std::future::pending::<()>().await
        };
        let ends = tokio::select! {
            ends = self.settled(walk, sent) => ends,
            () = stopper => unreachable!("it never ends"),
        };
        let stopped = self.stop.is_cancelled() && ends.contains(&End::Skipped);
        let checks = match self.content.mode {
            Mode::Normal => self.eval.checks(),
            Mode::Destroy => Eval::unchecked_outputs(self.config()),
            Mode::RefreshOnly => self.content.checks.clone(),
        };
        let warnings = [self.eval.take_warnings(), self.session.warnings.take()].concat();
        let config = self.config();
        let mut world = self.world.into_inner().unwrap_or_else(PoisonError::into_inner);
        match world.halt {
            Some(Halt::Refused(refused)) => Err(EngineError::Refused(refused)),
            Some(Halt::Lost(detail)) => Err(EngineError::Lost(detail)),
            None => {
                if ends.iter().all(|end| *end == End::Done) {
                    if self.content.mode == Mode::Destroy {
                        forget_data(&mut world.state);
                    }
                    world.state.forget_empty();
                } else {
                    // OpenTofu takes empty entries out last, so where something went wrong they stay; but what nothing asks for
                    // had none.
                    let idle = unasked(self.content, config);
                    let unasked = world.expected.iter().filter(|(place, _)| idle.contains(place));
                    unasked.for_each(|(_, address)| world.state.forget_if_empty(address));
                }
                let mut diagnostics = [world.diagnostics, warnings].concat();
                if ends.contains(&End::Skipped) && !stopped && !diagnostics.iter().any(Diagnostic::is_error) {
                    let detail = "Some changes wait for each other, so none of them was begun.";
                    diagnostics.push(Diagnostic::error("Cycle in the plan", detail));
                }
                let failed = diagnostics.iter().any(Diagnostic::is_error);
                if self.content.mode == Mode::Destroy && !failed && !stopped {
                    diagnostics.extend(left_behind(&self.content.changes));
                }
                Ok(Ended { state: world.state, checks, diagnostics, stopped })
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
            Step::Forget(at) => self.forget(&self.content.changes[*at]).await,
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
            (_, Action::Replace | Action::CreateBeforeDestroy | Action::ForgetThenCreate) => Action::Create,
            (_, action) => action,
        };
        if action == Action::NoOp {
            return self.conditions(planned).await;
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

    fn report(&self, address: &Address, action: Action, stage: Stage, begun: Option<Instant>) {
        let millis = begun.map(|begun| u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX));
        self.progress.report(ProgressEvent::Object { address: address.to_string(), action, stage, millis });
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
}

/// Whoever wanted everything destroyed is to know that something was not.
fn left_behind(changes: &[Planned]) -> Option<Diagnostic> {
    let detail = "As requested, OpenTofu has not deleted some remote objects that are no longer managed by this configuration. \
                  Those objects continue to exist in their remote system and so may continue to incur charges. Refer to the \
                  original plan for more information.\nTo suppress this error for the future 'destroy' runs, you can add the \
                  CLI flag \"-suppress-forget-errors\".";
    let forgotten = changes.iter().any(|planned| planned.action == Action::Forget);
    forgotten.then(|| Diagnostic::error("Destroy was successful but left behind forgotten instances", detail))
}

/// When everything is gone, what was read about it is of no use.
fn forget_data(state: &mut State) {
    let data: Vec<Address> = state.objects().map(|object| object.address).filter(|address| address.data).collect();
    data.iter().for_each(|address| state.remove(address, None));
}
