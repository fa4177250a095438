use hcl_edit::expr::{Expression, ObjectKey, TraversalOperator};
use hcl_edit::structure::{Block, Structure};

use super::Loader;
use super::resources::take;
use crate::{Body, Check, Diagnostic, Expr, Import, ImportBy, ModuleCall, Moved, Removed, Repetition, SourceRange};

impl Loader {
    pub(super) fn read_call(&mut self, name: &str, mut body: Body, range: SourceRange) {
        self.check_name("module instance name", name, &range);
        let repetition = self.take_call_repetition(&mut body);
        let (source, depends_on) = (take(&mut body, "source"), take(&mut body, "depends_on"));
        let providers = take(&mut body, "providers");
        if let Some(version) = take(&mut body, "version") {
            self.unsupported("module version", version.range());
        }
        let Some(source) = source else { return self.missing("source", range) };
        if source.as_literal().is_none() {
            self.unsupported("module source that is no plain string", source.range());
        }
        let local = source.as_literal().is_some_and(|source| source.starts_with("./") || source.starts_with("../"));
        if !local {
            self.unsupported("remote module source", source.range());
        }
        let depends_on = depends_on.map(|given| self.read_depends_on(&given)).unwrap_or_default();
        let providers = providers.map(|given| self.read_passed_providers(&given)).unwrap_or_default();
        let mut inputs = std::collections::BTreeMap::new();
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
            source: source.as_literal().unwrap_or_default().to_owned(),
            repetition,
            depends_on,
            providers,
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

    /// `count`, `for_each`, or a `lifecycle` block with `enabled`, which is all that the one of a module may have.
    fn take_call_repetition(&mut self, body: &mut Body) -> Repetition {
        let (count, for_each) = (take(body, "count"), take(body, "for_each"));
        let blocks: Vec<Block> = body.node.get_blocks("lifecycle").cloned().collect();
        body.node.remove_blocks("lifecycle");
        let mut enabled = None;
        for block in &blocks {
            let inner = Body { node: block.body.clone(), source: body.source.clone() };
            self.only(&inner, &["enabled"], &[]);
            enabled = inner.node.get_attribute("enabled").map(|given| inner.expr(&given.value));
        }
        self.repetition([count, enabled, for_each], "should be", "module instances")
    }

    /// `providers = { NAME = NAME, NAME.ALIAS = NAME.ALIAS }`
    fn read_passed_providers(
        &mut self,
        expr: &Expr,
    ) -> std::collections::BTreeMap<(String, Option<String>), (String, Option<String>)> {
        let mut passed = std::collections::BTreeMap::new();
        let Expression::Object(object) = &expr.node else {
            let problem = Diagnostic::new("Invalid expression", "A static map expression is required.");
            self.found.push(problem.at(expr.range()));
            return passed;
        };
        for (key, value) in object {
            let key = match key {
                ObjectKey::Ident(name) => Some((name.as_str().to_owned(), None)),
                ObjectKey::Expression(key) => {
                    self.read_provider_reference(&Expr { node: key.clone(), source: expr.source.clone() })
                }
            };
            let value = self.read_provider_reference(&Expr { node: value.expr().clone(), source: expr.source.clone() });
            if let (Some(key), Some(value)) = (key, value) {
                passed.insert(key, value);
            }
        }
        passed
    }

    pub(super) fn read_moved(&mut self, body: &Body, range: SourceRange) {
        let from = self.address_argument(body, "from", &range);
        let to = self.address_argument(body, "to", &range);
        self.only(body, &["from", "to"], &[]);
        if let (Some(from), Some(to)) = (from, to) {
            self.module.moved.push(Moved { from, to, range });
        }
    }

    pub(super) fn read_removed(&mut self, body: &Body, range: SourceRange) {
        let from = self.address_argument(body, "from", &range).filter(|from| self.is_removable(body, from));
        self.only(body, &["from"], &["lifecycle"]);
        let mut destroy = None;
        for block in body.node.get_blocks("lifecycle") {
            let inner = Body { node: block.body.clone(), source: body.source.clone() };
            self.only(&inner, &["destroy"], &[]);
            if let Some(given) = inner.node.get_attribute("destroy") {
                destroy = Some(self.literal_bool(&inner.expr(&given.value)));
            }
        }
        if let Some(from) = from {
            self.module.removed.push(Removed { from, destroy, range });
        }
    }

    /// Resources and modules are removed as a whole, and data sources not at all.
    fn is_removable(&mut self, body: &Body, from: &str) -> bool {
        let parts: Vec<&str> = from.split('.').collect();
        let modules = parts.chunks(2).take_while(|pair| pair[0] == "module").count();
        let (modules, resource) = parts.split_at((modules * 2).min(parts.len()));
        let (summary, detail) = if modules.iter().any(|part| part.contains('[')) {
            let detail = "Module address cannot be a module instance (e.g. \"module.a[0]\"), it must be a module instead \
                          (e.g. \"module.a\").";
            ("Module instance address with keys is not allowed", detail)
        } else if resource.first() == Some(&"data") {
            let detail = "Data sources cannot be destroyed, and therefore, 'removed' blocks are not allowed to target them. \
                          To remove data sources from the state, you should remove the data source block from the \
                          configuration.";
            ("Data source address is not allowed", detail)
        } else if resource.len() > 2 || resource.iter().any(|part| part.contains('[')) {
            let detail = "Resource address cannot be a resource instance (e.g. \"null_resource.a[0]\"), it must be a \
                          resource instead (e.g. \"null_resource.a\").";
            ("Resource instance address with keys is not allowed", detail)
        } else {
            return true;
        };
        let place = body.node.get_attribute("from").map(|given| body.expr(&given.value).range());
        let problem = Diagnostic::new(summary, detail);
        self.found.push(match place {
            Some(place) => problem.at(place),
            None => problem,
        });
        false
    }

    pub(super) fn read_import(&mut self, body: &Body, range: SourceRange) {
        // Which of several configurations of a provider is to read the object.
        if let Some(provider) = body.node.get_attribute("provider") {
            self.unsupported("import provider", body.place(provider));
        }
        self.only(body, &["to", "id", "identity", "for_each", "provider"], &[]);
        let part = |name: &str| body.node.get_attribute(name).map(|given| body.expr(&given.value));
        let by = match (part("id"), part("identity")) {
            (Some(id), None) => ImportBy::Id(id),
            (None, Some(identity)) => ImportBy::Identity(identity),
            (Some(_), Some(_)) => {
                let detail = "Only one of 'id' or 'identity' can be specified in an import block. 'id' identifies the \
                              resource instance by its ID, while 'identity' identifies the resource instance by its Resource \
                              Identity. Choose one method to identify the resource instance to import.";
                return self.found.push(Diagnostic::new("Conflicting import arguments", detail).at(range));
            }
            (None, None) => {
                let detail = "One of 'id' or 'identity' must be specified in an import block to identify the resource \
                              instance to import.";
                return self.found.push(Diagnostic::new("Missing required import argument", detail).at(range));
            }
        };
        match part("to") {
            Some(to) => match import_target(&to) {
                Some(to) => self.add_import(Import { to, by, for_each: part("for_each"), range }),
                None => self.unsupported("this form of import", to.range()),
            },
            None => self.missing("to", range),
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
        self.check_name("check block name", name, &range);
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
        let [resource_type, name] = labels[..] else { return self.wrong_labels("data", labels.len(), range) };
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
        let inner = Body { node: block.body.clone(), source: body.source.clone() };
        self.read_resource(true, [resource_type, name], inner, range);
        if let Some(resource) = self.module.resources.last_mut() {
            resource.check = Some(check.to_owned());
            self.scoped.insert((resource.resource_type.clone(), resource.name.clone()), check.to_owned());
        }
    }

    fn address_argument(&mut self, body: &Body, name: &str, range: &SourceRange) -> Option<String> {
        let Some(given) = body.node.get_attribute(name) else {
            self.missing(name, range.clone());
            return None;
        };
        let text = address_text(&given.value);
        if text.is_none() {
            self.unsupported(format!("this form of {name}"), body.place(given));
        }
        text
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

/// An address as it is written in `moved` and `removed` blocks, in the form in which a state has it.
fn address_text(node: &Expression) -> Option<String> {
    let Expression::Traversal(traversal) = node else { return None };
    let Expression::Variable(root) = &traversal.expr else { return None };
    let mut text = root.as_str().to_owned();
    for operator in &traversal.operators {
        match operator.value() {
            TraversalOperator::GetAttr(name) => text.push_str(&format!(".{}", name.as_str())),
            TraversalOperator::Index(Expression::String(key)) => {
                let quoted = serde_json::Value::from(key.value().as_str()).to_string();
                text.push_str(&format!("[{}]", quoted.replace("${", "$${").replace("%{", "%%{")));
            }
            TraversalOperator::Index(Expression::Number(index)) => text.push_str(&format!("[{}]", index.value())),
            TraversalOperator::LegacyIndex(index) => text.push_str(&format!("[{}]", index.value())),
            _ => return None,
        }
    }
    Some(text)
}

/// The parts of an import's address.
fn import_target(expr: &Expr) -> Option<Vec<(String, Option<Expr>)>> {
    let Expression::Traversal(traversal) = &expr.node else { return None };
    let Expression::Variable(root) = &traversal.expr else { return None };
    let mut parts: Vec<(String, Option<Expr>)> = Vec::new();
    let mut first = Some(root.as_str().to_owned());
    for operator in &traversal.operators {
        match (operator.value(), first.take()) {
            (TraversalOperator::GetAttr(name), Some(first)) => parts.push((format!("{first}.{}", name.as_str()), None)),
            (TraversalOperator::GetAttr(name), None) => first = Some(name.as_str().to_owned()),
            (TraversalOperator::Index(key), None) => {
                let key = Expr { node: key.clone(), source: expr.source.clone() };
                parts.last_mut()?.1.replace(key).is_none().then_some(())?;
            }
            _ => return None,
        }
    }
    (first.is_none() && !parts.is_empty()).then_some(parts)
}
