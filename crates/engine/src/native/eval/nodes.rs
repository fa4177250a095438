//! The parts of a configuration that are nothing but expressions: variables, locals, outputs and checks.

use std::sync::PoisonError;

use landform_cty::{Mark, Type, Value};
use landform_lang::Variable;

use super::repeat::Whose;
use super::{Each, Eval, Kind, checks, inside, parent_instance};
use crate::Diagnostic;
use crate::native::config::{Node, range, translate};
use crate::native::object::Outcome;

impl Eval<'_> {
    /// Evaluates a node that is nothing but expressions; resources and providers are somebody else's.
    pub fn node(&self, node: &Node) -> Outcome<()> {
        match node {
            Node::Expand(id) => self.expand(*id),
            Node::Variable(0, name) => self.root_variable(name),
            Node::Variable(id, name) => {
                self.announce(Kind::Var, node, &self.instances(*id), &format!("var.{name}"));
                self.each_instance(*id, |instance| self.variable(*id, instance, name))
            }
            Node::Local(id, name) => self.each_instance(*id, |instance| self.local(*id, instance, name)),
            Node::Output(id, name) => {
                self.announce(Kind::Output, node, &self.instances(*id), &format!("output.{name}"));
                self.each_instance(*id, |instance| self.output(*id, instance, name))
            }
            Node::Check(id, name) => {
                self.announce(Kind::Check, node, &self.instances(*id), &format!("check.{name}"));
                self.each_instance(*id, |instance| self.check(*id, instance, name))
            }
            Node::Resource(..) | Node::Provider(_) | Node::Close(_) => Ok(()),
        }
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
        self.each_instance(*parent, |instance| {
            let keys = self.keys(repetition, (*parent, instance), Whose(Some(instance), false))?;
            self.values_mut().expand_module(&node.path, instance, name, keys);
            Ok(())
        })
    }

    fn root_variable(&self, name: &str) -> Outcome<()> {
        let variable = &self.config.root().variables[name];
        let value = if self.blind {
            marked(Value::unknown(variable.ty.clone()), variable)
        } else if let Some(found) = self.config.wrong_variables.get(name) {
            return Err(found.clone());
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
                Some(expr) => Some(scope.evaluate(expr)?),
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
            let told = |one: Diagnostic| {
                let own = inside(instance, &format!("var.{name}"));
                let detail = one.detail.replacen(&format!("var.{name}"), &own, 1);
                // A value of the wrong type is shown by the variable, and one that is missing by the call.
                let range = if one.summary == "Invalid value for input variable" { one.range } else { place.clone() };
                Diagnostic { range, detail, ..one }
            };
            translate(diagnostics).into_iter().map(told).collect::<Vec<_>>()
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
            checks::evaluate_conditions(&variable.validations, Kind::Var, self.told(Kind::Var, false), &scope)
        };
        let config = self.config.node_name(&Node::Variable(id, variable.name.clone()));
        self.record(Kind::Var, config, inside(instance, &format!("var.{}", variable.name)), checked);
        // A value that is refused is shown where it is given, or else by its variable.
        let given = self.config.modules[id]
            .parent
            .as_ref()
            .and_then(|(parent, call)| self.config.modules[*parent].module.calls[call].inputs.get(&variable.name));
        let place = given.map_or_else(|| variable.range.clone(), |expr| expr.range());
        let told = |one: Diagnostic| match one.summary.as_str() {
            "Invalid value for variable" => Diagnostic { range: Some(range(place.clone())), ..one },
            _ => one,
        };
        self.pass_on(found.into_iter().map(told).collect())
    }

    fn local(&self, id: usize, instance: &str, name: &str) -> Outcome<()> {
        let value = self.evaluate(&self.config.modules[id].module.locals[name].value, id, instance)?;
        self.values_mut().set_local(instance, name, value);
        Ok(())
    }

    /// Evaluates an output of a module that nobody asks for. OpenTofu does not look at its conditions then.
    pub fn idle_output(&self, id: usize, name: &str) -> Outcome<()> {
        self.each_instance(id, |instance| self.output_value(id, instance, name))
    }

    /// Looks at the conditions of an output of the root module whose value is known already.
    pub fn known_output(&self, name: &str) -> Outcome<()> {
        self.output_conditions(0, "", name)
    }

    fn output(&self, id: usize, instance: &str, name: &str) -> Outcome<()> {
        self.output_conditions(id, instance, name)?;
        self.output_value(id, instance, name)
    }

    fn output_conditions(&self, id: usize, instance: &str, name: &str) -> Outcome<()> {
        let output = &self.config.modules[id].module.outputs[name];
        if !self.blind && !output.preconditions.is_empty() {
            let (checked, found) = {
                let values = self.values();
                let scope = self.at(&values, id, instance, &Each::Once);
                checks::evaluate_conditions(&output.preconditions, Kind::Output, self.told(Kind::Output, false), &scope)
            };
            let config = self.config.node_name(&Node::Output(id, name.to_owned()));
            self.record(Kind::Output, config, inside(instance, &format!("output.{name}")), checked);
            self.pass_on(found)?;
        }
        Ok(())
    }

    fn output_value(&self, id: usize, instance: &str, name: &str) -> Outcome<()> {
        let output = &self.config.modules[id].module.outputs[name];
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
            let detail =
                "The value that was generated for the output is ephemeral, but it is not configured to allow one.";
            let problem = Diagnostic::error("Output does not allow ephemeral value", detail);
            return Err(vec![Diagnostic { range: Some(range(output.value.range())), ..problem }]);
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
        let value = if root { crate::native::object::bare(&value) } else { value };
        let value = if self.blind { Value::unknown(Type::Dynamic) } else { value };
        let value = match output.deprecated.as_ref().filter(|_| !root) {
            Some(why) => self.deprecations.mark(value, format!("{}.{name}", local_call(instance)), why),
            None if self.blind => return Ok(()),
            None => value,
        };
        self.values_mut().set_output(instance, name, value);
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
            checks::evaluate_conditions(assertions, Kind::Check, self.told(Kind::Check, false), &scope)
        };
        self.record(Kind::Check, config, object, checked);
        self.pass_on(found)
    }
}

/// A module's instance as its caller names it.
fn local_call(instance: &str) -> &str {
    instance[parent_instance(instance).len()..].trim_start_matches('.')
}

fn marked(value: Value, variable: &Variable) -> Value {
    let value = if variable.sensitive { value.with_mark(Mark::Sensitive) } else { value };
    if variable.ephemeral { value.with_mark(Mark::Ephemeral) } else { value }
}
