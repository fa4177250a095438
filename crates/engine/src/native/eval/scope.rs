use landform_cty::{Path, Step, Type, Value};
use landform_lang::{
    Body, Budget, Diagnostic, Expr, Impure, PathKind, Reference, Scope, World, did_you_mean, evaluate,
};
use landform_protocol::Block;

use super::deprecated::Deprecations;
use super::values::{Each, Values};
use crate::Key;
use crate::native::config::{Config, ModuleId, body_spec, translate};
use crate::native::object::Outcome;

/// Where an expression is evaluated.
pub struct At<'a> {
    pub config: &'a Config,
    pub values: &'a Values,
    pub module: ModuleId,
    /// The module's instance.
    pub instance: &'a str,
    pub each: &'a Each,
    /// What `self` means.
    pub this: Option<&'a Value>,
    pub impure: Impure,
    pub plan_time: Option<&'a str>,
    pub deprecations: &'a Deprecations,
}

impl At<'_> {
    /// What an expression means here.
    pub fn evaluate(&self, expr: &Expr) -> Outcome<Value> {
        let value = evaluate(expr, self, &mut Budget::default()).map_err(translate)?;
        Ok(self.deprecations.heard(value, |_| expr.range(), true))
    }

    /// What a block means here that has this schema.
    pub fn decode(&self, body: &Body, block: &Block) -> Outcome<Value> {
        self.decode_with(body, block, |path| match path.first() {
            Some(Step::Attribute(name)) => body.argument(name).map_or_else(|| body.range(), |expr| expr.range()),
            _ => body.range(),
        })
    }

    /// The same; what is warned of a part of it is shown at this place.
    pub fn decode_with(
        &self,
        body: &Body,
        block: &Block,
        place: impl Fn(&Path) -> landform_lang::SourceRange,
    ) -> Outcome<Value> {
        let value = landform_lang::decode_body(body, &body_spec(block), self, &mut Budget::default());
        Ok(self.deprecations.heard(value.map_err(translate)?, place, false))
    }

    fn where_declared(&self) -> String {
        match self.config.modules[self.module].path.as_str() {
            "" => "the root module".to_owned(),
            path => path.to_owned(),
        }
    }

    fn resource(&self, reference: &Reference) -> Result<Value, Diagnostic> {
        let local = reference.to_string();
        if !self.config.has_resource(self.module, &local) {
            let detail = format!("A resource {local} has not been declared in {}.", self.where_declared());
            return Err(Diagnostic::new("Reference to undeclared resource", detail));
        }
        Ok(self.values.resource(self.instance, &local).unwrap_or_else(|| Value::unknown(Type::Dynamic)))
    }

    fn outputs(&self, name: &str) -> Result<Vec<&str>, Diagnostic> {
        let node = &self.config.modules[self.module];
        let child = node.children.get(name).ok_or_else(|| {
            let detail = format!("No module call named {name:?} is declared in {}.", self.where_declared());
            Diagnostic::new("Reference to undeclared module", detail)
        })?;
        Ok(self.config.modules[*child].module.outputs.keys().map(String::as_str).collect())
    }
}

impl Scope for At<'_> {
    fn world(&self) -> World<'_> {
        World { folder: Some(&self.config.folder), plan_time: self.plan_time, impure: self.impure }
    }

    fn resolve_element(&self, reference: &Reference, key: &Value) -> Option<Value> {
        let Reference::Module { name, .. } = reference else { return None };
        if !key.marks.is_empty() {
            return None;
        }
        let key = match (key.as_str(), key.as_number().and_then(|number| number.to_string().parse().ok())) {
            (Some(name), _) => Key::Name(name.to_owned()),
            (None, index) => Key::Index(index?),
        };
        self.values.module_instance(self.instance, name, &key, &self.outputs(name).ok()?)
    }

    fn resolve(&self, reference: &Reference) -> Result<Value, Diagnostic> {
        match reference {
            Reference::Variable(name) => self.values.variable(self.instance, name).ok_or_else(|| {
                let declared = self.config.modules[self.module].module.variables.keys();
                let hint = match did_you_mean(name, declared.map(String::as_str)) {
                    hint if hint.is_empty() => {
                        format!(" This variable can be declared with a variable {name:?} {{}} block.")
                    }
                    hint => hint,
                };
                let detail = format!("An input variable with the name {name:?} has not been declared.{hint}");
                Diagnostic::new("Reference to undeclared input variable", detail)
            }),
            Reference::Local(name) => self.values.local(self.instance, name).ok_or_else(|| {
                let declared = self.config.modules[self.module].module.locals.keys();
                let hint = did_you_mean(name, declared.map(String::as_str));
                let detail = format!("A local value with the name {name:?} has not been declared.{hint}");
                Diagnostic::new("Reference to undeclared local value", detail)
            }),
            Reference::Resource { .. } | Reference::Data { .. } => self.resource(reference),
            Reference::Module { name, .. } => {
                let outputs = self.outputs(name)?;
                let value = self.values.module(self.instance, name, &outputs);
                Ok(value.unwrap_or_else(|| Value::unknown(Type::Dynamic)))
            }
            Reference::CountIndex => match self.each {
                Each::Index(index) => Ok(Value::number(*index)),
                Each::AnyIndex => Ok(Value::unknown(Type::Number)),
                _ => {
                    let detail = "The \"count\" object can only be used in \"module\", \"resource\", and \"data\" blocks, \
                                  and only when the \"count\" argument is set.";
                    Err(Diagnostic::new("Reference to \"count\" in non-counted context", detail))
                }
            },
            Reference::EachKey | Reference::EachValue => match self.each {
                Each::Pair(key, _) | Each::Lost(key) if *reference == Reference::EachKey => Ok(Value::string(key)),
                Each::Pair(_, value) => Ok(value.clone()),
                Each::AnyPair if *reference == Reference::EachKey => Ok(Value::unknown(Type::String)),
                Each::AnyPair => Ok(Value::unknown(Type::Dynamic)),
                Each::Lost(_) => {
                    let detail = "A reference to \"each.value\" has been used in a context in which it is unavailable, such as \
                                  when the configuration no longer contains the value in its \"for_each\" expression. Remove \
                                  this reference to each.value in your configuration to work around this error.";
                    Err(Diagnostic::new("each.value cannot be used in this context", detail))
                }
                _ => {
                    let detail = "The \"each\" object can be used only in \"module\" or \"resource\" blocks, and only when \
                                  the \"for_each\" argument is set.";
                    Err(Diagnostic::new("Reference to \"each\" in context without for_each", detail))
                }
            },
            Reference::SelfObject => self.this.cloned().ok_or_else(|| {
                let detail = "The \"self\" object is not available in this context. This object can be used only in resource \
                              provisioner, connection, and postcondition blocks.";
                Diagnostic::new("Invalid \"self\" reference", detail)
            }),
            Reference::Path(PathKind::Module) => Ok(Value::string(&self.config.modules[self.module].place)),
            Reference::Path(PathKind::Root) => Ok(Value::from(".")),
            Reference::Path(PathKind::Cwd) => Ok(Value::string(self.config.folder.to_string_lossy())),
            Reference::Workspace => Ok(Value::from("default")),
        }
    }
}
