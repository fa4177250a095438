//! Making a plan: every object is read, and compared with what the configuration wants.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::future::join_all;
use landform_cty::{Type, Value};
use tokio::sync::Semaphore;

use super::config::{Config, ResourceConfig, Values, failure};
use super::content::PlannedOutput;
use super::object::{Object, Outcome, Planned, Reason, at, bare};
use super::session::Session;
use super::walk::Steps;
use super::{PARALLELISM, encode};
use crate::state::{Instance, State};
use crate::{Action, Address, Diagnostic, EngineError, Key, Mode, Progress, ProgressEvent, Stage, Stop};

pub struct Planner<'a> {
    pub config: &'a Config,
    pub session: &'a Session<'a>,
    pub base: &'a State,
    pub refresh: bool,
    pub mode: Mode,
    /// Objects to take over, by address.
    pub adopt: BTreeMap<Address, String>,
    pub replace: BTreeSet<Address>,
    pub progress: &'a dyn Progress,
    pub stop: &'a Stop,
    pub permits: Semaphore,
    world: Mutex<World>,
}

/// What comes out of the walk.
pub struct World {
    /// The state after the refresh.
    pub refreshed: State,
    pub changes: Vec<Planned>,
    pub drift: Vec<Planned>,
    values: Values,
    diagnostics: Vec<Diagnostic>,
}

/// One thing to look at: a resource of the configuration, or an object that the configuration does not have.
enum Step<'a> {
    Resource(&'a ResourceConfig),
    Orphan(Address),
}

impl<'a> Planner<'a> {
    pub fn new(
        config: &'a Config,
        session: &'a Session<'a>,
        base: &'a State,
        (progress, stop): (&'a dyn Progress, &'a Stop),
    ) -> Planner<'a> {
        let world = World {
            refreshed: base.clone(),
            changes: Vec::new(),
            drift: Vec::new(),
            values: Values::default(),
            diagnostics: Vec::new(),
        };
        Planner {
            config,
            session,
            base,
            refresh: true,
            mode: Mode::Normal,
            adopt: BTreeMap::new(),
            replace: BTreeSet::new(),
            progress,
            stop,
            permits: Semaphore::new(PARALLELISM),
            world: Mutex::new(world),
        }
    }

    pub async fn run(self) -> Result<(World, BTreeMap<String, PlannedOutput>), EngineError> {
        self.validate().await?;
        let anything = self.base.objects().next().is_some();
        if self.mode != Mode::Destroy || (self.refresh && anything) {
            self.walk().await?;
        }
        let outputs = match self.mode {
            Mode::Destroy => {
                self.walk_destroy().await?;
                self.config.removed_outputs(self.base).map_err(failure)?
            }
            Mode::Normal | Mode::RefreshOnly => {
                let outputs = self.config.planned_outputs(self.base, &self.values());
                outputs.map_err(failure)?
            }
        };
        let mut world = self.world.into_inner().unwrap_or_else(PoisonError::into_inner);
        if self.mode != Mode::Destroy {
            known_outputs(&mut world.refreshed, &outputs)?;
        }
        world.changes.sort_by(|a, b| a.address.cmp(&b.address));
        world.drift.sort_by(|a, b| a.address.cmp(&b.address));
        Ok((world, outputs))
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn values(&self) -> Values {
        self.world().values.clone()
    }

    /// The first pass: whether the configuration is sound whatever the inputs are. OpenTofu makes it before every plan,
    /// and providers find mistakes in it that a plan of today's inputs would not show.
    async fn validate(&self) -> Result<(), EngineError> {
        let mut found = Vec::new();
        for address in self.config.configured_providers() {
            let outcome = async {
                let started = self.session.started(&address, self.config).await?;
                let value = self.config.provider_config(&address, &started.schema.provider.block, None)?;
                self.session.validate(&address, self.config, bare(&value)).await
            };
            found.extend(outcome.await.err().into_iter().flatten());
        }
        let validate = |resource: &'a ResourceConfig| async move {
            let address = Address::managed(&resource.type_name, &resource.name, None);
            let bound = self.session.blank(&resource.provider, self.config).await?;
            let block = &bound.resource(&address)?.block;
            let value = self.config.body_unknown(resource, block)?;
            bound.validate(&address, &value).await
        };
        for outcome in join_all(self.config.resources().map(validate)).await {
            found.extend(outcome.err().into_iter().flatten());
        }
        fail(found)
    }

    async fn walk(&self) -> Result<(), EngineError> {
        let mut steps = Steps::new();
        let nodes: BTreeMap<&str, _> = self
            .config
            .resources()
            .map(|resource| (resource.address.as_str(), steps.add(Step::Resource(resource))))
            .collect();
        for resource in self.config.resources() {
            for dependency in &resource.dependencies {
                if let Some(earlier) = nodes.get(dependency.as_str()) {
                    steps.order(*earlier, nodes[resource.address.as_str()]);
                }
            }
        }
        for object in self.base.objects() {
            if !nodes.contains_key(object.address.resource().as_str()) {
                steps.add(Step::Orphan(object.address));
            }
        }
        steps.walk(|| self.stop.is_cancelled(), |step| self.step(step)).await;
        self.end_of_walk()
    }

    async fn step(&self, step: &Step<'_>) -> bool {
        let outcome = match step {
            Step::Resource(resource) => self.resource(resource).await,
            Step::Orphan(address) => self.orphan(address, Reason::DeleteBecauseNoResourceConfig).await,
        };
        match outcome {
            Ok(()) => true,
            Err(found) => {
                self.world().diagnostics.extend(found);
                false
            }
        }
    }

    fn end_of_walk(&self) -> Result<(), EngineError> {
        let found = std::mem::take(&mut self.world().diagnostics);
        if self.stop.is_cancelled() && found.is_empty() {
            return Err(EngineError::Stopped);
        }
        fail(found)
    }

    async fn resource(&self, resource: &ResourceConfig) -> Outcome<()> {
        let count = self.config.count(resource, &self.values())?;
        self.world().values.expand(&resource.address, count);
        let keys: Vec<Option<Key>> = match count {
            Some(count) => (0..count).map(|index| Some(Key::Index(index))).collect(),
            None => vec![None],
        };
        let address = |key: &Option<Key>| Address::managed(&resource.type_name, &resource.name, key.clone());
        let wanted: Vec<Address> = keys.iter().map(address).collect();
        let orphans: Vec<Address> = self
            .base
            .objects()
            .map(|object| object.address)
            .filter(|address| address.resource() == resource.address && !wanted.contains(address))
            .collect();
        let reason = |address: &Address| match (&address.key, count) {
            (Some(Key::Index(_)), Some(_)) => Reason::DeleteBecauseCountIndex,
            _ => Reason::DeleteBecauseWrongRepetition,
        };
        let instances = join_all(wanted.iter().map(|address| self.instance(resource, address)));
        let removed = join_all(orphans.iter().map(|address| self.orphan(address, reason(address))));
        let (instances, removed) = tokio::join!(instances, removed);
        let found: Vec<Diagnostic> = instances.into_iter().chain(removed).filter_map(Result::err).flatten().collect();
        if found.is_empty() { Ok(()) } else { Err(found) }
    }

    /// An object that the configuration wants.
    async fn instance(&self, resource: &ResourceConfig, address: &Address) -> Outcome<()> {
        let _permit = self.permits.acquire().await;
        let bound = self.session.bound(&resource.provider, self.config, &self.values()).await?;
        let schema = bound.resource(address)?;
        let stored = self.base.current(address).map(|(_, instance)| instance);
        let importing = self.adopt.get(address).filter(|_| stored.is_none());
        let mut object = match (importing, stored) {
            (Some(id), _) => Some(bound.import(address, id).await?),
            (None, Some(instance)) => Some(bound.read_state(address, instance).await?),
            (None, None) => None,
        };
        if let Some(before) = object.clone().filter(|_| self.refresh && importing.is_none()) {
            object = bound.refresh(address, before.clone()).await?;
            self.note_drift(address, &resource.provider, &before, object.as_ref());
            if let Some(object) = &mut object {
                object.dependencies.extend(resource.dependencies.iter().cloned());
            }
        }
        self.remember(schema, address, &resource.provider, object.as_ref())?;
        if self.mode == Mode::RefreshOnly {
            let value = object.map_or_else(|| Value::null(schema.block.implied_type()), |object| object.value);
            self.world().values.set(address, value);
            return Ok(());
        }
        let config = self.config.body(address, &schema.block, &self.values())?;
        let force = self.replace.contains(address);
        let mut planned = bound.plan(address, object.as_ref(), &config, force, None).await?;
        planned.importing = importing.cloned();
        if let (Action::NoOp, Some(object)) = (planned.action, &mut object) {
            // Nothing will be applied, so what it stands on is brought up to date here.
            object.dependencies = resource.dependencies.iter().cloned().collect();
            self.remember(schema, address, &resource.provider, Some(object))?;
        }
        self.note(planned);
        Ok(())
    }

    /// An object that the configuration does not want (any longer).
    async fn orphan(&self, address: &Address, reason: Reason) -> Outcome<()> {
        let _permit = self.permits.acquire().await;
        let Some((provider, instance)) = self.base.current(address) else { return Ok(()) };
        let bound = self.session.bound(provider, self.config, &self.values()).await?;
        let schema = bound.resource(address)?;
        let mut object = Some(bound.read_state(address, instance).await?);
        if let Some(before) = object.clone().filter(|_| self.refresh) {
            object = bound.refresh(address, before.clone()).await?;
            self.note_drift(address, provider, &before, object.as_ref());
        }
        self.remember(schema, address, provider, object.as_ref())?;
        if let Some(object) = object.filter(|_| self.mode != Mode::RefreshOnly) {
            self.note(bound.plan_destroy(address, &object, Some(reason)).await?);
        }
        Ok(())
    }

    /// The second pass of a destroy plan: everything that the refreshed state has is to go.
    async fn walk_destroy(&self) -> Result<(), EngineError> {
        let refreshed = {
            let mut world = self.world();
            world.changes.clear();
            world.refreshed.clone()
        };
        let destroy = |(address, provider, instance): (Address, String, Instance)| async move {
            let _permit = self.permits.acquire().await;
            if self.stop.is_cancelled() {
                return Ok(());
            }
            let bound = self.session.bound(&provider, self.config, &self.values()).await?;
            let object = bound.read_state(&address, &instance).await?;
            self.note(bound.plan_destroy(&address, &object, None).await?);
            Ok::<(), Vec<Diagnostic>>(())
        };
        let objects = refreshed.resources().iter().flat_map(|resource| {
            let object = |instance: &Instance| {
                (resource.address(instance.index_key.clone()), resource.provider.clone(), instance.clone())
            };
            resource.instances.iter().map(object)
        });
        let outcomes = join_all(objects.map(destroy)).await;
        self.world().diagnostics.extend(outcomes.into_iter().filter_map(Result::err).flatten());
        self.end_of_walk()
    }

    fn note(&self, planned: Planned) {
        let (address, action) = (planned.address.to_string(), planned.action);
        if action != Action::NoOp {
            self.progress.report(ProgressEvent::Object { address, action, stage: Stage::Planned, millis: None });
        }
        let mut world = self.world();
        if !planned.after.is_null() {
            world.values.set(&planned.address, planned.after.clone());
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
            replace_paths: Vec::new(),
            importing: None,
        });
    }

    /// Writes what is known of an object into the refreshed state.
    fn remember(
        &self,
        schema: &landform_protocol::Schema,
        address: &Address,
        provider: &str,
        object: Option<&Object>,
    ) -> Outcome<()> {
        let Some(object) = object else {
            self.world().refreshed.remove(address, None);
            return Ok(());
        };
        let instance = encode::instance(schema, address, object)
            .map_err(|detail| vec![at(address, Diagnostic::error("Failed to encode object in state", detail))])?;
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
    let mut unique: Vec<Diagnostic> = Vec::new();
    for diagnostic in found {
        if !unique.contains(&diagnostic) {
            unique.push(diagnostic);
        }
    }
    if unique.is_empty() { Ok(()) } else { Err(failure(unique)) }
}
