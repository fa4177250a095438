use hcl_edit::expr::{Expression, TraversalOperator};
use hcl_edit::structure::{Block, Structure};
use landform_cty::{Path, Step};

use super::Loader;
use crate::{Body, Diagnostic, Expr, IgnoreChanges, Lifecycle, Reference, Repetition, Resource, SourceRange, Trigger};

impl Loader {
    pub(super) fn read_resource(&mut self, data: bool, labels: [&str; 2], mut body: Body, range: SourceRange) {
        let repetition = self.take_repetition(&mut body);
        let (provider, depends_on) = (take(&mut body, "provider"), take(&mut body, "depends_on"));
        let mut lifecycle = self.take_lifecycle(&mut body, data);
        let repetition = self.with_enabled(repetition, lifecycle.enabled.take());
        for construct in ["provisioner", "connection", "_"] {
            for block in body.node.get_blocks(construct) {
                let range = body.place(&block.ident);
                self.module.unsupported.push(crate::Unsupported { construct: format!("{construct} block"), range });
            }
        }
        let provider = provider.and_then(|provider| self.read_provider_reference(&provider));
        let depends_on = depends_on.map(|given| self.read_depends_on(&given)).unwrap_or_default();
        let [resource_type, name] = labels.map(str::to_owned);
        if data && resource_type == "terraform_remote_state" {
            // It is built in, and reads a state by any of OpenTofu's backends.
            self.unsupported("data source terraform_remote_state", range.clone());
        }
        if !self.declared.insert((data, resource_type.clone(), name.clone())) {
            let kind = if data { "data" } else { "resource" };
            self.duplicate(&format!("{kind} {resource_type:?} configuration"), &name, range.clone());
        }
        self.module.resources.push(Resource {
            data,
            resource_type,
            name,
            repetition,
            lifecycle,
            provider,
            depends_on,
            body,
            check: None,
            range,
        });
    }

    pub(super) fn with_enabled(&mut self, repetition: Repetition, enabled: Option<Expr>) -> Repetition {
        match (repetition, enabled) {
            (repetition, None) => repetition,
            (Repetition::Once, Some(enabled)) => Repetition::Enabled(enabled),
            (repetition, Some(enabled)) => {
                let detail = "The \"enabled\" argument cannot be used together with \"count\" or \"for_each\".";
                self.found.push(Diagnostic::new("Invalid combination of \"enabled\"", detail).at(enabled.range()));
                repetition
            }
        }
    }

    /// Takes `count` or `for_each` out of a block.
    pub(super) fn take_repetition(&mut self, body: &mut Body) -> Repetition {
        match (take(body, "count"), take(body, "for_each")) {
            (None, None) => Repetition::Once,
            (Some(count), None) => Repetition::Count(count),
            (None, Some(for_each)) => Repetition::ForEach(for_each),
            (Some(_), Some(for_each)) => {
                let detail = "The \"count\" and \"for_each\" meta-arguments are mutually-exclusive, only one should be \
                              used to be explicit about the number of resources to be created.";
                let summary = "Invalid combination of \"count\" and \"for_each\"";
                self.found.push(Diagnostic::new(summary, detail).at(for_each.range()));
                Repetition::ForEach(for_each)
            }
        }
    }

    fn take_lifecycle(&mut self, body: &mut Body, data: bool) -> Lifecycle {
        let blocks: Vec<Block> = body.node.get_blocks("lifecycle").cloned().collect();
        body.node.remove_blocks("lifecycle");
        let mut lifecycle = Lifecycle::default();
        for (at, block) in blocks.iter().enumerate() {
            if at > 0 {
                let detail = "Only one lifecycle block is allowed in a resource.";
                self.found.push(Diagnostic::new("Duplicate lifecycle block", detail).at(body.place(&block.ident)));
            }
            let inner = Body { node: block.body.clone(), source: body.source.clone() };
            self.read_lifecycle(&inner, data, &mut lifecycle);
        }
        lifecycle
    }

    fn read_lifecycle(&mut self, body: &Body, data: bool, lifecycle: &mut Lifecycle) {
        for structure in &body.node {
            let attribute = match structure {
                Structure::Attribute(attribute) => attribute,
                Structure::Block(block) => {
                    match block.ident.as_str() {
                        "precondition" => lifecycle.preconditions.extend(self.read_validation(body, block)),
                        "postcondition" => lifecycle.postconditions.extend(self.read_validation(body, block)),
                        _ => self.unexpected_block(body, block),
                    }
                    continue;
                }
            };
            let value = body.expr(&attribute.value);
            match attribute.key.as_str() {
                name @ ("create_before_destroy"
                | "prevent_destroy"
                | "destroy"
                | "ignore_changes"
                | "replace_triggered_by")
                    if data =>
                {
                    let detail = format!("The lifecycle argument {name:?} is only for managed resources.");
                    let summary = "Invalid data resource lifecycle argument";
                    self.found.push(Diagnostic::new(summary, detail).at(value.range()));
                }
                "create_before_destroy" => lifecycle.create_before_destroy = Some(self.literal_bool(&value)),
                "prevent_destroy" => lifecycle.prevent_destroy = Some(value),
                "destroy" => lifecycle.destroy = Some(value),
                "enabled" => lifecycle.enabled = Some(value),
                "ignore_changes" => lifecycle.ignore_changes = self.read_ignore_changes(&value),
                "replace_triggered_by" => lifecycle.replace_triggered_by = self.read_triggers(&value),
                _ => self.unexpected_attribute(body, attribute),
            }
        }
    }

    fn read_ignore_changes(&mut self, expr: &Expr) -> IgnoreChanges {
        if matches!(&expr.node, Expression::Variable(name) if name.as_str() == "all") {
            return IgnoreChanges::All;
        }
        let Expression::Array(elements) = &expr.node else {
            let detail = "A static list expression is required.";
            self.found.push(Diagnostic::new("Invalid expression", detail).at(expr.range()));
            return IgnoreChanges::None;
        };
        let mut paths = Vec::new();
        for element in elements {
            match attribute_path(element) {
                Some(path) => paths.push(path),
                None => self.unsupported(
                    "this form of ignore_changes",
                    Expr { node: element.clone(), source: expr.source.clone() }.range(),
                ),
            }
        }
        if paths.is_empty() { IgnoreChanges::None } else { IgnoreChanges::Paths(paths) }
    }

    fn read_triggers(&mut self, expr: &Expr) -> Vec<Trigger> {
        let Expression::Array(elements) = &expr.node else {
            let detail = "A static list expression is required.";
            self.found.push(Diagnostic::new("Invalid expression", detail).at(expr.range()));
            return Vec::new();
        };
        let mut triggers = Vec::new();
        for element in elements {
            let element = Expr { node: element.clone(), source: expr.source.clone() };
            match trigger(&element) {
                Some(trigger) => triggers.push(trigger),
                None => self.unsupported("this form of replace_triggered_by", element.range()),
            }
        }
        triggers
    }
}

/// `TYPE.NAME`, `TYPE.NAME[KEY]`, and an attribute behind it.
fn trigger(expr: &Expr) -> Option<Trigger> {
    let Expression::Traversal(traversal) = &expr.node else { return None };
    let Expression::Variable(root) = &traversal.expr else { return None };
    let operators: Vec<&TraversalOperator> = traversal.operators.iter().map(|operator| operator.value()).collect();
    let (reference, used) = Reference::read(root.as_str(), operators.iter().copied()).ok()?;
    if !matches!(reference, Reference::Resource { .. }) {
        return None;
    }
    let (key, rest) = match &operators[used..] {
        [TraversalOperator::Index(key), rest @ ..] => {
            (Some(Expr { node: key.clone(), source: expr.source.clone() }), rest)
        }
        rest => (None, rest),
    };
    let path = rest.iter().map(|operator| step(operator)).collect::<Option<Path>>()?;
    Some(Trigger { reference, key, path, expr: expr.clone() })
}

/// Takes an argument out of a block.
pub(super) fn take(body: &mut Body, key: &str) -> Option<Expr> {
    let attribute = body.node.remove_attribute(key)?;
    Some(Expr { node: attribute.value, source: body.source.clone() })
}

/// `attribute`, `attribute.inner`, `attribute["key"]` or `block[0].attribute`.
fn attribute_path(node: &Expression) -> Option<Path> {
    match node {
        Expression::Variable(name) => Some(vec![Step::Attribute(name.as_str().to_owned())]),
        Expression::Traversal(traversal) => {
            let Expression::Variable(root) = &traversal.expr else { return None };
            let mut path = vec![Step::Attribute(root.as_str().to_owned())];
            for operator in &traversal.operators {
                path.push(step(operator.value())?);
            }
            Some(path)
        }
        _ => None,
    }
}

fn step(operator: &TraversalOperator) -> Option<Step> {
    Some(match operator {
        TraversalOperator::GetAttr(name) => Step::Attribute(name.as_str().to_owned()),
        TraversalOperator::Index(Expression::String(key)) => Step::Key(key.value().to_owned()),
        TraversalOperator::Index(Expression::Number(index)) => {
            Step::Index(usize::try_from(index.value().as_u64()?).ok()?)
        }
        TraversalOperator::LegacyIndex(index) => Step::Index(usize::try_from(*index.value()).ok()?),
        _ => return None,
    })
}
