use hcl_edit::structure::{Block, Structure};

use super::Loader;
use crate::reference::{Construct, ConstructKind, Found, inspect, iterator};
use crate::{Body, Diagnostic, Expr, Mention, Reference, Repetition, Resource, SourceRange, Validation, functions};

impl Loader {
    /// Looks at every expression once everything that can be referred to is known.
    pub(super) fn check_module(&mut self) {
        let mut expressions: Vec<(Expr, Place)> = Vec::new();
        let module = &self.module;
        for variable in module.variables.values() {
            conditions(&variable.validations, Place::default(), &mut expressions);
        }
        for local in module.locals.values() {
            let own = Some((format!("local.{}", local.name), Own::Local));
            expressions.push((local.value.clone(), Place { own, ..Place::default() }));
        }
        for output in module.outputs.values() {
            expressions.push((output.value.clone(), Place::default()));
            conditions(&output.preconditions, Place::default(), &mut expressions);
        }
        for resource in &module.resources {
            expressions.extend(resource.repetition.expr().map(|expr| (expr.clone(), Place::default())));
            let place = Place::inside(&resource.repetition);
            expressions.extend(resource.provider_key.iter().map(|expr| (expr.clone(), place.clone())));
            let own = |what: Own| Place { own: Some((resource.address(), what)), ..place.clone() };
            let single = matches!(resource.repetition, Repetition::Once | Repetition::Enabled(_));
            collect(&resource.body, if single { own(Own::Body) } else { place.clone() }, &mut expressions);
            let lifecycle = &resource.lifecycle;
            conditions(&lifecycle.preconditions, own(Own::Precondition), &mut expressions);
            let after = Place { this: true, ..own(Own::Postcondition) };
            conditions(&lifecycle.postconditions, after, &mut expressions);
            // What is wrong with it is found where an object is looked at.
            let any = Place { late: true, ..Place::default() };
            expressions.extend(lifecycle.prevent_destroy.iter().map(|expr| (expr.clone(), any.clone())));
            let triggers = lifecycle.replace_triggered_by.iter();
            expressions.extend(triggers.map(|trigger| (trigger.expr.clone(), own(Own::Trigger))));
        }
        for call in module.calls.values() {
            expressions.extend(call.repetition.expr().map(|expr| (expr.clone(), Place::default())));
            let place = Place::inside(&call.repetition);
            expressions.extend(call.inputs.values().map(|expr| (expr.clone(), place.clone())));
            expressions.extend(call.provider_keys.values().map(|expr| (expr.clone(), place.clone())));
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
            let place = Place { each: provider.for_each.is_some(), ..Place::default() };
            collect(&provider.body, place, &mut expressions);
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
                ConstructKind::Function(name) if functions::is_known(&name) || functions::of_old(&name).is_some() => {
                    continue;
                }
                ConstructKind::Function(name) if functions::is_foreign(&name) => format!("function {name}"),
                ConstructKind::Function(name) => {
                    let hint = crate::did_you_mean(&name, functions::function_names());
                    let detail = format!("There is no function named {name:?}.{hint}");
                    let problem = Diagnostic::new("Call to unknown function", detail);
                    self.report([problem.at(expr.source.range(span))]);
                    continue;
                }
                ConstructKind::LegacyIndexAfterSplat => "legacy index after a splat".to_owned(),
            };
            self.unsupported(construct, expr.source.range(span));
        }
        for Found { reference, mention, range } in references {
            if place.is_own_body(reference.as_ref().ok()) {
                let (address, _) = place.own.clone().unwrap_or_else(|| unreachable!("it belongs to something"));
                self.module.self_references.push((address, range.clone()));
            }
            if place.late {
                continue;
            }
            let problem = match &reference {
                Ok(reference) => self
                    .undeclared(reference, place)
                    .or_else(|| place.itself(reference))
                    .or_else(|| self.wrong_key(mention.as_ref()?, place)),
                Err(problem) => Some(problem.clone()),
            };
            match problem {
                Some(problem) => {
                    self.report([problem.at(range.clone())]);
                    if matches!((&reference, &place.own), (Ok(Reference::SelfObject), Some((_, Own::Precondition)))) {
                        let detail = "There is no variable named \"self\".";
                        self.report([Diagnostic::new("Unknown variable", detail).at(range)]);
                    }
                }
                None => self.module.mentions.extend(mention.filter(|one| !one.path.is_empty()).map(|one| (one, range))),
            }
        }
    }

    /// Whether a key is there where one has to be, and none where none can be.
    fn wrong_key(&self, mention: &Mention, place: &Place) -> Option<Diagnostic> {
        if matches!(place.own, Some((_, Own::Trigger))) {
            return None;
        }
        let (Reference::Resource { resource_type, name } | Reference::Data { resource_type, name }) =
            &mention.reference
        else {
            return None;
        };
        let data = matches!(mention.reference, Reference::Data { .. });
        let meant = |resource: &&Resource| {
            (resource.data, &resource.resource_type, &resource.name) == (data, resource_type, name)
        };
        let resource = self.module.resources.iter().find(meant)?;
        let address = resource.address();
        let example = match (&resource.repetition, &mention.key) {
            (Repetition::Count(_), None) if !mention.path.is_empty() => ("count", "count.index"),
            (Repetition::ForEach(_), None) if !mention.path.is_empty() => ("for_each", "each.key"),
            (Repetition::Once, Some(_)) => {
                let detail = format!(
                    "Because {address} does not have \"count\" or \"for_each\" set, references to it must not include an \
                     index key. Remove the bracketed index to refer to the single instance of this resource."
                );
                return Some(Diagnostic::new("Unexpected resource instance key", detail));
            }
            _ => return None,
        };
        let (argument, key) = example;
        let detail = format!(
            "Because {address} has {argument:?} set, its attributes must be accessed on specific instances.\n\nFor example, to \
             correlate with indices of a referring resource, use:\n    {address}[{key}]"
        );
        Some(Diagnostic::new("Missing resource instance key", detail))
    }

    fn undeclared(&self, reference: &Reference, place: &Place) -> Option<Diagnostic> {
        match reference {
            Reference::Variable(name) if !self.module.variables.contains_key(name) => Some(Diagnostic::new(
                "Reference to undeclared input variable",
                match crate::did_you_mean(name, self.module.variables.keys().map(String::as_str)) {
                    hint if hint.is_empty() => format!(
                        "An input variable with the name {name:?} has not been declared. This variable can be declared \
                         with a variable {name:?} {{}} block."
                    ),
                    hint => format!("An input variable with the name {name:?} has not been declared.{hint}"),
                },
            )),
            Reference::Local(name) if !self.module.locals.contains_key(name) => Some(Diagnostic::new(
                "Reference to undeclared local value",
                format!(
                    "A local value with the name {name:?} has not been declared.{}",
                    crate::did_you_mean(name, self.module.locals.keys().map(String::as_str))
                ),
            )),
            Reference::Resource { resource_type, name }
                if place.in_trigger() && !self.has_resource(false, resource_type, name) =>
            {
                let own = place.own.as_ref().map(|(address, _)| address.as_str()).unwrap_or_default();
                Some(Diagnostic::new(
                    "Undeclared resource in replace_triggered_by",
                    format!(
                        "Resource {own} refers to {resource_type}.{name} in replace_triggered_by, but it is not declared in \
                         this module."
                    ),
                ))
            }
            Reference::Resource { resource_type, name } if !self.has_resource(false, resource_type, name) => {
                let hint = match self.has_resource(true, resource_type, name) {
                    true => format!("\n\nDid you mean the data resource data.{resource_type}.{name}?"),
                    false => String::new(),
                };
                Some(Diagnostic::new(
                    "Reference to undeclared resource",
                    format!(
                        "There is no managed resource {resource_type:?} {name:?} definition in the root module.{hint}"
                    ),
                ))
            }
            Reference::Data { resource_type, name } if !self.has_resource(true, resource_type, name) => {
                let hint = match self.has_resource(false, resource_type, name) {
                    true => format!("\n\nDid you mean the resource resource {resource_type}.{name}?"),
                    false => String::new(),
                };
                Some(Diagnostic::new(
                    "Reference to undeclared resource",
                    format!(
                        "There is no data resource {resource_type:?} {name:?} definition in the root module.{hint}"
                    ),
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
        self.declared.contains_key(&(data, resource_type.to_owned(), name.to_owned()))
    }

    /// The data source of a check is there for that check only.
    fn in_scope(&self, resource_type: &str, name: &str, place: &Place) -> bool {
        let check = self.scoped.get(&(resource_type.to_owned(), name.to_owned()));
        check.is_none_or(|check| place.check.as_ref() == Some(check))
    }

    fn check_dependencies(&mut self) {
        let undeclared = |(reference, range): &(Reference, SourceRange)| {
            Some(self.undeclared(reference, &Place::default())?.at(range.clone()))
        };
        let problems: Vec<Diagnostic> = self.dependencies.iter().filter_map(undeclared).collect();
        self.report(problems);
    }
}

/// What of a thing an expression belongs to, as far as it may not refer to the thing itself.
#[derive(Clone, Copy, PartialEq)]
enum Own {
    Body,
    Local,
    Precondition,
    Postcondition,
    Trigger,
}

/// Where an expression stands, as far as it changes what it may refer to.
#[derive(Clone, Default)]
struct Place {
    count: bool,
    each: bool,
    this: bool,
    /// What it refers to is looked at with the object.
    late: bool,
    /// The check that it is a part of.
    check: Option<String>,
    /// The address of what it is a part of.
    own: Option<(String, Own)>,
    /// The iterators of `dynamic` blocks around it.
    iterators: Vec<String>,
}

impl Place {
    /// Whether the body of a block refers to the block itself.
    fn is_own_body(&self, reference: Option<&Reference>) -> bool {
        let own = self.own.as_ref().filter(|(_, part)| *part == Own::Body);
        own.zip(reference).is_some_and(|((address, _), reference)| *address == reference.to_string())
    }

    fn in_trigger(&self) -> bool {
        matches!(self.own, Some((_, Own::Trigger)))
    }

    /// What is wrong with a reference to the very thing that the expression belongs to.
    fn itself(&self, reference: &Reference) -> Option<Diagnostic> {
        let (address, part) = self.own.as_ref().filter(|(address, _)| *address == reference.to_string())?;
        let summary = match part {
            // Only a plan says so.
            Own::Body => return None,
            Own::Precondition => "Invalid reference in precondition",
            Own::Postcondition => "Invalid reference in postcondition",
            Own::Local => {
                let detail = format!("Local value {address} cannot use its own result as part of its expression.");
                return Some(Diagnostic::new("Self-referencing local value", detail));
            }
            // Its own change is not planned yet, which the plan says.
            Own::Trigger => return None,
        };
        Some(Diagnostic::new(summary, format!("Configuration for {address} may not refer to itself.")))
    }

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
        let inner = body.inside(block);
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
