use hcl_edit::structure::{Attribute, Block, Structure};
use landform_cty::{Type, Value};

use super::Loader;
use crate::defaults::Defaults;
use crate::types::parse_type;
use crate::{Body, Diagnostic, Expr, Local, Output, ProviderConfig, SourceRange, Variable};

/// The blocks of a file.
const TOP_LEVEL: [&str; 14] = [
    "terraform",
    "language",
    "provider",
    "variable",
    "locals",
    "output",
    "module",
    "resource",
    "data",
    "ephemeral",
    "moved",
    "removed",
    "import",
    "check",
];

/// The arguments of a variable and of an output, in the order in which one is suggested.
const VARIABLE: [&str; 8] =
    ["description", "default", "type", "sensitive", "ephemeral", "const", "deprecated", "nullable"];
const OUTPUT: [&str; 6] = ["description", "value", "depends_on", "sensitive", "ephemeral", "deprecated"];

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
        let inner = file.inside(block);
        let range = file.header(block);
        self.check_labels(file, block);
        match (block.ident.as_str(), labels.as_slice()) {
            ("terraform", []) => self.read_terraform(&inner),
            // Its label, if it has one, means nothing.
            ("language", _) => self.read_language(&inner),
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
            ("ephemeral" | "required_providers", _) => {
                self.unsupported(format!("{} block", block.ident.as_str()), range);
            }
            (
                "terraform" | "variable" | "locals" | "output" | "resource" | "provider" | "data" | "module" | "moved"
                | "removed" | "import" | "check",
                _,
            ) => self.wrong_labels(file, block),
            (kind, _) => {
                let hint = crate::did_you_mean(kind, TOP_LEVEL);
                let detail = format!("Blocks of type {kind:?} are not expected here.{hint}");
                self.found.push(Diagnostic::new("Unsupported block type", detail).at(range));
            }
        }
    }

    /// Too few labels, or too many.
    pub(super) fn wrong_labels(&mut self, body: &Body, block: &Block) {
        let (kind, labels) = (block.ident.as_str(), block.labels.len());
        let expected: &[&str] = match kind {
            "resource" | "data" => &["type", "name"],
            "variable" | "output" | "provider" | "module" | "check" => &["name"],
            _ => &[],
        };
        let (count, names) = (expected.len(), expected.join(", "));
        let problem = match expected.get(labels) {
            Some(missing) => Diagnostic::new(
                format!("Missing {missing} for {kind}"),
                format!("All {kind} blocks must have {count} labels ({names})."),
            ),
            None if count == 0 => Diagnostic::new(
                format!("Extraneous label for {kind}"),
                format!("No labels are expected for {kind} blocks."),
            ),
            None => Diagnostic::new(
                format!("Extraneous label for {kind}"),
                format!("Only {count} labels ({names}) are expected for {kind} blocks."),
            ),
        };
        let inner = body.inside(block);
        let range = match block.labels.get(count) {
            Some(extra) => body.place(extra),
            None => inner.opening(),
        };
        self.found.push(problem.at(range));
    }

    pub(super) fn no_labels(&mut self, body: &Body, block: &Block) {
        if !block.labels.is_empty() {
            self.wrong_labels(body, block);
        }
    }

    pub(super) fn unexpected_attribute(&mut self, body: &Body, attribute: &Attribute) {
        self.unexpected_among(body, attribute, &[]);
    }

    /// The same where something else might have been meant: one of these that is not given.
    pub(super) fn unexpected_among(&mut self, body: &Body, attribute: &Attribute, names: &[&str]) {
        let open = names.iter().copied().filter(|name| body.node.get_attribute(name).is_none());
        let hint = crate::did_you_mean(attribute.key.as_str(), open);
        self.found.push(body.unexpected(attribute, &hint));
    }

    pub(super) fn unexpected_block(&mut self, body: &Body, block: &Block) {
        let detail = format!("Blocks of type {:?} are not expected here.", block.ident.as_str());
        self.found.push(Diagnostic::new("Unsupported block type", detail).at(body.header(block)));
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
            constant: false,
            deprecated: None,
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
                        "deprecated" => variable.deprecated = self.deprecation("variable", &value, &range),
                        "const" => variable.constant = self.literal_bool(&value),
                        _ => self.unexpected_among(body, attribute, &VARIABLE),
                    }
                }
                Structure::Block(block) if block.ident.as_str() == "validation" => {
                    variable.validations.extend(self.read_validation(body, block, Some(name)));
                }
                Structure::Block(block) => self.unexpected_block(body, block),
            }
        }
        if let Some(default) = default {
            variable.default = self.default_value(&variable, &default);
        }
        if let Some(earlier) = self.module.variables.insert(name.to_owned(), variable) {
            let detail = format!(
                "A variable named {name:?} was already declared at {}. Variable names must be unique within a module.",
                earlier.range
            );
            self.duplicate("Duplicate variable declaration", detail, range);
        }
    }

    fn deprecation(&mut self, what: &str, given: &Expr, range: &SourceRange) -> Option<String> {
        let reason = self.literal_string(given);
        if reason.as_deref() == Some("") {
            let detail = format!(
                "The \"deprecated\" argument must not be empty, and should provide instructions on how to migrate away from \
                 usage of this deprecated {what}."
            );
            // Shown by the name, which stands behind the block's kind.
            let name = SourceRange { column: range.column + what.len() + 1, ..range.clone() };
            self.found.push(Diagnostic::new("Invalid `deprecated` value", detail).at(name));
        }
        reason
    }

    fn default_value(&mut self, variable: &Variable, default: &Expr) -> Option<Value> {
        let value = self.constant(default)?;
        if value.is_null() && !variable.nullable {
            let detail = "A null default value is not valid when nullable=false.";
            self.found.push(Diagnostic::new("Invalid default value for variable", detail).at(default.range()));
            return None;
        }
        for lost in crate::discarded(default, &variable.ty) {
            let whose = if lost.path.is_empty() { "this variable" } else { &lost.path };
            let detail = format!(
                "The object type for {whose} does not include an attribute named {:?}, so this definition is unused.{}",
                lost.name, lost.hint
            );
            let warning = Diagnostic::new("Object attribute is ignored", detail);
            self.module.warnings.push(warning.at(lost.range));
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

    fn read_locals(&mut self, body: &Body) {
        for structure in &body.node {
            match structure {
                Structure::Attribute(attribute) => {
                    let name = attribute.key.as_str().to_owned();
                    let range = body.place(attribute);
                    let local = Local { name: name.clone(), value: body.expr(&attribute.value), range: range.clone() };
                    if let Some(earlier) = self.module.locals.insert(name.clone(), local) {
                        let detail = format!(
                            "A local value named {name:?} was already defined at {}. Local value names must be unique within \
                             a module.",
                            earlier.range
                        );
                        self.duplicate("Duplicate local value definition", detail, range);
                    }
                }
                Structure::Block(block) => self.block_not_allowed(body, block),
            }
        }
    }

    fn read_output(&mut self, name: &str, body: &Body, range: SourceRange) {
        let mut value = None;
        let (mut description, mut sensitive, mut ephemeral, mut depends_on) = (String::new(), false, false, Vec::new());
        let mut deprecated = None;
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
                        "deprecated" => deprecated = self.deprecation("output", &given, &range),
                        _ => self.unexpected_among(body, attribute, &OUTPUT),
                    }
                }
                Structure::Block(block) if block.ident.as_str() == "precondition" => {
                    preconditions.extend(self.read_validation(body, block, None));
                }
                Structure::Block(block) => self.unexpected_block(body, block),
            }
        }
        let Some(value) = value else { return self.missing("value", body) };
        let name = name.to_owned();
        let output = Output {
            name: name.clone(),
            value,
            description,
            sensitive,
            ephemeral,
            deprecated,
            depends_on,
            preconditions,
            range: range.clone(),
        };
        if let Some(earlier) = self.module.outputs.insert(name.clone(), output) {
            let detail = format!(
                "An output named {name:?} was already defined at {}. Output names must be unique within a module.",
                earlier.range
            );
            self.duplicate("Duplicate output definition", detail, range);
        }
    }

    fn read_provider(&mut self, name: &str, mut body: Body, range: SourceRange) {
        let given = super::resources::take(&mut body, "alias");
        let alias = given.as_ref().and_then(|given| self.literal_string(given));
        if given.is_some() {
            self.check_alias(alias.as_deref());
        }
        let for_each = super::resources::take(&mut body, "for_each");
        if let Some(for_each) = for_each.as_ref().filter(|_| alias.is_none()) {
            let detail = "The for_each argument is allowed only for provider configurations with an alias.";
            let problem = Diagnostic::new("Alias required when using \"for_each\"", detail);
            self.found.push(problem.at(for_each.range()));
        }
        let version = super::resources::take(&mut body, "version").and_then(|given| self.provider_version(&given));
        self.reserved("provider", &body, &["count", "depends_on", "source"], &["lifecycle", "locals"]);
        let same = |other: &&ProviderConfig| other.name == name && other.alias == alias;
        if let Some(earlier) = self.module.providers.iter().find(same) {
            let earlier = &earlier.range;
            let detail = match &alias {
                None => format!(
                    "A default (non-aliased) provider configuration for {name:?} was already given at {earlier}. If multiple \
                     configurations are required, set the \"alias\" argument for alternative configurations."
                ),
                Some(alias) => format!(
                    "A provider configuration for {name:?} with alias {alias:?} was already given at {earlier}. Each \
                     configuration for the same provider must have a distinct alias."
                ),
            };
            self.duplicate("Duplicate provider configuration", detail, range.clone());
        }
        self.module.providers.push(ProviderConfig { name: name.to_owned(), alias, version, for_each, body, range });
    }

    /// As it was said before there was `required_providers`.
    fn provider_version(&mut self, given: &Expr) -> Option<String> {
        let detail = "OpenTofu 0.13 and earlier allowed provider version constraints inside the provider configuration block, \
                      but that is now deprecated and will be removed in a future version of OpenTofu. To silence this \
                      warning, move the provider version constraint into the required_providers block.";
        let warning =
            Diagnostic::new("Version constraints inside provider configuration blocks are deprecated", detail);
        self.module.warnings.push(warning.at(given.range()));
        let version = self.literal_string(given)?;
        if !super::version::is_constraint(&version) {
            let detail = "This string does not use correct version constraint syntax.";
            self.found.push(Diagnostic::new("Invalid version constraint", detail).at(given.range()));
        }
        Some(version)
    }

    /// What stands in a block and is kept for later versions of the language.
    pub(super) fn reserved(&mut self, kind: &str, body: &Body, arguments: &[&str], blocks: &[&str]) {
        for structure in &body.node {
            let (summary, detail, range) = match structure {
                Structure::Attribute(attribute) if arguments.contains(&attribute.key.as_str()) => (
                    format!("Reserved argument name in {kind} block"),
                    format!("The {kind} argument name {:?} is reserved", attribute.key.as_str()),
                    body.place(attribute),
                ),
                Structure::Block(block) if blocks.contains(&block.ident.as_str()) => (
                    format!("Reserved block type name in {kind} block"),
                    format!("The block type name {:?} is reserved", block.ident.as_str()),
                    body.header(block),
                ),
                _ => continue,
            };
            let detail = format!("{detail} for use by OpenTofu in a future version.");
            self.found.push(Diagnostic::new(summary, detail).at(range));
        }
    }

    /// The value of an expression that may not refer to anything.
    pub(super) fn constant(&mut self, expr: &Expr) -> Option<Value> {
        if let Some(problem) = crate::reference::calls_a_function(expr) {
            self.found.push(problem);
            return None;
        }
        match crate::variables::without_references(expr) {
            Ok(value) => Some(value),
            Err(diagnostics) => {
                self.report(diagnostics);
                None
            }
        }
    }

    pub(super) fn literal_string(&mut self, expr: &Expr) -> Option<String> {
        let value = self.constant(expr)?;
        self.as_string(&value, expr)
    }

    pub(super) fn as_string(&mut self, value: &Value, expr: &Expr) -> Option<String> {
        self.suitable(value, &Type::String, expr)?.as_str().map(str::to_owned)
    }

    pub(super) fn literal_bool(&mut self, expr: &Expr) -> bool {
        let value = self.constant(expr).and_then(|value| self.suitable(&value, &Type::Bool, expr));
        value.and_then(|value| value.as_bool()).unwrap_or_default()
    }

    /// A value of the type that is wanted, which null is not.
    fn suitable(&mut self, value: &Value, ty: &Type, expr: &Expr) -> Option<Value> {
        let why = match value.convert(ty) {
            Ok(value) if !value.is_null() => return Some(value),
            Ok(_) => "null value is not allowed".to_owned(),
            Err(error) => error.to_string(),
        };
        let problem = Diagnostic::new("Unsuitable value type", format!("Unsuitable value: {why}"));
        self.found.push(problem.at(expr.range()));
        None
    }

    /// An argument that has to be there.
    pub(super) fn required(&mut self, body: &Body, name: &str) -> Option<Expr> {
        let given = body.argument(name);
        if given.is_none() {
            self.missing(name, body);
        }
        given
    }

    pub(super) fn missing(&mut self, name: &str, body: &Body) {
        self.found.push(body.missing(name));
    }
}
