//! Evaluation: what the expressions of a configuration mean, given what is known of its objects.

mod checks;
mod repeat;
mod scope;
mod values;

use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use landform_cty::{Mark, Value};
use landform_lang::{Body, Budget, Expr, Impure, NoReferences, Variable, evaluate};
use landform_protocol::Block;

pub use checks::{Checked, Checks, Kind, Objects, Status, status};
pub use scope::At;
pub use values::{Each, Keys, Values};

use super::change::{attribute_at, empty_object, path_text};
use super::config::{Config, Node, ResourceConfig, body_spec, range, translate};
use super::object::{Outcome, at};
use crate::{Address, Diagnostic, Severity};

/// The values of one pass over a configuration.
pub struct Eval<'a> {
    pub config: &'a Config,
    /// The pass before anything is known: neither inputs nor objects.
    blind: bool,
    /// What becomes of `timestamp` and the like.
    impure: Impure,
    /// When the plan is, or was, made.
    plan_time: Option<String>,
    values: RwLock<Values>,
    checks: Mutex<Checks>,
    warnings: Mutex<Vec<Diagnostic>>,
}

impl<'a> Eval<'a> {
    /// For a plan that is made at this time.
    pub fn planning(config: &'a Config, time: &str) -> Eval<'a> {
        Eval { plan_time: Some(time.to_owned()), ..Eval::with(config, false, Impure::Unknown) }
    }

    /// For the apply of a plan of this time: everything becomes known.
    pub fn applying(config: &'a Config, time: &str) -> Eval<'a> {
        Eval { plan_time: Some(time.to_owned()), ..Eval::with(config, false, Impure::Allowed) }
    }

    /// For the first pass, which finds what is wrong whatever the inputs are.
    pub fn blind(config: &'a Config) -> Eval<'a> {
        Eval::with(config, true, Impure::Unknown)
    }

    fn with(config: &'a Config, blind: bool, impure: Impure) -> Eval<'a> {
        Eval {
            config,
            blind,
            impure,
            plan_time: None,
            values: RwLock::new(Values::new()),
            checks: Mutex::new(Eval::unchecked(config)),
            warnings: Mutex::default(),
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
        std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Evaluates a node that is nothing but expressions; resources and providers are somebody else's.
    pub fn node(&self, node: &Node) -> Outcome<()> {
        match node {
            Node::Expand(id) => self.expand(*id),
            Node::Variable(0, name) => self.root_variable(name),
            Node::Variable(id, name) => self.each_instance(*id, |instance| self.variable(*id, instance, name)),
            Node::Local(id, name) => self.each_instance(*id, |instance| self.local(*id, instance, name)),
            Node::Output(id, name) => self.each_instance(*id, |instance| self.output(*id, instance, name)),
            Node::Check(id, name) => self.each_instance(*id, |instance| self.check(*id, instance, name)),
            Node::Resource(..) | Node::Provider(_) | Node::Close(_) => Ok(()),
        }
    }

    /// The instances of a module.
    pub fn instances(&self, id: usize) -> Vec<String> {
        self.values().instances(&self.config.modules[id].path).to_vec()
    }

    /// Evaluates what provider blocks refer to, where nothing else of the configuration is looked at.
    pub fn prepare_providers(&self) -> Outcome<()> {
        for place in self.config.graph.before_providers() {
            let node = &self.config.graph.nodes()[place];
            match self.config.resource_of(node) {
                Some(resource) => {
                    for instance in self.instances(resource.module) {
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

    fn each_instance(&self, id: usize, evaluate: impl Fn(&str) -> Outcome<()>) -> Outcome<()> {
        let mut found = Vec::new();
        for instance in self.instances(id) {
            found.extend(evaluate(&instance).err().into_iter().flatten());
        }
        if found.is_empty() { Ok(()) } else { Err(found) }
    }

    fn expand(&self, id: usize) -> Outcome<()> {
        let node = &self.config.modules[id];
        let Some((parent, name)) = &node.parent else { return Ok(()) };
        let repetition = &self.config.modules[*parent].module.calls[name].repetition;
        for instance in self.instances(*parent) {
            let keys = if self.blind {
                repeat::any_keys(repetition)
            } else {
                let values = self.values();
                repeat::keys(repetition, &self.at(&values, *parent, &instance, &Each::Once))?
            };
            self.values_mut().expand_module(&node.path, &instance, name, keys);
        }
        Ok(())
    }

    fn at<'s>(&'s self, values: &'s Values, module: usize, instance: &'s str, each: &'s Each) -> At<'s> {
        let (impure, plan_time) = (self.impure, self.plan_time.as_deref());
        At { config: self.config, values, module, instance, each, this: None, impure, plan_time }
    }

    fn root_variable(&self, name: &str) -> Outcome<()> {
        let variable = &self.config.root().variables[name];
        let value = if self.blind {
            marked(Value::unknown(variable.ty.clone()), variable)
        } else {
            self.config.variables[name].clone()
        };
        self.values_mut().set_variable("", name, value);
        self.validate_variable(0, "", variable)
    }

    fn variable(&self, id: usize, instance: &str, name: &str) -> Outcome<()> {
        let node = &self.config.modules[id];
        let (parent, call) = node.parent.as_ref().expect("only the root has no parent");
        let variable = &node.module.variables[name];
        let given = self.config.modules[*parent].module.calls[call].inputs.get(name);
        let value = {
            let values = self.values();
            let each = values.each(instance);
            let outer = parent_instance(instance);
            let scope = self.at(&values, *parent, outer, &each);
            match given {
                Some(expr) => Some(evaluate(expr, &scope, &mut Budget::default()).map_err(translate)?),
                None => None,
            }
        };
        if !variable.ephemeral && value.as_ref().is_some_and(|value| value.contains_mark(Mark::Ephemeral)) {
            let detail = format!(
                "The value used for the variable {name:?} is ephemeral, but it is not configured to allow one."
            );
            let problem = Diagnostic::error("Variable does not allow ephemeral value", detail);
            return Err(vec![Diagnostic { range: given.map(|expr| range(expr.range())), ..problem }]);
        }
        let value = landform_lang::module_variable_value(variable, value).map_err(|diagnostics| {
            let place = given.map(|expr| range(expr.range()));
            translate(diagnostics).into_iter().map(|one| Diagnostic { range: place.clone(), ..one }).collect::<Vec<_>>()
        })?;
        // What a module is given counts for nothing before the inputs are known, as for the root module.
        let value = if self.blind { marked(Value::unknown(variable.ty.clone()), variable) } else { value };
        self.values_mut().set_variable(instance, name, value);
        self.validate_variable(id, instance, variable)
    }

    fn validate_variable(&self, id: usize, instance: &str, variable: &Variable) -> Outcome<()> {
        if self.blind || variable.validations.is_empty() {
            return Ok(());
        }
        let (checked, found) = {
            let values = self.values();
            let scope = self.at(&values, id, instance, &Each::Once);
            checks::evaluate_conditions(&variable.validations, Kind::Var, false, &scope)
        };
        let config = self.config.node_name(&Node::Variable(id, variable.name.clone()));
        self.record(Kind::Var, config, inside(instance, &format!("var.{}", variable.name)), checked);
        let place = Some(range(variable.range.clone()));
        self.pass_on(found.into_iter().map(|one| Diagnostic { range: place.clone(), ..one }).collect())
    }

    fn local(&self, id: usize, instance: &str, name: &str) -> Outcome<()> {
        let value = self.evaluate(&self.config.modules[id].module.locals[name].value, id, instance)?;
        self.values_mut().set_local(instance, name, value);
        Ok(())
    }

    fn evaluate(&self, expr: &Expr, id: usize, instance: &str) -> Outcome<Value> {
        let values = self.values();
        let scope = self.at(&values, id, instance, &Each::Once);
        evaluate(expr, &scope, &mut Budget::default()).map_err(translate)
    }

    fn output(&self, id: usize, instance: &str, name: &str) -> Outcome<()> {
        let output = &self.config.modules[id].module.outputs[name];
        if !self.blind && !output.preconditions.is_empty() {
            let (checked, found) = {
                let values = self.values();
                let scope = self.at(&values, id, instance, &Each::Once);
                checks::evaluate_conditions(&output.preconditions, Kind::Output, false, &scope)
            };
            let config = self.config.node_name(&Node::Output(id, name.to_owned()));
            self.record(Kind::Output, config, inside(instance, &format!("output.{name}")), checked);
            self.pass_on(found)?;
        }
        let value = self.evaluate(&output.value, id, instance)?;
        let wrong = |summary: &str, detail: &str| {
            vec![Diagnostic { range: Some(range(output.range.clone())), ..Diagnostic::error(summary, detail) }]
        };
        let root = id == 0;
        if output.ephemeral && root {
            let detail = "Root modules are not allowed to have outputs defined as ephemeral";
            return Err(wrong("Invalid output configuration", detail));
        }
        if value.contains_mark(Mark::Ephemeral) && !output.ephemeral {
            let detail = format!(
                "The value that was generated for the output {name:?} is ephemeral, but it is not configured to allow one."
            );
            return Err(wrong("Output does not allow ephemeral value", &detail));
        }
        if value.contains_mark(Mark::Sensitive) && !output.sensitive && root {
            let detail = "To reduce the risk of accidentally exporting sensitive data that was intended to be only \
                          internal, OpenTofu requires that any root module output containing sensitive data be \
                          explicitly marked as sensitive, to confirm your intent.\n\nIf you do intend to export this \
                          data, annotate the output value as sensitive by adding the following argument:\n    sensitive \
                          = true";
            return Err(wrong("Output refers to sensitive values", detail));
        }
        let value = if output.sensitive && !root { value.with_mark(Mark::Sensitive) } else { value };
        let value = if root { super::object::bare(&value) } else { value };
        if !self.blind {
            self.values_mut().set_output(instance, name, value);
        }
        Ok(())
    }

    fn check(&self, id: usize, instance: &str, name: &str) -> Outcome<()> {
        if self.blind {
            return Ok(());
        }
        let config = self.config.node_name(&Node::Check(id, name.to_owned()));
        let object = inside(instance, &format!("check.{name}"));
        let failed = {
            let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
            checks.failed(Kind::Check, &config, &object)
        };
        if failed {
            // Its data could not be read: the assertions have nothing to look at.
            return Ok(());
        }
        let (checked, found) = {
            let values = self.values();
            let scope = self.at(&values, id, instance, &Each::Once);
            let assertions = &self.config.modules[id].module.checks[name].assertions;
            checks::evaluate_conditions(assertions, Kind::Check, false, &scope)
        };
        self.record(Kind::Check, config, object, checked);
        self.pass_on(found)
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

    /// Errors are errors; warnings are kept.
    fn pass_on(&self, found: Vec<Diagnostic>) -> Outcome<()> {
        let (errors, warnings): (Vec<_>, Vec<_>) = found.into_iter().partition(Diagnostic::is_error);
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).extend(warnings);
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// Finds the instances of a resource in one instance of its module, and makes places for them.
    pub fn expand_resource(&self, resource: &ResourceConfig, instance: &str) -> Outcome<Keys> {
        let repetition = &self.config.block(resource).repetition;
        let keys = if self.blind {
            repeat::any_keys(repetition)
        } else {
            let values = self.values();
            repeat::keys(repetition, &self.at(&values, resource.module, instance, &Each::Once))?
        };
        if self.config.block(resource).lifecycle.has_conditions() {
            let objects = keys.all().into_iter().map(|(key, _)| resource.instance(instance, key).to_string());
            let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
            checks.expand(Kind::Resource, resource.address.clone(), objects);
        }
        self.values_mut().expand_resource(instance, &resource.local, keys.clone());
        Ok(keys)
    }

    /// What the configuration wants of one object.
    pub fn body(&self, resource: &ResourceConfig, address: &Address, each: &Each, block: &Block) -> Outcome<Value> {
        let values = self.values();
        let scope = self.at(&values, resource.module, &address.module, each);
        let value = decode(&self.config.block(resource).body, block, &scope);
        let value =
            value.map_err(|found| found.into_iter().map(|diagnostic| at(address, diagnostic)).collect::<Vec<_>>())?;
        self.without_ephemeral(&self.config.block(resource).body, address, block, value)
    }

    /// Ephemeral values go to write-only arguments and nowhere else. There the mark has done its duty.
    fn without_ephemeral(&self, body: &Body, address: &Address, block: &Block, value: Value) -> Outcome<Value> {
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
                let problem = Diagnostic::error("Ephemeral value used in non-ephemeral context", detail);
                found.push(at(address, Diagnostic { range: Some(range(body.range())), ..problem }));
            }
        }
        places.retain(|(_, marks)| !marks.is_empty());
        if found.is_empty() { Ok(value.mark_paths(&places)) } else { Err(found) }
    }

    /// What the configuration says to a provider.
    pub fn provider(&self, address: &str, block: &Block) -> Outcome<Value> {
        match self.config.provider_config(address) {
            Some((id, provider)) => {
                let values = self.values();
                decode(&provider.body, block, &self.at(&values, id, &self.config.modules[id].path, &Each::Once))
            }
            None => Ok(empty_object(block)),
        }
    }

    /// Whether an object of this resource must not go. Its own key is no help: the object may be out of the configuration.
    pub fn protects(&self, resource: &ResourceConfig, instance: &str) -> Outcome<bool> {
        let Some(expr) = &self.config.block(resource).lifecycle.prevent_destroy else { return Ok(false) };
        let values = self.values();
        repeat::flag(expr, &self.at(&values, resource.module, instance, &Each::Once), "prevent_destroy")
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
        let (checked, found) = {
            let values = self.values();
            let scope = At { this, ..self.at(&values, resource.module, &address.module, each) };
            checks::evaluate_conditions(conditions, Kind::Resource, this.is_some(), &scope)
        };
        self.record(Kind::Resource, resource.address.clone(), address.to_string(), checked);
        self.pass_on(found.into_iter().map(|diagnostic| at(address, diagnostic)).collect())
    }

    /// The instances that something in the root module has.
    pub fn root_keys(&self, repetition: &landform_lang::Repetition) -> Outcome<Keys> {
        let values = self.values();
        repeat::keys(repetition, &self.at(&values, 0, "", &Each::Once))
    }

    pub fn root_scope<'s>(&'s self, values: &'s Values, each: &'s Each) -> At<'s> {
        self.at(values, 0, "", each)
    }

    /// An expression about one object, for instance the key of a reference in `replace_triggered_by`.
    pub fn about(&self, expr: &Expr, resource: &ResourceConfig, address: &Address, each: &Each) -> Outcome<Value> {
        let values = self.values();
        let scope = self.at(&values, resource.module, &address.module, each);
        evaluate(expr, &scope, &mut Budget::default()).map_err(translate)
    }

    /// The value of an output of the root module, if it has been evaluated.
    pub fn root_output(&self, name: &str) -> Option<Value> {
        self.values().output("", name)
    }
}

fn decode(body: &Body, block: &Block, scope: &At<'_>) -> Outcome<Value> {
    landform_lang::decode_body(body, &body_spec(block), scope, &mut Budget::default()).map_err(translate)
}

fn marked(value: Value, variable: &Variable) -> Value {
    let value = if variable.sensitive { value.with_mark(Mark::Sensitive) } else { value };
    if variable.ephemeral { value.with_mark(Mark::Ephemeral) } else { value }
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
