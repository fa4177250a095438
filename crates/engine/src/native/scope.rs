use std::cell::RefCell;
use std::collections::BTreeMap;

use landform_cty::{Mark, Type, Value};
use landform_lang::{Budget, Diagnostic, PathKind, Reference, Scope, evaluate};

use super::config::Config;
use super::values::Values;

/// Which instance of a resource is being evaluated.
#[derive(Clone, Copy)]
pub enum Instance {
    None,
    Index(u64),
    /// One with `count`, but which one is not known.
    AnyIndex,
}

/// Where an expression is evaluated. Without values it is the first pass, in which neither inputs nor objects are known.
pub struct At<'a> {
    config: &'a Config,
    values: Option<&'a Values>,
    instance: Instance,
    locals: RefCell<BTreeMap<String, Value>>,
}

impl<'a> At<'a> {
    pub fn new(config: &'a Config, values: Option<&'a Values>, instance: Instance) -> At<'a> {
        At { config, values, instance, locals: RefCell::default() }
    }

    fn variable(&self, name: &str) -> Result<Value, Diagnostic> {
        let undeclared = || {
            let detail = format!("An input variable with the name {name:?} has not been declared.");
            Diagnostic::new("Reference to undeclared input variable", detail)
        };
        let variable = self.config.module.variables.get(name).ok_or_else(undeclared)?;
        if self.values.is_some() {
            return self.config.variables.get(name).cloned().ok_or_else(undeclared);
        }
        let mut value = Value::unknown(variable.ty.clone());
        if variable.sensitive {
            value = value.with_mark(Mark::Sensitive);
        }
        if variable.ephemeral {
            value = value.with_mark(Mark::Ephemeral);
        }
        Ok(value)
    }

    /// A local value is evaluated after those that it needs, one at a time and once, so that the depth of the stack does
    /// not depend on the configuration.
    fn local(&self, name: &str) -> Result<Value, Diagnostic> {
        let order = self.config.local_order.get(name).ok_or_else(|| {
            let detail = format!("A local value with the name {name:?} has not been declared.");
            Diagnostic::new("Reference to undeclared local value", detail)
        })?;
        for name in order {
            if self.locals.borrow().contains_key(name) {
                continue;
            }
            let expr = &self.config.module.locals[name].value;
            let value = evaluate(expr, self, &mut Budget::default()).map_err(|mut found| found.0.remove(0))?;
            self.locals.borrow_mut().insert(name.clone(), value);
        }
        Ok(self.locals.borrow()[name].clone())
    }

    fn resource(&self, resource_type: &str, name: &str) -> Result<Value, Diagnostic> {
        let address = format!("{resource_type}.{name}");
        if !self.config.resources().any(|resource| resource.address == address) {
            let detail =
                format!("A managed resource {resource_type:?} {name:?} has not been declared in the root module.");
            return Err(Diagnostic::new("Reference to undeclared resource", detail));
        }
        let open = || Value::unknown(Type::Dynamic);
        Ok(self.values.and_then(|values| values.get(&address)).unwrap_or_else(open))
    }
}

impl Scope for At<'_> {
    fn resolve_element(&self, reference: &Reference, key: &Value) -> Option<Value> {
        let Reference::Resource { resource_type, name } = reference else { return None };
        let index = key.as_number().filter(|_| key.marks.is_empty())?.to_usize()?;
        self.values?.element(&format!("{resource_type}.{name}"), index)
    }

    fn resolve(&self, reference: &Reference) -> Result<Value, Diagnostic> {
        match reference {
            Reference::Variable(name) => self.variable(name),
            Reference::Local(name) => self.local(name),
            Reference::Resource { resource_type, name } => self.resource(resource_type, name),
            Reference::CountIndex => match self.instance {
                Instance::Index(index) => Ok(Value::number(index)),
                Instance::AnyIndex => Ok(Value::unknown(Type::Number)),
                Instance::None => {
                    let detail = "The \"count\" object can only be used in \"resource\" blocks, and only when the \
                                  \"count\" argument is set.";
                    Err(Diagnostic::new("Reference to \"count\" in non-counted context", detail))
                }
            },
            Reference::Path(PathKind::Module | PathKind::Root) => Ok(Value::from(".")),
            Reference::Path(PathKind::Cwd) => Ok(Value::string(self.config.folder.to_string_lossy())),
            Reference::Workspace => Ok(Value::from("default")),
        }
    }
}
