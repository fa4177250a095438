use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesOrdered;
use landform_cty::{Type, Value};

use super::doubts::assumed_prior;
use super::{Known, Planner, imports};
use crate::native::change::mark_existing;
use crate::native::config::ResourceConfig;
use crate::native::eval::{Each, Keys};
use crate::native::object::{
    Bound, ImportTarget, Object, Outcome, Reason, Told, Wishes, at, id_of, id_of_target, not_there,
};
use crate::state::Instance;
use crate::{Action, Address, Diagnostic, Key, Mode, Stage, Work};

pub(super) const SELF_REFERENTIAL: &str = "Self-referential block";

impl Planner<'_> {
    /// All instances of one block, and what the state has of it besides.
    pub(super) async fn resource(&self, resource: &ResourceConfig) -> Outcome<()> {
        let mut wanted: Vec<(Address, Each)> = Vec::new();
        let mut orphans: Vec<(Known, Reason)> = Vec::new();
        let known = self.known.get(&resource.address).map(Vec::as_slice).unwrap_or_default();
        let imports = self.imports(resource).await?;
        let mut unexpanded = Vec::new();
        for instance in self.eval.homes(resource) {
            let keys = match self.eval.expand_resource(resource, &instance) {
                Ok(keys) => keys,
                // Each instance of the module has a mistake of its own.
                Err(found) => {
                    unexpanded.extend(found);
                    continue;
                }
            };
            for (key, each) in keys.all() {
                wanted.push((resource.instance(&instance, key), each));
            }
            let here = known.iter().filter(|known| known.address.module == instance);
            for known in here.filter(|known| keys.each(&known.address.key).is_none()) {
                orphans.push((known.clone(), unwanted(&known.address, &keys)));
            }
        }
        if !unexpanded.is_empty() {
            return Err(unexpanded);
        }
        let nowhere = |address: &&Address| !wanted.iter().any(|(own, _)| own == *address);
        let lost: Vec<Diagnostic> = match self.mode {
            Mode::Normal => imports.keys().filter(nowhere).map(|to| imports::not_configured(&to.to_string())).collect(),
            _ => Vec::new(),
        };
        for known in known.iter().filter(|known| !self.eval.values().has_instance(&known.address.module)) {
            orphans.push((known.clone(), Reason::DeleteBecauseNoModule));
        }
        let current =
            |known: &&Known| known.deposed.is_some() && !orphans.iter().any(|(orphan, _)| same(orphan, known));
        let deposed: Vec<&Known> = known.iter().filter(current).collect();
        // Growing step by step, the list would leave half its size behind as holes.
        self.world().changes.reserve(wanted.len());
        // Not more of them are begun than may go on: thousands that wait would be most of a large plan's memory.
        let instances = async {
            let (mut begun, mut ended) = (FuturesOrdered::new(), Vec::with_capacity(wanted.len()));
            for (address, each) in &wanted {
                if begun.len() >= self.parallelism {
                    ended.extend(begun.next().await);
                }
                begun.push_back(self.instance(resource, address, each, &imports));
            }
            ended.extend(begun.collect::<Vec<_>>().await);
            ended
        };
        let removed = join_all(orphans.iter().map(|(known, reason)| self.unwanted(known, *reason)));
        let deposed = join_all(deposed.into_iter().map(|known| self.deposed(known)));
        let besides =
            async { if self.import_only { (Vec::new(), Vec::new()) } else { tokio::join!(removed, deposed) } };
        let (instances, (removed, deposed)) = tokio::join!(instances, besides);
        let outcomes = instances.into_iter().chain(removed).chain(deposed);
        let found: Vec<Diagnostic> = outcomes.filter_map(Result::err).flatten().chain(lost).collect();
        if !found.is_empty() {
            return Err(found);
        }
        let of_check = self.config().block(resource).check.is_some();
        if self.mode == Mode::RefreshOnly && !self.import_only && !of_check {
            self.only_what_is_there(resource, wanted.into_iter().map(|(address, _)| address)).await?;
        }
        Ok(())
    }

    /// Where nothing is planned, references mean what there is of a resource by now.
    async fn only_what_is_there(
        &self,
        resource: &ResourceConfig,
        wanted: impl Iterator<Item = Address>,
    ) -> Outcome<()> {
        let known = self.known.get(&resource.address).into_iter().flatten();
        let candidates: BTreeSet<(Address, Option<String>)> = known
            .map(|known| (known.address.clone(), known.deposed.clone()))
            .chain(wanted.map(|address| (address, None)))
            .collect();
        let there: Vec<(Address, Instance)> = {
            let refreshed = &self.world().refreshed;
            let stored = |(address, deposed): (Address, Option<String>)| {
                let (_, instance) = refreshed.object(&address, deposed.as_deref())?;
                Some((address, instance.clone()))
            };
            candidates.into_iter().filter_map(stored).collect()
        };
        let schema = match there.is_empty() {
            true => None,
            false => Some(self.session.started(&resource.provider, self.config()).await?.schema),
        };
        let schema = schema.as_ref().and_then(|schema| {
            let schemas = if resource.data { &schema.data_sources } else { &schema.resources };
            schemas.get(&resource.type_name)
        });
        self.eval.only_what_is_there(resource, there, schema.map(|schema| &schema.block));
        Ok(())
    }

    /// An object that the configuration wants.
    async fn instance(
        &self,
        resource: &ResourceConfig,
        address: &Address,
        each: &Each,
        imports: &BTreeMap<Address, ImportTarget>,
    ) -> Outcome<()> {
        let _permit = self.permits.acquire().await;
        if self.stop.is_cancelled() {
            return Ok(());
        }
        self.check_own_references(resource)?;
        if resource.data {
            return self.data(resource, address, each).await;
        }
        let provider = &self.eval.provider_for(resource, address, each)?;
        let bound = self.bound(address, provider).await?;
        let schema = bound.resource(address)?;
        self.eval.deprecations.learn(resource, &bound.schema);
        let stored = self.base.current(address).map(|(_, instance)| instance);
        if let Some(target) = self.adopt.get(address).filter(|_| self.import_only && stored.is_some()) {
            self.found(&bound, address, target).await?;
            let detail = format!(
                "OpenTofu is already managing a remote object for {address}. To import to this address you must first remove \
                 the existing object from the state."
            );
            return Err(vec![at(address, Diagnostic::error("Resource already managed by OpenTofu", detail))]);
        }
        let importing = self.adopt.get(address).or(imports.get(address)).filter(|_| stored.is_none());
        let mut object = match (importing, stored) {
            (Some(target), _) => Some(self.taken_over(&bound, address, target).await?),
            (None, Some(instance)) => Some(bound.read_state(address, instance).await?),
            (None, None) => None,
        };
        if let Some(object) = object.as_mut().filter(|_| importing.is_some()) {
            // What the configuration keeps secret of it is secret from the start.
            let config = self.eval.body(resource, address, &self.eval.any_of(resource), &schema.block)?;
            let value = std::mem::replace(&mut object.value, Value::null(Type::Dynamic));
            object.value = mark_existing(value, &config.unmark_deep_with_paths().1);
            // The state learns how it is to be replaced with the first change of it.
            self.remember(schema, (address, None), provider, Some(object))?;
        }
        if let Some(object) = object.as_mut().filter(|_| !self.import_only) {
            object.create_before_destroy = resource.create_before_destroy;
            object.skip_destroy = self.eval.keeps(resource)?;
        }
        let (mut gone_private, mut others) = (Vec::new(), Vec::new());
        let looked_at = self.refresh || !self.doubts(address).is_empty();
        if let Some(before) = object.clone().filter(|_| looked_at && importing.is_none()) {
            (object, gone_private) = self.asked(&bound, (address, None), before.clone()).await?;
            others = self.otherwise(&bound, schema, &before, address, &mut object).await;
            self.note_drift(address, provider, &before, object.as_ref());
            if let Some(object) = &mut object {
                object.dependencies.extend(resource.dependencies.iter().cloned());
            }
        }
        if !self.import_only && importing.is_none() {
            self.remember(schema, (address, None), provider, object.as_ref())?;
        }
        if self.mode == Mode::RefreshOnly {
            // What is gone may come back as anything, so an output that uses it is unknown and no error. Of one that is alone
            // not even the type is left, unless it was never looked at.
            let ty =
                if address.key.is_none() && !self.import_only { Type::Dynamic } else { schema.block.implied_type() };
            let value = object.map_or_else(|| Value::unknown(ty), |object| object.value);
            self.eval.set_object(address, value.clone());
            self.eval.conditions(resource, address, each, None)?;
            return self.eval.conditions(resource, address, each, Some(&value));
        }
        self.eval.conditions(resource, address, each, None)?;
        let config = self.eval.body(resource, address, each, &schema.block)?;
        let lifecycle = &self.config().block(resource).lifecycle;
        let wishes = Wishes {
            force: self.forced(resource, address, each)?,
            ignore: &lifecycle.ignore_changes,
            create_before_destroy: resource.create_before_destroy,
            keep: self.eval.keeps(resource),
            gone_private,
        };
        let mut planned = bound.plan(address, object.as_ref(), &config, &wishes, None).await?;
        if let Some(assumed) = object.as_ref().and_then(|prior| assumed_prior(prior, &planned, &others)) {
            let again = bound.plan(address, Some(&assumed), &config, &wishes, None).await?;
            planned = self.surer(planned, again);
        }
        planned.importing = importing.cloned();
        planned.previous = self.moved.get(address).cloned();
        if let (Action::NoOp, Some(object)) = (planned.action, &mut object) {
            // Nothing will be applied, so what it stands on is brought up to date here.
            let known = object.dependencies.iter().eq(&resource.dependencies);
            object.dependencies = resource.dependencies.iter().cloned().collect();
            if importing.is_none() || !known {
                self.remember(schema, (address, None), provider, Some(object))?;
            }
        }
        let (after, replaces) = (planned.after.clone(), planned.replaces());
        self.note(planned);
        self.eval.check_protection(resource, address, replaces)?;
        self.eval.conditions(resource, address, each, Some(&after))
    }

    /// An object cannot be made of itself. OpenTofu holds references against two addresses of it, which are the same.
    fn check_own_references(&self, resource: &ResourceConfig) -> Outcome<()> {
        let all = self.config().modules[resource.module].module.self_references.iter();
        let own = all.filter(|(address, _)| *address == resource.local);
        let problem = |(address, at): &(String, landform_lang::SourceRange)| {
            let detail = format!("Configuration for {address} may not refer to itself.");
            let problem = Diagnostic::error(SELF_REFERENTIAL, detail);
            Diagnostic { range: Some(crate::native::config::range(at.clone())), ..problem }
        };
        let found: Vec<Diagnostic> = own.map(problem).flat_map(|one| [one.clone(), one]).collect();
        if found.is_empty() { Ok(()) } else { Err(found) }
    }

    /// How an object is now, as its provider says.
    pub(super) async fn asked(
        &self,
        bound: &Bound,
        (address, deposed): (&Address, Option<&str>),
        object: Object,
    ) -> Outcome<(Option<Object>, Vec<u8>)> {
        let told = Told::begin(self.progress, address, deposed, Work::Refresh, id_of(&object.value));
        let answer = bound.refresh(address, object).await?;
        told.end(Stage::Done, answer.0.as_ref().map(|object| id_of(&object.value)).unwrap_or_default());
        Ok(answer)
    }

    /// What the provider knows by the name that an object is to be taken over by.
    async fn found(&self, bound: &Bound, address: &Address, target: &ImportTarget) -> Outcome<Object> {
        let told = Told::begin(self.progress, address, None, Work::Find, id_of_target(target));
        let object = bound.ask_import(address, target).await?;
        told.end(Stage::Done, id_of_target(target));
        Ok(object)
    }

    async fn taken_over(&self, bound: &Bound, address: &Address, target: &ImportTarget) -> Outcome<Object> {
        let object = self.found(bound, address, target).await?;
        self.asked(bound, (address, None), object).await?.0.ok_or_else(|| not_there(address, target))
    }

    /// Whether the object is to be replaced even if nothing about it changed.
    fn forced(&self, resource: &ResourceConfig, address: &Address, each: &Each) -> Outcome<Option<Reason>> {
        let triggered = self.triggered(resource, address, each)?.then_some(Reason::ReplaceByTriggers);
        Ok(triggered.or(self.replace.contains(address).then_some(Reason::ReplaceByRequest)))
    }
}

fn same(one: &Known, other: &Known) -> bool {
    one.address == other.address && one.deposed == other.deposed
}

/// Why an object of a block that is there is not wanted.
fn unwanted(address: &Address, keys: &Keys) -> Reason {
    match (&address.key, keys) {
        (Some(Key::Index(_)), Keys::Count(_)) => Reason::DeleteBecauseCountIndex,
        (Some(Key::Name(_)), Keys::Each(_)) => Reason::DeleteBecauseEachKey,
        (None, Keys::Off) => Reason::DeleteBecauseEnabledFalse,
        _ => Reason::DeleteBecauseWrongRepetition,
    }
}
