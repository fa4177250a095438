//! Evaluation: what the expressions of a configuration mean, given what is known of its objects.

mod checks;
mod deprecated;
mod nodes;
mod protection;
mod providers;
mod repeat;
mod scope;
mod there;
mod values;

use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use landform_cty::{Mark, Value};
use landform_lang::{Budget, Expr, Impure, NoReferences, evaluate};
use landform_protocol::Block;

pub use checks::{Checked, Checks, Kind, Objects, Status, status};
use deprecated::Deprecations;
pub use deprecated::{DERIVED, in_block as has_deprecated};
pub use scope::At;
pub use values::{Each, Keys, Values};

use super::change::{attribute_at, path_text};
use super::config::{Config, Node, ResourceConfig, range};
use super::object::{Outcome, at};
use crate::{Address, Diagnostic, Severity};

/// The values of one pass over a configuration.
pub struct Eval<'a> {
    pub config: &'a Config,
    /// The pass before anything is known: neither inputs nor objects.
    blind: bool,
    /// Nothing is to be made or changed, so conditions that do not hold are nothing but worth a word.
    pub lenient: bool,
    /// What becomes of `timestamp` and the like.
    impure: Impure,
    /// When the plan is, or was, made.
    plan_time: Option<String>,
    values: RwLock<Values>,
    checks: Mutex<Checks>,
    warnings: Mutex<Vec<Diagnostic>>,
    problems: Mutex<Vec<Diagnostic>>,
    pub deprecations: Deprecations,
}

impl<'a> Eval<'a> {
    /// For a plan that is made at this time.
    pub fn planning(config: &'a Config, time: &str) -> Eval<'a> {
        Eval { plan_time: Some(time.to_owned()), ..Eval::with(config, false, Impure::Unknown) }
    }

    /// For the apply of a plan of this time: everything becomes known. What has conditions is known from the plan.
    pub fn applying(config: &'a Config, time: &str, checks: Checks) -> Eval<'a> {
        let checks = Mutex::new(checks);
        Eval { plan_time: Some(time.to_owned()), checks, ..Eval::with(config, false, Impure::Allowed) }
    }

    /// For the first pass, which finds what is wrong whatever the inputs are.
    pub fn blind(config: &'a Config) -> Eval<'a> {
        Eval::with(config, true, Impure::Unknown)
    }

    fn with(config: &'a Config, blind: bool, impure: Impure) -> Eval<'a> {
        Eval {
            config,
            blind,
            lenient: false,
            impure,
            plan_time: None,
            values: RwLock::new(Values::new()),
            checks: Mutex::new(Eval::unchecked(config)),
            warnings: Mutex::default(),
            problems: Mutex::default(),
            deprecations: Deprecations::default(),
        }
    }

    /// Everything that has conditions, before any of them is looked at.
    pub fn unchecked(config: &Config) -> Checks {
        let mut checks = Checks::default();
        for (id, node) in config.modules.iter().enumerate() {
            let module = &node.module;
            let declared = module.variables.values().filter(|variable| !variable.validations.is_empty());
            declared.for_each(|variable| {
                checks.declare(Kind::Var, config.node_name(&Node::Variable(id, variable.name.clone())));
            });
            let declared = module.outputs.values().filter(|output| !output.preconditions.is_empty());
            declared.for_each(|output| {
                checks.declare(Kind::Output, config.node_name(&Node::Output(id, output.name.clone())));
            });
            for name in module.checks.keys() {
                checks.declare(Kind::Check, config.node_name(&Node::Check(id, name.clone())));
            }
            for resource in &module.resources {
                if resource.lifecycle.has_conditions() {
                    checks.declare(Kind::Resource, config.node_name(&Node::Resource(id, resource.address())));
                }
            }
        }
        checks
    }

    /// What can be said of conditions when everything is destroyed: nothing, but that the root's outputs have some.
    pub fn unchecked_outputs(config: &Config) -> Checks {
        let mut checks = Eval::unchecked(config);
        for output in config.root().outputs.values().filter(|output| !output.preconditions.is_empty()) {
            let address = format!("output.{}", output.name);
            let checked = Checked { status: Status::Unknown, failures: Vec::new() };
            checks.record(Kind::Output, address.clone(), address, checked);
        }
        checks
    }

    pub fn values(&self) -> RwLockReadGuard<'_, Values> {
        self.values.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn values_mut(&self) -> RwLockWriteGuard<'_, Values> {
        self.values.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn checks(&self) -> Checks {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn take_warnings(&self) -> Vec<Diagnostic> {
        let warnings = std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner));
        [warnings, self.deprecations.take()].concat()
    }

    /// Says what references to an object mean from now on.
    pub fn set_object(&self, address: &Address, value: Value) {
        let value = self.deprecations.mark_object(self.config, address, value);
        self.values_mut().set(address, value);
    }

    /// The instances of a module.
    pub fn instances(&self, id: usize) -> Vec<String> {
        self.values().instances(&self.config.modules[id].path).to_vec()
    }

    /// The instances of a resource's module. Where there are none it is known that the resource has none, and that no
    /// condition of it can fail.
    pub fn homes(&self, resource: &ResourceConfig) -> Vec<String> {
        let homes = self.instances(resource.module);
        if homes.is_empty() {
            self.announce(Kind::Resource, &Node::Resource(resource.module, resource.local.clone()), &homes, "");
        }
        homes
    }

    /// It is known for which objects there are conditions.
    fn announce(&self, kind: Kind, node: &Node, homes: &[String], name: &str) {
        let objects = homes.iter().map(|home| inside(home, name));
        let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        checks.expand(kind, self.config.node_name(node), objects);
    }

    /// Evaluates what provider blocks refer to, where nothing else of the configuration is looked at.
    pub fn prepare_providers(&self) -> Outcome<()> {
        for place in self.config.graph.before_providers() {
            let node = &self.config.graph.nodes()[place];
            match self.config.resource_of(node) {
                Some(resource) => {
                    for instance in self.homes(resource) {
                        self.expand_resource(resource, &instance)?;
                    }
                }
                None => self.node(node)?,
            }
        }
        Ok(())
    }

    /// Evaluates what `prevent_destroy` refers to, likewise.
    pub fn prepare_protection(&self) -> Outcome<()> {
        for place in self.config.graph.before_protection(self.config) {
            let node = &self.config.graph.nodes()[place];
            if self.config.resource_of(node).is_none() {
                self.node(node)?;
            }
        }
        Ok(())
    }

    fn at<'s>(&'s self, values: &'s Values, module: usize, instance: &'s str, each: &'s Each) -> At<'s> {
        let (impure, plan_time) = (self.impure, self.plan_time.as_deref());
        let deprecations = &self.deprecations;
        At { config: self.config, values, module, instance, each, this: None, impure, plan_time, deprecations }
    }

    fn evaluate(&self, expr: &Expr, id: usize, instance: &str) -> Outcome<Value> {
        let values = self.values();
        self.at(&values, id, instance, &Each::Once).evaluate(expr)
    }

    /// The data source of a check could not be read: the check has failed, and nothing else.
    pub fn check_data_failed(&self, check: &str, resource: &ResourceConfig, address: &Address, found: Vec<Diagnostic>) {
        let config = self.config.node_name(&Node::Check(resource.module, check.to_owned()));
        let failed = Checked { status: Status::Fail, failures: vec![checks::as_one_text(&found)] };
        self.record(Kind::Check, config, inside(&address.module, &format!("check.{check}")), failed);
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).extend(found.into_iter().map(warning));
    }

    fn record(&self, kind: Kind, config: String, object: String, checked: Checked) {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner).record(kind, config, object, checked);
    }

    /// How it is told that a condition does not hold: of the time after, and how badly.
    fn told(&self, kind: Kind, post: bool) -> (bool, Severity) {
        (post, checks::severity(kind, self.lenient))
    }

    /// Errors are errors; warnings are kept.
    fn pass_on(&self, found: Vec<Diagnostic>) -> Outcome<()> {
        let (errors, warnings): (Vec<_>, Vec<_>) = found.into_iter().partition(Diagnostic::is_error);
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).extend(warnings);
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    fn keys(
        &self,
        repetition: &landform_lang::Repetition,
        (id, instance): (usize, &str),
        whose: repeat::Whose<'_>,
    ) -> Outcome<Keys> {
        let values = self.values();
        let scope = self.at(&values, id, instance, &Each::Once);
        if !self.blind {
            return repeat::keys(repetition, &scope, whose);
        }
        // What is written out can be wrong already. What is repeated is looked at all the same.
        if let Err(found) = repeat::check(repetition, &scope, whose) {
            self.problems.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
        }
        Ok(repeat::any_keys(repetition))
    }

    /// What the first pass has found wrong without being stopped by it.
    pub fn take_problems(&self) -> Vec<Diagnostic> {
        std::mem::take(&mut *self.problems.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Finds the instances of a resource in one instance of its module, and makes places for them.
    pub fn expand_resource(&self, resource: &ResourceConfig, instance: &str) -> Outcome<Keys> {
        let repetition = &self.config.block(resource).repetition;
        let own = resource.instance(instance, None).to_string();
        let keys = self.keys(repetition, (resource.module, instance), repeat::Whose(Some(&own), false))?;
        if self.config.block(resource).lifecycle.has_conditions() {
            let objects = keys.all().into_iter().map(|(key, _)| resource.instance(instance, key).to_string());
            let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
            checks.expand(Kind::Resource, resource.address.clone(), objects);
        }
        self.values_mut().expand_resource(instance, &resource.local, keys.clone());
        Ok(keys)
    }

    /// Some instance of a resource, of which it is not known which one it is.
    pub fn any_of(&self, resource: &ResourceConfig) -> Each {
        let keys = repeat::any_keys(&self.config.block(resource).repetition);
        keys.all().into_iter().next().map(|(_, each)| each).unwrap_or_default()
    }

    /// What the configuration wants of one object.
    pub fn body(&self, resource: &ResourceConfig, address: &Address, each: &Each, block: &Block) -> Outcome<Value> {
        let values = self.values();
        let scope = self.at(&values, resource.module, &address.module, each);
        let value = scope.decode(&self.config.block(resource).body, block);
        let value =
            value.map_err(|found| found.into_iter().map(|diagnostic| at(address, diagnostic)).collect::<Vec<_>>())?;
        self.without_ephemeral(address, block, value)
    }

    /// Ephemeral values go to write-only arguments and nowhere else. There the mark has done its duty.
    fn without_ephemeral(&self, address: &Address, block: &Block, value: Value) -> Outcome<Value> {
        if !value.contains_mark(Mark::Ephemeral) {
            return Ok(value);
        }
        let (value, mut places) = value.unmark_deep_with_paths();
        let mut found = Vec::new();
        for (path, marks) in &mut places {
            if !marks.remove(&Mark::Ephemeral) {
                continue;
            }
            let inside =
                (0..=path.len()).any(|end| attribute_at(block, &path[..end]).is_some_and(|one| one.write_only));
            if !inside {
                let detail = format!(
                    "Attribute {:?} is referencing an ephemeral value but ephemeral values can be referenced only by other \
                     ephemeral attributes or by write-only ones.",
                    path_text(path)
                );
                let mut problem = Diagnostic::error("Ephemeral value used in non-ephemeral context", detail);
                let argument = path.iter().take(1).filter_map(|step| match step {
                    landform_cty::Step::Attribute(name) => Some(landform_protocol::Step::Attribute(name.clone())),
                    _ => None,
                });
                problem.seen.argument = Some(argument.collect());
                found.push(at(address, problem));
            }
        }
        places.retain(|(_, marks)| !marks.is_empty());
        if found.is_empty() { Ok(value.mark_paths(&places)) } else { Err(found) }
    }

    /// Whether objects of a resource are left where they are when they are not wanted any longer. OpenTofu wants to know
    /// that of objects whose instances are gone, too, so nothing but a constant can say it.
    pub fn keeps(&self, resource: &ResourceConfig) -> Outcome<bool> {
        let Some(expr) = &self.config.block(resource).lifecycle.destroy else { return Ok(false) };
        let value = evaluate(expr, &NoReferences, &mut Budget::default());
        value.ok().and_then(|value| value.as_bool()).map(|destroy| !destroy).ok_or_else(|| {
            let detail = "The lifecycle destroy expression must be a boolean constant.";
            let problem = Diagnostic::error("Invalid lifecycle destroy expression", detail);
            vec![Diagnostic { range: Some(range(expr.range())), ..problem }]
        })
    }

    /// The conditions of an object: before it is planned, or (`this`) after.
    pub fn conditions(
        &self,
        resource: &ResourceConfig,
        address: &Address,
        each: &Each,
        this: Option<&Value>,
    ) -> Outcome<()> {
        let lifecycle = &self.config.block(resource).lifecycle;
        let conditions = if this.is_some() { &lifecycle.postconditions } else { &lifecycle.preconditions };
        if conditions.is_empty() {
            return Ok(());
        }
        let this = this.map(|value| self.deprecations.mark_object(self.config, address, value.clone()));
        let this = this.as_ref();
        let (checked, found) = {
            let values = self.values();
            let scope = At { this, ..self.at(&values, resource.module, &address.module, each) };
            checks::evaluate_conditions(conditions, Kind::Resource, self.told(Kind::Resource, this.is_some()), &scope)
        };
        self.record(Kind::Resource, resource.address.clone(), address.to_string(), checked);
        self.pass_on(found)
    }

    /// What an `import` block in the root module is repeated over.
    pub fn import_keys(&self, for_each: &Expr) -> Outcome<Keys> {
        let repetition = landform_lang::Repetition::ForEach(for_each.clone());
        self.keys(&repetition, (0, ""), repeat::Whose(None, true))
    }

    pub fn root_scope<'s>(&'s self, values: &'s Values, each: &'s Each) -> At<'s> {
        self.at(values, 0, "", each)
    }

    /// An expression about one object, for instance the key of a reference in `replace_triggered_by`.
    pub fn about(&self, expr: &Expr, resource: &ResourceConfig, address: &Address, each: &Each) -> Outcome<Value> {
        let values = self.values();
        self.at(&values, resource.module, &address.module, each).evaluate(expr)
    }

    /// The value of an output of the root module, if it has been evaluated.
    pub fn root_output(&self, name: &str) -> Option<Value> {
        self.values().output("", name)
    }
}

/// The module instance that calls this one.
pub fn parent_instance(instance: &str) -> &str {
    let (mut quoted, mut escaped, mut last) = (false, false, 0);
    let text = instance.as_bytes();
    for (place, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'.' if !quoted && text[place..].starts_with(b".module.") => last = place,
            _ => {}
        }
    }
    &instance[..last]
}

/// The address of something inside of a module's instance.
fn inside(instance: &str, local: &str) -> String {
    if instance.is_empty() { local.to_owned() } else { format!("{instance}.{local}") }
}

/// A warning in the words of an error.
pub fn warning(diagnostic: Diagnostic) -> Diagnostic {
    Diagnostic { severity: Severity::Warning, ..diagnostic }
}

#[cfg(test)]
mod tests {
    use super::parent_instance;

    #[test]
    fn the_caller_of_a_module_is_found_by_its_address() {
        assert_eq!(parent_instance("module.a[0]"), "");
        assert_eq!(parent_instance("module.a[\".module.x\"].module.b"), "module.a[\".module.x\"]");
    }
}
