use hcl_edit::structure::{Block, Structure};

use super::Loader;
use crate::reference::{Construct, ConstructKind, inspect, iterator};
use crate::{Body, Diagnostic, Expr, Reference, Repetition, Validation, functions};

impl Loader {
    /// Looks at every expression once everything that can be referred to is known.
    pub(super) fn check_module(&mut self) {
        let mut expressions: Vec<(Expr, Place)> = Vec::new();
        let module = &self.module;
        for variable in module.variables.values() {
            conditions(&variable.validations, Place::default(), &mut expressions);
        }
        expressions.extend(module.locals.values().map(|local| (local.value.clone(), Place::default())));
        for output in module.outputs.values() {
            expressions.push((output.value.clone(), Place::default()));
            conditions(&output.preconditions, Place::default(), &mut expressions);
        }
        for resource in &module.resources {
            expressions.extend(resource.repetition.expr().map(|expr| (expr.clone(), Place::default())));
            let place = Place::inside(&resource.repetition);
            collect(&resource.body, place.clone(), &mut expressions);
            let lifecycle = &resource.lifecycle;
            conditions(&lifecycle.preconditions, place.clone(), &mut expressions);
            conditions(&lifecycle.postconditions, Place { this: true, ..place.clone() }, &mut expressions);
            expressions.extend(lifecycle.prevent_destroy.iter().map(|expr| (expr.clone(), Place::default())));
            let triggers = lifecycle.replace_triggered_by.iter();
            expressions.extend(triggers.map(|trigger| (trigger.expr.clone(), place.clone())));
        }
        for call in module.calls.values() {
            expressions.extend(call.repetition.expr().map(|expr| (expr.clone(), Place::default())));
            let place = Place::inside(&call.repetition);
            expressions.extend(call.inputs.values().map(|expr| (expr.clone(), place.clone())));
        }
        for import in &module.imports {
            expressions.extend(import.for_each.iter().map(|expr| (expr.clone(), Place::default())));
            let place = Place { each: import.for_each.is_some(), ..Place::default() };
            expressions.push((import.by.expr().clone(), place));
        }
        for check in module.checks.values() {
            let place = Place { check: Some(check.name.clone()), ..Place::default() };
            conditions(&check.assertions, place, &mut expressions);
        }
        for provider in &module.providers {
            collect(&provider.body, Place::default(), &mut expressions);
        }
        for (expr, place) in &expressions {
            self.check_expression(expr, place);
        }
        self.check_dependencies();
    }

    fn check_expression(&mut self, expr: &Expr, place: &Place) {
        let mut constructs = Vec::new();
        let references = inspect(expr, &place.iterators, &mut |construct| constructs.push(construct));
        for Construct { kind, span } in constructs {
            let construct = match kind {
                ConstructKind::Function(name) if functions::is_known(&name) => continue,
                ConstructKind::Function(name) => format!("function {name}"),
                ConstructKind::LegacyIndexAfterSplat => "legacy index after a splat".to_owned(),
            };
            self.unsupported(construct, expr.source.range(span));
        }
        for (reference, range) in references {
            let problem = match reference {
                Ok(reference) => match self.undeclared(&reference, place) {
                    Some(problem) => problem,
                    None => continue,
                },
                Err(problem) => problem,
            };
            self.report([problem.at(range)]);
        }
    }

    fn undeclared(&self, reference: &Reference, place: &Place) -> Option<Diagnostic> {
        match reference {
            Reference::Variable(name) if !self.module.variables.contains_key(name) => Some(Diagnostic::new(
                "Reference to undeclared input variable",
                format!(
                    "An input variable with the name {name:?} has not been declared. This variable can be declared \
                     with a variable {name:?} {{}} block."
                ),
            )),
            Reference::Local(name) if !self.module.locals.contains_key(name) => Some(Diagnostic::new(
                "Reference to undeclared local value",
                format!("A local value with the name {name:?} has not been declared."),
            )),
            Reference::Resource { resource_type, name } if !self.has_resource(false, resource_type, name) => {
                Some(Diagnostic::new(
                    "Reference to undeclared resource",
                    format!("A managed resource {resource_type:?} {name:?} has not been declared in the root module."),
                ))
            }
            Reference::Data { resource_type, name } if !self.has_resource(true, resource_type, name) => {
                Some(Diagnostic::new(
                    "Reference to undeclared resource",
                    format!("A data resource {resource_type:?} {name:?} has not been declared in the root module."),
                ))
            }
            Reference::Data { resource_type, name } if !self.in_scope(resource_type, name, place) => {
                let detail = format!(
                    "The referenced data resource {resource_type:?} {name:?} is not available from this context."
                );
                Some(Diagnostic::new("Reference to scoped resource", detail))
            }
            Reference::Module { name, .. } if !self.module.calls.contains_key(name) => Some(Diagnostic::new(
                "Reference to undeclared module",
                format!("No module call named {name:?} is declared in the root module."),
            )),
            Reference::CountIndex if !place.count => Some(Diagnostic::new(
                "Reference to \"count\" in non-counted context",
                "The \"count\" object can only be used in \"module\", \"resource\", and \"data\" blocks, and only when \
                 the \"count\" argument is set.",
            )),
            Reference::EachKey | Reference::EachValue if !place.each => Some(Diagnostic::new(
                "Reference to \"each\" in context without for_each",
                "The \"each\" object can be used only in \"module\" or \"resource\" blocks, and only when the \
                 \"for_each\" argument is set.",
            )),
            Reference::SelfObject if !place.this => Some(Diagnostic::new(
                "Invalid \"self\" reference",
                "The \"self\" object is not available in this context. This object can be used only in resource \
                 provisioner, connection, and postcondition blocks.",
            )),
            _ => None,
        }
    }

    fn has_resource(&self, data: bool, resource_type: &str, name: &str) -> bool {
        self.declared.contains(&(data, resource_type.to_owned(), name.to_owned()))
    }

    /// The data source of a check is there for that check only.
    fn in_scope(&self, resource_type: &str, name: &str, place: &Place) -> bool {
        let check = self.scoped.get(&(resource_type.to_owned(), name.to_owned()));
        check.is_none_or(|check| place.check.as_ref() == Some(check))
    }

    fn check_dependencies(&mut self) {
        let module = &self.module;
        let wanted = module
            .resources
            .iter()
            .map(|resource| (&resource.depends_on, &resource.range))
            .chain(module.calls.values().map(|call| (&call.depends_on, &call.range)))
            .chain(module.outputs.values().map(|output| (&output.depends_on, &output.range)));
        let problems: Vec<Diagnostic> = wanted
            .flat_map(|(references, range)| references.iter().map(move |reference| (reference, range)))
            .filter_map(|(reference, range)| Some(self.undeclared(reference, &Place::default())?.at(range.clone())))
            .collect();
        self.report(problems);
    }
}

/// Where an expression stands, as far as it changes what it may refer to.
#[derive(Clone, Default)]
struct Place {
    count: bool,
    each: bool,
    this: bool,
    /// The check that it is a part of.
    check: Option<String>,
    /// The iterators of `dynamic` blocks around it.
    iterators: Vec<String>,
}

impl Place {
    fn inside(repetition: &Repetition) -> Place {
        Place {
            count: matches!(repetition, Repetition::Count(_)),
            each: matches!(repetition, Repetition::ForEach(_)),
            ..Place::default()
        }
    }
}

fn conditions(validations: &[Validation], place: Place, expressions: &mut Vec<(Expr, Place)>) {
    for validation in validations {
        expressions.push((validation.condition.clone(), place.clone()));
        expressions.push((validation.error_message.clone(), place.clone()));
    }
}

fn collect(body: &Body, place: Place, expressions: &mut Vec<(Expr, Place)>) {
    for structure in &body.node {
        match structure {
            Structure::Attribute(attribute) => expressions.push((body.expr(&attribute.value), place.clone())),
            Structure::Block(block) => collect_block(body, block, &place, expressions),
        }
    }
}

fn collect_block(body: &Body, block: &Block, place: &Place, expressions: &mut Vec<(Expr, Place)>) {
    let Some(iterator) = iterator(block) else {
        let inner = Body { node: block.body.clone(), source: body.source.clone() };
        return collect(&inner, place.clone(), expressions);
    };
    let mut inside = place.clone();
    inside.iterators.push(iterator);
    for structure in &block.body {
        match structure {
            Structure::Attribute(attribute) => match attribute.key.as_str() {
                "iterator" => {}
                "for_each" => expressions.push((body.expr(&attribute.value), place.clone())),
                _ => expressions.push((body.expr(&attribute.value), inside.clone())),
            },
            Structure::Block(block) => collect_block(body, block, &inside, expressions),
        }
    }
}
