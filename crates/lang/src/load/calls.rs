use std::collections::BTreeMap;

use hcl_edit::Span;
use hcl_edit::expr::{Expression, ObjectKey};
use hcl_edit::structure::{Block, Structure};
use landform_cty::Value;

use super::Loader;
use super::references::ProviderName;
use super::resources::take;
use crate::constant::{Constants, is_constant};
use crate::{
    Body, Budget, Check, Diagnostic, Expr, Import, ImportBy, ModuleCall, Moved, Removed, Repetition, SourceRange,
    evaluate,
};

/// What a call says of providers, by the module's own names for them.
#[derive(Default)]
struct Passed {
    names: BTreeMap<ProviderName, ProviderName>,
    keys: BTreeMap<ProviderName, Expr>,
    places: BTreeMap<ProviderName, [SourceRange; 2]>,
}

impl Loader {
    pub(super) fn read_call(&mut self, name: &str, mut body: Body, range: SourceRange) {
        let repetition = self.take_call_repetition(&mut body);
        let (source, depends_on) = (take(&mut body, "source"), take(&mut body, "depends_on"));
        let providers = take(&mut body, "providers");
        if let Some(version) = take(&mut body, "version") {
            self.unsupported("module version", version.range());
        }
        let Some(source) = source else { return self.missing("source", &body) };
        self.sources.push((name.to_owned(), source.clone()));
        let depends_on = depends_on.map(|given| self.read_depends_on(&given)).unwrap_or_default();
        let passed = providers.map(|given| self.read_passed_providers(&given)).unwrap_or_default();
        let mut inputs = BTreeMap::new();
        for structure in &body.node {
            match structure {
                Structure::Attribute(attribute) => {
                    inputs.insert(attribute.key.as_str().to_owned(), body.expr(&attribute.value));
                }
                Structure::Block(block) if block.ident.as_str() != "locals" => self.unexpected_block(&body, block),
                Structure::Block(_) => {}
            }
        }
        self.reserved("module", &body, &[], &["locals"]);
        let call = ModuleCall {
            name: name.to_owned(),
            // It may be made of locals, which may follow.
            source: String::new(),
            repetition,
            depends_on,
            providers: passed.names,
            provider_keys: passed.keys,
            provider_places: passed.places,
            inputs,
            range: range.clone(),
        };
        if let Some(earlier) = self.module.calls.insert(name.to_owned(), call) {
            let detail = format!(
                "A module call named {name:?} was already defined at {}. Module calls must have unique names within a module.",
                earlier.range
            );
            self.duplicate("Duplicate module call", detail, range);
        }
    }

    /// Finds out where modules are. What depends on inputs is not known yet.
    pub(super) fn read_sources(&mut self) {
        for (name, expr) in std::mem::take(&mut self.sources) {
            let place = self.prefix.trim_end_matches('/');
            let place = if place.is_empty() { "." } else { place };
            let scope =
                Constants { module: &self.module, folder: &self.module.folder, place, variables: None, within: None };
            let value = match is_constant(&self.module, &expr) {
                true => evaluate(&expr, &scope, &mut Budget::default()).ok(),
                false => None,
            };
            match value.as_ref().and_then(Value::as_str) {
                Some(source) if source.starts_with("./") || source.starts_with("../") => {
                    let source = source.to_owned();
                    self.module.calls.entry(name).and_modify(|call| call.source = source);
                }
                Some(_) => self.unsupported("remote module source", expr.range()),
                None => self.unsupported("module source by inputs", expr.range()),
            }
        }
    }

    /// `count`, `for_each`, or a `lifecycle` block with `enabled`, which is all that the one of a module may have.
    fn take_call_repetition(&mut self, body: &mut Body) -> Repetition {
        let (count, for_each) = (take(body, "count"), take(body, "for_each"));
        let blocks: Vec<Block> = body.node.get_blocks("lifecycle").cloned().collect();
        body.node.remove_blocks("lifecycle");
        let mut enabled = None;
        for block in &blocks {
            let inner = body.inside(block);
            self.only(&inner, &["enabled"], &[]);
            enabled = inner.node.get_attribute("enabled").map(|given| inner.expr(&given.value));
        }
        self.repetition([count, enabled, for_each], "should be", "module instances")
    }

    /// `providers = { NAME = NAME, NAME.ALIAS = NAME.ALIAS, NAME = NAME.ALIAS[KEY] }`
    fn read_passed_providers(&mut self, expr: &Expr) -> Passed {
        let mut passed = Passed::default();
        let Expression::Object(object) = &expr.node else {
            let problem = Diagnostic::new("Invalid expression", "A static map expression is required.");
            self.found.push(problem.at(expr.range()));
            return passed;
        };
        let part = |node: Expression| Expr { node, source: expr.source.clone() };
        for (key, value) in object {
            let (key, place) = match key {
                ObjectKey::Ident(name) => {
                    (Some(((name.as_str().to_owned(), None), None)), expr.source.range(name.span()))
                }
                ObjectKey::Expression(key) => {
                    let key = part(key.clone());
                    (self.read_provider_reference(&key), self.provider_place(&key))
                }
            };
            if let Some((_, Some(key))) = &key {
                let detail = "Instance keys are not allowed on the left side of a provider configuration assignment.";
                let problem = Diagnostic::new("Invalid module provider configuration", detail);
                self.found.push(problem.at(key.range()));
            }
            let given = part(value.expr().clone());
            let value = self.read_provider_reference(&given);
            if let (Some((own, _)), Some((theirs, key))) = (key, value) {
                self.chosen.push(("module", theirs.clone(), key.clone(), given.range()));
                passed.keys.extend(key.map(|key| (own.clone(), key)));
                passed.places.insert(own.clone(), [place, self.provider_place(&given)]);
                passed.names.insert(own, theirs);
            }
        }
        passed
    }

    pub(super) fn read_moved(&mut self, body: &Body, range: SourceRange) {
        let [from, to] = ["from", "to"].map(|name| {
            let end = self.required(body, name).and_then(|given| self.moved_end(&given));
            if end.is_none() {
                let detail = format!("The resource referenced by the {name:?} attribute is not allowed to be moved.");
                self.found.push(Diagnostic::new("Invalid \"moved\" address", detail).at(range.clone()));
            }
            end
        });
        self.only(body, &["from", "to"], &[]);
        let (Some(from), Some(to)) = (from, to) else { return };
        if from.is_module != to.is_module {
            let detail =
                "The \"from\" and \"to\" addresses must either both refer to resources or both refer to modules.";
            return self.found.push(Diagnostic::new("Invalid \"moved\" addresses", detail).at(range));
        }
        self.module.moved.push(Moved { from: from.text(), to: to.text(), range });
    }

    pub(super) fn read_removed(&mut self, body: &Body, range: SourceRange) {
        let from = self.required(body, "from").and_then(|given| self.removed_end(&given));
        self.only(body, &["from"], &["lifecycle"]);
        let (mut destroy, mut earlier) = (None, None);
        for block in body.node.get_blocks("lifecycle") {
            let at = body.header(block);
            if let Some(earlier) = &earlier {
                let detail = format!("The removed block already has a lifecycle block at {earlier}.");
                self.found.push(Diagnostic::new("Duplicate lifecycle block", detail).at(at));
                continue;
            }
            earlier = Some(at);
            let inner = body.inside(block);
            self.only(&inner, &["destroy"], &[]);
            if let Some(given) = inner.node.get_attribute("destroy") {
                destroy = Some(self.literal_bool(&inner.expr(&given.value)));
            }
        }
        if let Some(from) = from {
            self.module.removed.push(Removed { from: from.text(), destroy, range });
        }
    }

    pub(super) fn read_import(&mut self, body: &Body, range: SourceRange) {
        self.only(body, &["to", "id", "identity", "for_each", "provider"], &[]);
        let to = self.required(body, "to").map(|given| self.import_target(&given));
        if matches!(to, Some(None)) {
            return;
        }
        let part = |name: &str| body.node.get_attribute(name);
        let given = |name: &str| part(name).map(|given| body.expr(&given.value));
        let by = match (given("id"), given("identity")) {
            (Some(id), None) => ImportBy::Id(id),
            (None, Some(identity)) => ImportBy::Identity(identity),
            (Some(_), Some(_)) => {
                let detail = "Only one of 'id' or 'identity' can be specified in an import block. 'id' identifies the \
                              resource instance by its ID, while 'identity' identifies the resource instance by its Resource \
                              Identity. Choose one method to identify the resource instance to import.";
                let both = ["id", "identity"].iter().filter_map(|name| Some(body.place(part(name)?)));
                let problem = Diagnostic::new("Conflicting import arguments", detail);
                return self.found.push(problem.at(SourceRange::around(both).unwrap_or(range)));
            }
            (None, None) => {
                let detail = "One of 'id' or 'identity' must be specified in an import block to identify the resource \
                              instance to import.";
                return self.found.push(Diagnostic::new("Missing required import argument", detail).at(range));
            }
        };
        let provider = given("provider").and_then(|given| self.read_provider_reference(&given));
        let provider = match provider {
            Some((_, Some(key))) => return self.unsupported("provider key of an import", key.range()),
            provider => provider.map(|(name, _)| name),
        };
        if let Some(Some(to)) = to {
            self.add_import(Import { to, by, for_each: given("for_each"), provider, range });
        }
    }

    /// Two blocks about one object are a mistake that shows here, unless their addresses are still to be evaluated.
    fn add_import(&mut self, import: Import) {
        let same = |other: &&Import| import.constant_target().is_some_and(|to| other.constant_target() == Some(to));
        match self.module.imports.iter().find(same) {
            Some(other) => {
                let problem = Diagnostic::duplicate_import(&import.constant_target().unwrap_or_default(), &other.range);
                self.found.push(problem.at(import.range));
            }
            None => self.module.imports.push(import),
        }
    }

    pub(super) fn read_check(&mut self, name: &str, body: &Body, range: SourceRange) {
        let mut assertions = Vec::new();
        for structure in &body.node {
            match structure {
                Structure::Attribute(attribute) => self.unexpected_attribute(body, attribute),
                Structure::Block(block) => match block.ident.as_str() {
                    "assert" => assertions.extend(self.read_validation(body, block, None)),
                    "data" => self.read_check_data(name, body, block),
                    _ => self.unexpected_block(body, block),
                },
            }
        }
        if assertions.is_empty() {
            let detail = "Check blocks must have at least one assert block.";
            self.found.push(Diagnostic::new("Zero assert blocks", detail).at(range.clone()));
        }
        let check = Check { name: name.to_owned(), assertions, range: range.clone() };
        if let Some(earlier) = self.module.checks.insert(name.to_owned(), check) {
            let detail = format!(
                "A check block named {name:?} was already declared at {}. Check blocks must be unique within each module.",
                earlier.range
            );
            self.duplicate(format!("Duplicate check {name:?} configuration"), detail, range);
        }
    }

    /// The one data source that a check may have: once, and with a lifecycle that is the check's.
    fn read_check_data(&mut self, check: &str, body: &Body, block: &Block) {
        let range = body.header(block);
        let labels: Vec<&str> = block.labels.iter().map(|label| label.as_str()).collect();
        let [resource_type, name] = labels[..] else { return self.wrong_labels(body, block) };
        self.check_labels(body, block);
        let own = |resource: &crate::Resource| resource.check.as_deref() == Some(check);
        if let Some(earlier) = self.module.resources.iter().find(|resource| own(resource)) {
            let detail = format!("This check block already has a data resource defined at {}.", earlier.range);
            self.found.push(Diagnostic::new("Multiple data resource blocks", detail).at(range));
            return;
        }
        for meta in ["count", "for_each"] {
            if let Some(given) = block.body.get_attribute(meta) {
                let detail = format!("The {meta:?} meta-argument is not supported within nested data blocks.");
                let problem = Diagnostic::new(format!("Invalid {meta:?} attribute"), detail);
                self.found.push(problem.at(body.place(given)));
            }
        }
        for block in block.body.get_blocks("lifecycle") {
            let detail = "Nested data blocks do not support \"lifecycle\" blocks as the lifecycle is managed by the \
                          containing block.";
            self.found.push(Diagnostic::new("Invalid lifecycle block", detail).at(body.place(&block.ident)));
        }
        let inner = body.inside(block);
        self.read_resource_of(true, [resource_type, name], inner, range, true);
        if let Some(resource) = self.module.resources.last_mut() {
            resource.check = Some(check.to_owned());
            self.scoped.insert((resource.resource_type.clone(), resource.name.clone()), check.to_owned());
        }
    }

    /// Reports whatever else stands in a block.
    fn only(&mut self, body: &Body, attributes: &[&str], blocks: &[&str]) {
        for structure in &body.node {
            match structure {
                Structure::Attribute(attribute) if attributes.contains(&attribute.key.as_str()) => {}
                Structure::Block(block) if blocks.contains(&block.ident.as_str()) => {}
                Structure::Attribute(attribute) => self.unexpected_attribute(body, attribute),
                // What is done where an object goes is done by programs.
                Structure::Block(block) if matches!(block.ident.as_str(), "provisioner" | "connection") => {
                    self.unsupported(format!("{} block", block.ident.as_str()), body.place(&block.ident));
                }
                Structure::Block(block) => self.unexpected_block(body, block),
            }
        }
    }
}
