use hcl_edit::expr::{Expression, TraversalOperator};
use hcl_edit::structure::{Block, Structure};
use landform_cty::{Path, Step};

use super::Loader;
use crate::{Body, Diagnostic, Expr, IgnoreChanges, Lifecycle, Reference, Repetition, Resource, SourceRange, Trigger};

/// The arguments of a lifecycle, in the order in which one is suggested.
const LIFECYCLE: [&str; 6] =
    ["create_before_destroy", "prevent_destroy", "destroy", "ignore_changes", "replace_triggered_by", "enabled"];

impl Loader {
    pub(super) fn read_resource(&mut self, data: bool, labels: [&str; 2], body: Body, range: SourceRange) {
        self.read_resource_of(data, labels, body, range, false);
    }

    /// `within_check`: it is the data source of a check.
    pub(super) fn read_resource_of(
        &mut self,
        data: bool,
        labels: [&str; 2],
        mut body: Body,
        range: SourceRange,
        within_check: bool,
    ) {
        self.reserved(if data { "data" } else { "resource" }, &body, &[], &["locals"]);
        let (count, for_each) = (take(&mut body, "count"), take(&mut body, "for_each"));
        let (provider, depends_on) = (take(&mut body, "provider"), take(&mut body, "depends_on"));
        let mut lifecycle = self.take_lifecycle(&mut body, data);
        let what = if data { "data sources" } else { "resources" };
        let repetition = self.repetition([count, lifecycle.enabled.take(), for_each], "may be", what);
        for construct in ["provisioner", "connection", "_"] {
            for block in body.node.get_blocks(construct) {
                let range = body.place(&block.ident);
                self.module.unsupported.push(crate::Unsupported { construct: format!("{construct} block"), range });
            }
        }
        let provider = provider.and_then(|given| {
            let (name, key) = self.read_provider_reference(&given)?;
            self.chosen.push(("resource", name.clone(), key.clone(), given.range()));
            Some((name, key))
        });
        let (provider, provider_key) = provider.map_or((None, None), |(name, key)| (Some(name), key));
        let depends_on = depends_on.map(|given| self.read_depends_on(&given)).unwrap_or_default();
        let [resource_type, name] = labels.map(str::to_owned);
        if data && resource_type == "terraform_remote_state" {
            // It is built in, and reads a state by any of OpenTofu's backends.
            self.unsupported("data source terraform_remote_state", range.clone());
        }
        if let Some(earlier) = self.declared.insert((data, resource_type.clone(), name.clone()), range.clone()) {
            let (kind, what) = if data { ("data", "data resource") } else { ("resource", "resource") };
            let everywhere = if within_check { ", including within check blocks" } else { "" };
            let detail = format!(
                "A {resource_type} {what} named {name:?} was already declared at {earlier}. Resource names must be unique \
                 per type in each module{everywhere}."
            );
            self.duplicate(format!("Duplicate {kind} {resource_type:?} configuration"), detail, range.clone());
        }
        self.module.resources.push(Resource {
            data,
            resource_type,
            name,
            repetition,
            lifecycle,
            provider,
            provider_key,
            depends_on,
            body,
            check: None,
            range,
        });
    }

    /// How often something is there, by the one of `count`, `enabled` and `for_each` that is given.
    pub(super) fn repetition(&mut self, given: [Option<Expr>; 3], only: &str, what: &str) -> Repetition {
        let named = ["\"count\"", "\"enabled\"", "\"for_each\""];
        let there: Vec<(&str, &Expr)> =
            named.into_iter().zip(&given).filter_map(|(name, expr)| Some((name, expr.as_ref()?))).collect();
        let names = match there[..] {
            [(first, _), (second, _)] => format!("{first} and {second}"),
            [(first, _), (second, _), (third, _)] => format!("{first}, {second}, and {third}"),
            _ => String::new(),
        };
        let place = SourceRange::around(there.iter().map(|(_, expr)| expr.range()));
        if let Some(place) = place.filter(|_| !names.is_empty()) {
            let detail = format!(
                "The {names} meta-arguments are mutually-exclusive. Only one {only} used to be explicit about the number of \
                 {what} to be created."
            );
            self.found.push(Diagnostic::new(format!("Invalid combination of {names}"), detail).at(place));
        }
        match given {
            [Some(count), _, _] => Repetition::Count(count),
            [None, _, Some(for_each)] => Repetition::ForEach(for_each),
            [None, Some(enabled), None] => Repetition::Enabled(enabled),
            [None, None, None] => Repetition::Once,
        }
    }

    fn take_lifecycle(&mut self, body: &mut Body, data: bool) -> Lifecycle {
        let blocks: Vec<Block> = body.node.get_blocks("lifecycle").cloned().collect();
        body.node.remove_blocks("lifecycle");
        let mut lifecycle = Lifecycle::default();
        for (at, block) in blocks.iter().enumerate() {
            if at > 0 {
                let earlier = body.header(&blocks[0]);
                let detail = format!("This resource already has a lifecycle block at {earlier}.");
                self.found.push(Diagnostic::new("Duplicate lifecycle block", detail).at(body.place(&block.ident)));
            }
            self.no_labels(body, block);
            let inner = body.inside(block);
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
                        "precondition" => lifecycle.preconditions.extend(self.read_validation(body, block, None)),
                        "postcondition" => lifecycle.postconditions.extend(self.read_validation(body, block, None)),
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
                    let detail = format!(
                        "The lifecycle argument {name:?} is defined only for managed resources (\"resource\" blocks), and is \
                         not valid for data resources."
                    );
                    let summary = "Invalid data resource lifecycle argument";
                    self.found.push(Diagnostic::new(summary, detail).at(value.range()));
                }
                "create_before_destroy" => lifecycle.create_before_destroy = Some(self.literal_bool(&value)),
                "prevent_destroy" => lifecycle.prevent_destroy = Some(value),
                "destroy" => lifecycle.destroy = Some(value),
                "enabled" => lifecycle.enabled = Some(value),
                "ignore_changes" => lifecycle.ignore_changes = self.read_ignore_changes(&value),
                "replace_triggered_by" => lifecycle.replace_triggered_by = self.read_triggers(&value),
                _ => self.unexpected_among(body, attribute, &LIFECYCLE),
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
            let element = Expr { node: element.clone(), source: expr.source.clone() };
            if element.as_literal() == Some("*") {
                let detail = "The [\"*\"] form of ignore_changes wildcard is was deprecated and is now invalid. Use \
                              \"ignore_changes = all\" to ignore changes to all attributes.";
                self.found.push(Diagnostic::new("Invalid ignore_changes wildcard", detail).at(element.range()));
                continue;
            }
            let Some(element) = self.without_quotes(element) else { continue };
            match attribute_path(&element.node) {
                Some(path) => paths.push((path, element.range())),
                None => self.not_static(&element),
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
            let wrong = self.wrong_in_trigger(&element);
            match trigger(&element) {
                Some(trigger) if !wrong => triggers.push(trigger),
                _ if wrong => {}
                _ => {
                    let detail = "Unexpected expression found in replace_triggered_by.";
                    let problem = Diagnostic::new("Invalid replace_triggered_by expression", detail);
                    self.found.push(problem.at(element.range()));
                }
            }
        }
        triggers
    }

    fn wrong_in_trigger(&mut self, element: &Expr) -> bool {
        let named = crate::references(element);
        let mut note = |summary: &str, detail: &str| {
            self.found.push(Diagnostic::new(summary, detail).at(element.range()));
        };
        let before = note_others(&named, &mut note);
        let resource = |reference: &Reference| matches!(reference, Reference::Resource { .. } | Reference::Data { .. });
        let missing = !named.iter().any(resource);
        if missing {
            let detail = "Missing resource reference in replace_triggered_by expression.";
            note("Invalid replace_triggered_by expression", detail);
        } else if !before && has_splat(&element.node) {
            note("Invalid replace_triggered_by expression", "Unexpected expression found in replace_triggered_by.");
            return true;
        }
        before || missing
    }
}

/// Notes what a trigger may not refer to, and returns whether there was something.
fn note_others(named: &[Reference], note: &mut dyn FnMut(&str, &str)) -> bool {
    let mut any = false;
    for reference in named {
        match reference {
            Reference::Resource { .. } | Reference::Data { .. } | Reference::CountIndex | Reference::EachKey => {
                continue;
            }
            Reference::EachValue => note(
                "Invalid each reference in replace_triggered_by expression",
                "Only each.key may be used in replace_triggered_by.",
            ),
            _ => note(
                "Invalid reference in replace_triggered_by expression",
                "Only resources, count.index, and each.key may be used in replace_triggered_by.",
            ),
        }
        any = true;
    }
    any
}

fn has_splat(node: &Expression) -> bool {
    let Expression::Traversal(traversal) = node else { return false };
    let splat = |operator: &TraversalOperator| {
        matches!(operator, TraversalOperator::AttrSplat(_) | TraversalOperator::FullSplat(_))
    };
    traversal.operators.iter().any(|operator| splat(operator.value()))
}

/// `TYPE.NAME`, `TYPE.NAME[KEY]`, and an attribute behind it.
fn trigger(expr: &Expr) -> Option<Trigger> {
    let Expression::Traversal(traversal) = &expr.node else { return None };
    let Expression::Variable(root) = &traversal.expr else { return None };
    let operators: Vec<&TraversalOperator> = traversal.operators.iter().map(|operator| operator.value()).collect();
    let (reference, used) = Reference::read(root.as_str(), operators.iter().copied()).ok()?;
    if !matches!(reference, Reference::Resource { .. } | Reference::Data { .. }) {
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
