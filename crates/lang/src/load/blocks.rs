use hcl_edit::expr::{Expression, ObjectKey, TraversalOperator};
use hcl_edit::structure::{Attribute, Block, Structure};
use landform_cty::{Type, Value};

use super::Loader;
use crate::defaults::Defaults;
use crate::types::parse_type;
use crate::{
    Body, Budget, Diagnostic, Expr, Ignored, Local, NoReferences, Output, ProviderConfig, Reference, RequiredProvider,
    SourceRange, Validation, Variable, evaluate,
};

impl Loader {
    pub(super) fn read_body(&mut self, body: &Body) {
        for structure in &body.node {
            match structure {
                Structure::Attribute(attribute) => self.unexpected_attribute(body, attribute),
                Structure::Block(block) => self.read_block(body, block),
            }
        }
    }

    fn read_block(&mut self, file: &Body, block: &Block) {
        let labels: Vec<&str> = block.labels.iter().map(|label| label.as_str()).collect();
        let inner = Body { node: block.body.clone(), source: file.source.clone() };
        let range = file.place(&block.ident);
        match (block.ident.as_str(), labels.as_slice()) {
            ("terraform", []) => self.read_terraform(&inner),
            ("variable", [name]) => self.read_variable(name, &inner, range),
            ("locals", []) => self.read_locals(&inner),
            ("output", [name]) => self.read_output(name, &inner, range),
            ("resource", [resource_type, name]) => self.read_resource(false, [resource_type, name], inner, range),
            ("data", [resource_type, name]) => self.read_resource(true, [resource_type, name], inner, range),
            ("module", [name]) => self.read_call(name, inner, range),
            ("moved", []) => self.read_moved(&inner, range),
            ("removed", []) => self.read_removed(&inner, range),
            ("import", []) => self.read_import(&inner, range),
            ("check", [name]) => self.read_check(name, &inner, range),
            ("provider", [name]) => self.read_provider(name, inner, range),
            ("ephemeral" | "language" | "required_providers", _) => {
                self.unsupported(format!("{} block", block.ident.as_str()), range);
            }
            (
                kind @ ("terraform" | "variable" | "locals" | "output" | "resource" | "provider" | "data" | "module"
                | "moved" | "removed" | "import" | "check"),
                labels,
            ) => self.wrong_labels(kind, labels.len(), range),
            (kind, _) => {
                let detail = format!("Blocks of type {kind:?} are not expected here.");
                self.found.push(Diagnostic::new("Unsupported block type", detail).at(range));
            }
        }
    }

    pub(super) fn wrong_labels(&mut self, kind: &str, labels: usize, range: SourceRange) {
        let detail = format!("A {kind:?} block does not have {labels} label(s).");
        self.found.push(Diagnostic::new("Wrong number of block labels", detail).at(range));
    }

    pub(super) fn unexpected_attribute(&mut self, body: &Body, attribute: &Attribute) {
        self.found.push(body.unexpected(attribute, ""));
    }

    pub(super) fn unexpected_block(&mut self, body: &Body, block: &Block) {
        let detail = format!("Blocks of type {:?} are not expected here.", block.ident.as_str());
        self.found.push(Diagnostic::new("Unsupported block type", detail).at(body.place(&block.ident)));
    }

    fn read_terraform(&mut self, body: &Body) {
        for structure in &body.node {
            match structure {
                Structure::Attribute(attribute) if attribute.key.as_str() == "required_version" => {
                    if let Some(version) = self.literal_string(&body.expr(&attribute.value)) {
                        self.module.required_versions.push(version);
                    }
                }
                Structure::Attribute(attribute) => {
                    self.unsupported(format!("terraform {}", attribute.key.as_str()), body.place(attribute));
                }
                Structure::Block(block) => match block.ident.as_str() {
                    "required_providers" => {
                        let inner = Body { node: block.body.clone(), source: body.source.clone() };
                        self.read_required_providers(&inner);
                    }
                    kind @ ("backend" | "cloud") => {
                        let construct = format!("{kind} block");
                        self.module.ignored.push(Ignored { construct, range: body.place(&block.ident) });
                    }
                    kind => self.unsupported(format!("terraform {kind} block"), body.place(&block.ident)),
                },
            }
        }
    }

    fn read_required_providers(&mut self, body: &Body) {
        for structure in &body.node {
            let attribute = match structure {
                Structure::Attribute(attribute) => attribute,
                Structure::Block(block) => {
                    self.unexpected_block(body, block);
                    continue;
                }
            };
            let name = attribute.key.as_str().to_owned();
            let mut required = RequiredProvider::default();
            match &attribute.value {
                Expression::Object(object) => {
                    for (key, value) in object {
                        let key = match key {
                            ObjectKey::Ident(key) => key.as_str(),
                            ObjectKey::Expression(Expression::String(key)) => key.value().as_str(),
                            ObjectKey::Expression(_) => "",
                        };
                        let value = body.expr(value.expr());
                        match key {
                            "source" => required.source = self.literal_string(&value),
                            "version" => required.version = self.literal_string(&value),
                            other => self.unsupported(format!("required_providers {other}"), value.range()),
                        }
                    }
                }
                version => required.version = self.literal_string(&body.expr(version)),
            }
            if self.module.required_providers.insert(name.clone(), required).is_some() {
                self.duplicate("required provider", &name, body.place(attribute));
            }
        }
    }

    fn read_variable(&mut self, name: &str, body: &Body, range: SourceRange) {
        let mut variable = Variable {
            name: name.to_owned(),
            ty: Type::Dynamic,
            typed: false,
            defaults: Defaults::default(),
            default: None,
            description: String::new(),
            sensitive: false,
            ephemeral: false,
            nullable: true,
            validations: Vec::new(),
            range: range.clone(),
        };
        let mut default = None;
        for structure in &body.node {
            match structure {
                Structure::Attribute(attribute) => {
                    let value = body.expr(&attribute.value);
                    match attribute.key.as_str() {
                        "type" => match parse_type(&value) {
                            Ok((ty, defaults)) => {
                                (variable.ty, variable.defaults, variable.typed) = (ty, defaults, true);
                            }
                            Err(diagnostics) => self.report(diagnostics),
                        },
                        "default" => default = Some(value),
                        "description" => variable.description = self.literal_string(&value).unwrap_or_default(),
                        "sensitive" => variable.sensitive = self.literal_bool(&value),
                        "ephemeral" => variable.ephemeral = self.literal_bool(&value),
                        "nullable" => variable.nullable = self.literal_bool(&value),
                        "deprecated" | "const" => {
                            self.unsupported(format!("variable {}", attribute.key.as_str()), value.range());
                        }
                        _ => self.unexpected_attribute(body, attribute),
                    }
                }
                Structure::Block(block) if block.ident.as_str() == "validation" => {
                    variable.validations.extend(self.read_validation(body, block));
                }
                Structure::Block(block) => self.unexpected_block(body, block),
            }
        }
        if let Some(default) = default {
            variable.default = self.default_value(&variable, &default);
        }
        if self.module.variables.insert(name.to_owned(), variable).is_some() {
            self.duplicate("variable", name, range);
        }
    }

    fn default_value(&mut self, variable: &Variable, default: &Expr) -> Option<Value> {
        let value = self.constant(default)?;
        if value.is_null() && !variable.nullable {
            let detail = "A null default value is not valid when nullable=false.";
            self.found.push(Diagnostic::new("Invalid default value for variable", detail).at(default.range()));
            return None;
        }
        match variable.defaults.apply(&value).convert(&variable.ty) {
            Ok(value) => Some(value),
            Err(error) => {
                let detail =
                    format!("This default value is not compatible with the variable's type constraint: {error}.");
                self.found.push(Diagnostic::new("Invalid default value for variable", detail).at(default.range()));
                None
            }
        }
    }

    pub(super) fn read_validation(&mut self, body: &Body, block: &Block) -> Option<Validation> {
        let range = body.place(&block.ident);
        for structure in &block.body {
            match structure {
                Structure::Attribute(attribute) if matches!(attribute.key.as_str(), "condition" | "error_message") => {}
                Structure::Attribute(attribute) => self.unexpected_attribute(body, attribute),
                Structure::Block(inner) => self.unexpected_block(body, inner),
            }
        }
        let part = |name: &str| block.body.get_attribute(name).map(|attribute| body.expr(&attribute.value));
        match (part("condition"), part("error_message")) {
            (Some(condition), Some(error_message)) => Some(Validation { condition, error_message, range }),
            (condition, _) => {
                let missing = if condition.is_none() { "condition" } else { "error_message" };
                self.missing(missing, range);
                None
            }
        }
    }

    fn read_locals(&mut self, body: &Body) {
        for structure in &body.node {
            match structure {
                Structure::Attribute(attribute) => {
                    let name = attribute.key.as_str().to_owned();
                    let range = body.place(attribute);
                    let local = Local { name: name.clone(), value: body.expr(&attribute.value), range: range.clone() };
                    if self.module.locals.insert(name.clone(), local).is_some() {
                        self.duplicate("local value", &name, range);
                    }
                }
                Structure::Block(block) => self.unexpected_block(body, block),
            }
        }
    }

    fn read_output(&mut self, name: &str, body: &Body, range: SourceRange) {
        let mut value = None;
        let (mut description, mut sensitive, mut ephemeral, mut depends_on) = (String::new(), false, false, Vec::new());
        let mut preconditions = Vec::new();
        for structure in &body.node {
            match structure {
                Structure::Attribute(attribute) => {
                    let given = body.expr(&attribute.value);
                    match attribute.key.as_str() {
                        "value" => value = Some(given),
                        "description" => description = self.literal_string(&given).unwrap_or_default(),
                        "sensitive" => sensitive = self.literal_bool(&given),
                        "ephemeral" => ephemeral = self.literal_bool(&given),
                        "depends_on" => depends_on = self.read_depends_on(&given),
                        "deprecated" => self.unsupported("output deprecated", given.range()),
                        _ => self.unexpected_attribute(body, attribute),
                    }
                }
                Structure::Block(block) if block.ident.as_str() == "precondition" => {
                    preconditions.extend(self.read_validation(body, block));
                }
                Structure::Block(block) => self.unexpected_block(body, block),
            }
        }
        let Some(value) = value else { return self.missing("value", range) };
        let name = name.to_owned();
        let output = Output {
            name: name.clone(),
            value,
            description,
            sensitive,
            ephemeral,
            depends_on,
            preconditions,
            range: range.clone(),
        };
        if self.module.outputs.insert(name.clone(), output).is_some() {
            self.duplicate("output", &name, range);
        }
    }

    fn read_provider(&mut self, name: &str, mut body: Body, range: SourceRange) {
        let alias = body.node.remove_attribute("alias");
        let alias =
            alias.and_then(|alias| self.literal_string(&Expr { node: alias.value, source: body.source.clone() }));
        for construct in ["version", "for_each"] {
            if let Some(attribute) = body.node.remove_attribute(construct) {
                self.unsupported(format!("provider {construct}"), body.place(&attribute));
            }
        }
        if self.module.providers.iter().any(|other| other.name == name && other.alias == alias) {
            self.duplicate("provider configuration", name, range.clone());
        }
        self.module.providers.push(ProviderConfig { name: name.to_owned(), alias, body, range });
    }

    /// `provider = NAME` or `provider = NAME.ALIAS`
    pub(super) fn read_provider_reference(&mut self, expr: &Expr) -> Option<(String, Option<String>)> {
        match &expr.node {
            Expression::Variable(name) => return Some((name.as_str().to_owned(), None)),
            Expression::Traversal(traversal) => {
                let operators: Vec<&TraversalOperator> =
                    traversal.operators.iter().map(|operator| operator.value()).collect();
                if let (Expression::Variable(name), [TraversalOperator::GetAttr(alias)]) =
                    (&traversal.expr, operators.as_slice())
                {
                    return Some((name.as_str().to_owned(), Some(alias.as_str().to_owned())));
                }
            }
            _ => {}
        }
        self.unsupported("this form of provider reference", expr.range());
        None
    }

    pub(super) fn read_depends_on(&mut self, expr: &Expr) -> Vec<Reference> {
        let Expression::Array(elements) = &expr.node else {
            self.found
                .push(Diagnostic::new("Invalid expression", "A static list expression is required.").at(expr.range()));
            return Vec::new();
        };
        let mut references = Vec::new();
        for element in elements {
            let element = Expr { node: element.clone(), source: expr.source.clone() };
            match crate::references(&element).as_slice() {
                [
                    reference @ (Reference::Resource { .. }
                    | Reference::Data { .. }
                    | Reference::Module { output: None, .. }),
                ] if is_bare(&element.node) => {
                    references.push(reference.clone());
                }
                _ => self.unsupported("this form of depends_on", element.range()),
            }
        }
        references
    }

    /// The value of an expression that may not refer to anything.
    fn constant(&mut self, expr: &Expr) -> Option<Value> {
        match evaluate(expr, &NoReferences, &mut Budget::default()) {
            Ok(value) => Some(value),
            Err(diagnostics) => {
                self.report(diagnostics);
                None
            }
        }
    }

    pub(super) fn literal_string(&mut self, expr: &Expr) -> Option<String> {
        let value = self.constant(expr)?;
        match value.convert(&Type::String).ok().as_ref().and_then(Value::as_str) {
            Some(text) => Some(text.to_owned()),
            None => {
                let detail = "A string is required here.";
                self.found.push(Diagnostic::new("Unsuitable value type", detail).at(expr.range()));
                None
            }
        }
    }

    pub(super) fn literal_bool(&mut self, expr: &Expr) -> bool {
        let Some(value) = self.constant(expr) else { return false };
        let bool = value.convert(&Type::Bool).ok().and_then(|value| value.as_bool());
        if bool.is_none() {
            let detail = "Unsuitable value: a bool is required.";
            self.found.push(Diagnostic::new("Unsuitable value type", detail).at(expr.range()));
        }
        bool.unwrap_or_default()
    }

    pub(super) fn missing(&mut self, name: &str, range: SourceRange) {
        let detail = format!("The argument {name:?} is required, but no definition was found.");
        self.found.push(Diagnostic::new("Missing required argument", detail).at(range));
    }

    pub(super) fn duplicate(&mut self, kind: &str, name: &str, range: SourceRange) {
        let detail = format!("A {kind} named {name:?} was already declared. Names must be unique within a module.");
        self.found.push(Diagnostic::new(format!("Duplicate {kind}"), detail).at(range));
    }
}

/// `TYPE.NAME`, `data.TYPE.NAME` or `module.NAME`, and nothing behind it.
fn is_bare(node: &Expression) -> bool {
    let Expression::Traversal(traversal) = node else { return false };
    let Expression::Variable(root) = &traversal.expr else { return false };
    traversal.operators.len() == if matches!(root.as_str(), "data" | "resource") { 2 } else { 1 }
}
