//! The blocks `terraform` and `language`: what a module needs before it can be read or run.

use std::collections::BTreeMap;

use hcl_edit::expr::{Expression, Object, ObjectKey, TraversalOperator};
use hcl_edit::structure::{Attribute, Block, Structure};
use landform_cty::Type;

use super::Loader;
use super::references::bare_name;
use super::version::{OPENTOFU_VERSION, allows_before_language_block, is_constraint};
use crate::{Body, Diagnostic, Expr, Ignored, RequiredProvider, RequiredVersion, SourceRange};

/// The only one there is.
const EDITION: &str = "tofu2024";

impl Loader {
    pub(super) fn read_terraform(&mut self, body: &Body) {
        for structure in &body.node {
            match structure {
                Structure::Attribute(attribute) => match attribute.key.as_str() {
                    "required_version" => self.read_required_version(body, attribute),
                    // Words of Terraform that have no effect.
                    "experiments" | "language" => {}
                    _ => self.unexpected_attribute(body, attribute),
                },
                Structure::Block(block) => match block.ident.as_str() {
                    "required_providers" => {
                        let inner = body.inside(block);
                        self.no_labels(body, block);
                        self.read_required_providers(&inner, body.place(&block.ident));
                    }
                    kind @ ("backend" | "cloud") => {
                        let construct = format!("{kind} block");
                        self.module.ignored.push(Ignored { construct, range: body.place(&block.ident) });
                    }
                    kind @ ("encryption" | "provider_meta") => {
                        self.unsupported(format!("terraform {kind} block"), body.place(&block.ident));
                    }
                    _ => self.unexpected_block(body, block),
                },
            }
        }
    }

    /// In files that other tools read, too, it is for these.
    fn read_required_version(&mut self, body: &Body, attribute: &Attribute) {
        let given = body.expr(&attribute.value);
        let range = body.place(attribute);
        let binding = range.file.ends_with(".tofu") || range.file.ends_with(".tofu.json");
        let constraint = match binding {
            true => self.version_constraint(&given),
            false => given.as_literal().map(str::to_owned),
        };
        let version = |constraint| RequiredVersion { constraint, range, binding };
        self.module.required_versions.extend(constraint.map(version));
    }

    fn version_constraint(&mut self, given: &Expr) -> Option<String> {
        let value = self.constant(given)?;
        if value.is_null() {
            return None;
        }
        self.as_string(&value, given)
    }

    pub(super) fn read_language(&mut self, body: &Body) {
        for structure in &body.node {
            match structure {
                Structure::Attribute(attribute) => match attribute.key.as_str() {
                    "edition" => self.read_edition(body, attribute),
                    "experiments" => self.unsupported("language experiments", body.place(attribute)),
                    _ => self.unexpected_attribute(body, attribute),
                },
                Structure::Block(block) if block.ident.as_str() == "compatible_with" => {
                    if let Some(attribute) = block.body.get_attribute("opentofu") {
                        self.read_compatible_version(body, attribute);
                    }
                }
                Structure::Block(block) => self.unexpected_block(body, block),
            }
        }
    }

    fn read_edition(&mut self, body: &Body, attribute: &Attribute) {
        let problem = match &attribute.value {
            Expression::Variable(edition) if edition.as_str() == EDITION => return,
            Expression::Variable(edition) => {
                let newer = edition.as_str().starts_with("tofu") && edition.as_str() > EDITION;
                let which = if newer { "a newer" } else { "a different" };
                let detail = format!(
                    "OpenTofu v{OPENTOFU_VERSION} only supports language edition {EDITION}. This module requires {which} \
                     version of OpenTofu CLI."
                );
                Diagnostic::new("Unsupported language edition", detail)
            }
            _ => {
                let detail = format!(
                    "The \"edition\" argument expects a bare language edition keyword. OpenTofu {OPENTOFU_VERSION} supports \
                     only language edition {EDITION}, which is the default."
                );
                Diagnostic::new("Invalid language edition", detail)
            }
        };
        self.found.push(problem.at(body.expr(&attribute.value).range()));
    }

    fn read_compatible_version(&mut self, body: &Body, attribute: &Attribute) {
        let given = body.expr(&attribute.value);
        let Some(constraint) = self.version_constraint(&given) else { return };
        if allows_before_language_block(&constraint) {
            let detail = "The compatible_with block was added in OpenTofu v1.12.0, so any constraint specified this way \
                          should exclude earlier versions of OpenTofu, such as by including \">= 0.12.0\".\n\nIf your module \
                          must be compatible with earlier versions of OpenTofu, use the required_version argument in a \
                          \"terraform\" block in a file named with the .tofu suffix, which is an older way to specify \
                          OpenTofu version constraints.";
            let warning = Diagnostic::new("Ineffective version constraint", detail);
            self.module.warnings.push(warning.at(given.range()));
        }
        let range = body.place(attribute);
        self.module.required_versions.push(RequiredVersion { constraint, range, binding: true });
    }

    fn read_required_providers(&mut self, body: &Body, range: SourceRange) {
        if let Some(earlier) = self.required_at.replace(range.clone()) {
            let detail = format!(
                "A module may have only one required providers configuration. The required providers were previously \
                 configured at {earlier}."
            );
            self.duplicate("Duplicate required providers configuration", detail, range);
            return;
        }
        for structure in &body.node {
            match structure {
                Structure::Attribute(attribute) => self.read_required_provider(body, attribute),
                Structure::Block(block) => self.block_not_allowed(body, block),
            }
        }
    }

    fn read_required_provider(&mut self, body: &Body, attribute: &Attribute) {
        let (name, range) = (attribute.key.as_str().to_owned(), body.place(attribute));
        let wrong = name.starts_with('-') || name.ends_with('-') || name.contains("--") || name.contains('_');
        if wrong {
            let detail = format!(
                "{name} is an invalid provider local name: must contain only letters, digits, and dashes, and may not use \
                 leading or trailing dashes"
            );
            return self.found.push(Diagnostic::new("Invalid provider local name", detail).at(range));
        }
        let required = match &attribute.value {
            Expression::Object(object) => self.read_requirement(body, &name, object),
            version => {
                let given = body.expr(version);
                let Some(value) = self.constant(&given) else { return };
                let text = value.convert(&Type::String).ok().and_then(|text| text.as_str().map(str::to_owned));
                if text.is_none() {
                    let detail = "required_providers entries must be strings or objects.";
                    self.found.push(Diagnostic::new("Invalid required_providers object", detail).at(given.range()));
                }
                RequiredProvider { version: text, ..RequiredProvider::default() }
            }
        };
        self.module.required_providers.insert(name, required);
    }

    fn read_requirement(&mut self, body: &Body, name: &str, object: &Object) -> RequiredProvider {
        let mut required = RequiredProvider::default();
        for (key, value) in object {
            let key = match key {
                ObjectKey::Ident(key) => key.as_str(),
                ObjectKey::Expression(Expression::String(key)) => key.value().as_str(),
                ObjectKey::Expression(key) => {
                    self.constant(&body.expr(key));
                    continue;
                }
            };
            let value = body.expr(value.expr());
            match key {
                "source" => required.source = self.source_address(&value),
                "version" => {
                    let version = self.requirement_text(&value, "Invalid version constraint", "Version");
                    if version.as_deref().is_some_and(|version| !is_constraint(version)) {
                        let detail = "This string does not use correct version constraint syntax.";
                        self.found.push(Diagnostic::new("Invalid version constraint", detail).at(value.range()));
                    }
                    required.version = version;
                }
                "configuration_aliases" => required.aliases = self.read_aliases(&value, name),
                _ => {
                    let detail = "required_providers objects can only contain \"version\", \"source\" and \
                                  \"configuration_aliases\" attributes. To configure a provider, use a \"provider\" block.";
                    self.found.push(Diagnostic::new("Invalid required_providers object", detail).at(value.range()));
                    break;
                }
            }
        }
        required
    }

    fn source_address(&mut self, value: &Expr) -> Option<String> {
        let source = self.requirement_text(value, "Invalid source", "Source")?;
        if source.split('/').count() > 3 {
            let detail = "The \"source\" attribute must be in the format \"[hostname/][namespace/]name\"";
            self.found.push(Diagnostic::new("Invalid provider source string", detail).at(value.range()));
            return None;
        }
        Some(source)
    }

    /// A string as it is written; nothing is calculated for it.
    fn requirement_text(&mut self, value: &Expr, summary: &str, what: &str) -> Option<String> {
        let text = value.as_literal().map(str::to_owned);
        if text.is_none() {
            let detail = format!("{what} must be specified as a string.");
            self.found.push(Diagnostic::new(summary, detail).at(value.range()));
        }
        text
    }

    /// `configuration_aliases = [NAME.ALIAS]`: what the callers of a module must pass to it.
    fn read_aliases(&mut self, list: &Expr, name: &str) -> BTreeMap<String, SourceRange> {
        let mut aliases = BTreeMap::new();
        let Expression::Array(elements) = &list.node else {
            self.found
                .push(Diagnostic::new("Invalid expression", "A static list expression is required.").at(list.range()));
            return aliases;
        };
        for element in elements {
            let element = Expr { node: element.clone(), source: list.source.clone() };
            let named = match &element.node {
                Expression::Traversal(traversal) => {
                    match (bare_name(&traversal.expr), traversal.operators.as_slice()) {
                        (Some(root), [alias]) => match alias.value() {
                            TraversalOperator::GetAttr(alias) => Some((root, Some(alias.as_str()))),
                            _ => None,
                        },
                        _ => None,
                    }
                }
                node => bare_name(node).map(|root| (root, None)),
            };
            match named {
                Some((root, Some(alias))) if root == name => {
                    aliases.insert(alias.to_owned(), element.range());
                }
                Some((root, _)) if root != name => {
                    let detail = format!(
                        "Configuration aliases must be prefixed with the provider name. Expected {name:?}, but found \
                         {root:?}."
                    );
                    let problem = Diagnostic::new("Invalid configuration_aliases value", detail);
                    self.found.push(problem.at(element.range()));
                }
                Some(_) => {}
                None => self.not_static(&element),
            }
        }
        aliases
    }

    pub(super) fn block_not_allowed(&mut self, body: &Body, block: &Block) {
        let problem =
            Diagnostic::new(format!("Unexpected {:?} block", block.ident.as_str()), "Blocks are not allowed here.");
        self.found.push(problem.at(body.place(&block.ident)));
    }
}
