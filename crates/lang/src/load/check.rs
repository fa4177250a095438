use hcl_edit::structure::Structure;

use super::Loader;
use crate::reference::{Construct, ConstructKind, inspect};
use crate::{Body, Diagnostic, Expr, Reference, functions};

impl Loader {
    /// Looks at every expression once everything that can be referred to is known.
    pub(super) fn check_module(&mut self) {
        let mut expressions: Vec<(Expr, Place)> = Vec::new();
        let module = &self.module;
        for variable in module.variables.values() {
            for validation in &variable.validations {
                expressions.push((validation.condition.clone(), Place::Elsewhere));
                expressions.push((validation.error_message.clone(), Place::Elsewhere));
            }
        }
        expressions.extend(module.locals.values().map(|local| (local.value.clone(), Place::Elsewhere)));
        expressions.extend(module.outputs.values().map(|output| (output.value.clone(), Place::Elsewhere)));
        for resource in &module.resources {
            expressions.extend(resource.count.iter().map(|count| (count.clone(), Place::Elsewhere)));
            let place = if resource.count.is_some() { Place::Counted } else { Place::Elsewhere };
            collect(&resource.body, place, &mut expressions);
        }
        for provider in &module.providers {
            collect(&provider.body, Place::Elsewhere, &mut expressions);
        }
        for (expr, place) in &expressions {
            self.check_expression(expr, *place);
        }
        self.check_dependencies();
    }

    fn check_expression(&mut self, expr: &Expr, place: Place) {
        let mut constructs = Vec::new();
        let references = inspect(expr, &mut |construct| constructs.push(construct));
        for Construct { kind, span } in constructs {
            let construct = match kind {
                ConstructKind::Function(name) if functions::find(&name).is_some() => continue,
                ConstructKind::Function(name) => format!("function {name}"),
                ConstructKind::Directive => "template directive".to_owned(),
                ConstructKind::Strip => "template strip marker".to_owned(),
                ConstructKind::LegacyIndexAfterSplat => "legacy index after a splat".to_owned(),
                ConstructKind::EmptyHeredoc => "empty heredoc".to_owned(),
                ConstructKind::CarriageReturn => "heredoc with carriage returns".to_owned(),
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

    fn undeclared(&self, reference: &Reference, place: Place) -> Option<Diagnostic> {
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
            Reference::Resource { resource_type, name } if !self.has_resource(resource_type, name) => {
                Some(Diagnostic::new(
                    "Reference to undeclared resource",
                    format!("A managed resource {resource_type:?} {name:?} has not been declared in the root module."),
                ))
            }
            Reference::CountIndex if place != Place::Counted => Some(Diagnostic::new(
                "Reference to \"count\" in non-counted context",
                "The \"count\" object can only be used in \"module\", \"resource\", and \"data\" blocks, and only when \
                 the \"count\" argument is set.",
            )),
            _ => None,
        }
    }

    fn has_resource(&self, resource_type: &str, name: &str) -> bool {
        self.module.resources.iter().any(|resource| resource.resource_type == resource_type && resource.name == name)
    }

    fn check_dependencies(&mut self) {
        let module = &self.module;
        let wanted = module
            .resources
            .iter()
            .map(|resource| (&resource.depends_on, &resource.range))
            .chain(module.outputs.values().map(|output| (&output.depends_on, &output.range)));
        let problems: Vec<Diagnostic> = wanted
            .flat_map(|(references, range)| references.iter().map(move |reference| (reference, range)))
            .filter_map(|(reference, range)| Some(self.undeclared(reference, Place::Elsewhere)?.at(range.clone())))
            .collect();
        self.report(problems);
    }
}

/// Where an expression stands, as far as it changes what it may refer to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Counted,
    Elsewhere,
}

fn collect(body: &Body, place: Place, expressions: &mut Vec<(Expr, Place)>) {
    for structure in &body.node {
        match structure {
            Structure::Attribute(attribute) => expressions.push((body.expr(&attribute.value), place)),
            Structure::Block(block) => {
                collect(&Body { node: block.body.clone(), source: body.source.clone() }, place, expressions);
            }
        }
    }
}
