use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use hcl_edit::expr::Expression;
use landform_cty::{Type, Value};

use crate::defaults::Defaults;
use crate::load::KeptFiles;
use crate::{Body, Diagnostic, Expr, Mention, Reference, SourceRange};

/// One folder of configuration.
#[derive(Clone, Debug)]
pub struct Module {
    pub folder: PathBuf,
    /// What it was read from, whatever becomes of the folder since.
    pub files: Arc<KeptFiles>,
    pub variables: BTreeMap<String, Variable>,
    pub locals: BTreeMap<String, Local>,
    pub outputs: BTreeMap<String, Output>,
    /// Managed ones and data sources, in the order of address.
    pub resources: Vec<Resource>,
    pub calls: BTreeMap<String, ModuleCall>,
    pub moved: Vec<Moved>,
    pub removed: Vec<Removed>,
    pub imports: Vec<Import>,
    pub checks: BTreeMap<String, Check>,
    pub providers: Vec<ProviderConfig>,
    pub required_providers: BTreeMap<String, RequiredProvider>,
    /// Constraints on the version of the tool itself.
    pub required_versions: Vec<RequiredVersion>,
    pub ignored: Vec<Ignored>,
    pub warnings: Vec<Diagnostic>,
    /// What expressions mention of resources and data sources, with where they do: whether there is such a thing only the
    /// provider's schema can tell.
    pub mentions: Vec<(Mention, SourceRange)>,
    /// Where the body of a block refers to the block itself, by the block's address.
    pub self_references: Vec<(String, SourceRange)>,
    /// What is wrong with what expressions refer to. Evaluating them finds it too; who does not evaluate looks here.
    pub problems: Vec<Diagnostic>,
    /// What is not done here exactly as OpenTofu does it. Unless this is empty the rest is not to be relied upon.
    pub unsupported: Vec<Unsupported>,
}

#[derive(Clone, Debug)]
pub struct Variable {
    pub name: String,
    /// The type constraint; `Dynamic` for `any` and for none.
    pub ty: Type,
    /// Whether a type was written: text from the command line is read as an expression unless the type is primitive
    /// or missing.
    pub typed: bool,
    /// The defaults of optional attributes inside the type.
    pub defaults: Defaults,
    pub default: Option<Value>,
    pub description: String,
    pub sensitive: bool,
    pub ephemeral: bool,
    pub nullable: bool,
    /// Whether it is known before anything is evaluated.
    pub constant: bool,
    /// What whoever sets it is told.
    pub deprecated: Option<String>,
    pub validations: Vec<Validation>,
    pub range: SourceRange,
}

/// What is named in a `depends_on`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    pub reference: Reference,
    /// The one instance that is named. It stands for all of them, but a plan shows it as it is written.
    pub key: Option<String>,
    pub range: SourceRange,
}

impl fmt::Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.reference, self.key.as_deref().unwrap_or_default())
    }
}

/// A condition that must hold, and what to say where it does not: of a variable, a resource, an output or a check.
#[derive(Clone, Debug)]
pub struct Validation {
    pub condition: Expr,
    pub error_message: Expr,
    pub range: SourceRange,
}

#[derive(Clone, Debug)]
pub struct Local {
    pub name: String,
    pub value: Expr,
    pub range: SourceRange,
}

#[derive(Clone, Debug)]
pub struct Output {
    pub name: String,
    pub value: Expr,
    pub description: String,
    pub sensitive: bool,
    pub ephemeral: bool,
    /// What whoever uses it is told.
    pub deprecated: Option<String>,
    pub depends_on: Vec<Dependency>,
    pub preconditions: Vec<Validation>,
    pub range: SourceRange,
}

/// How often a resource or a module is there.
#[derive(Clone, Debug, Default)]
pub enum Repetition {
    #[default]
    Once,
    Count(Expr),
    ForEach(Expr),
    /// Once or not at all: `lifecycle { enabled = … }`.
    Enabled(Expr),
}

impl Repetition {
    pub fn expr(&self) -> Option<&Expr> {
        match self {
            Repetition::Once => None,
            Repetition::Count(expr) | Repetition::ForEach(expr) | Repetition::Enabled(expr) => Some(expr),
        }
    }
}

/// A `resource` or a `data` block.
#[derive(Clone, Debug)]
pub struct Resource {
    /// A data source: read, never changed.
    pub data: bool,
    pub resource_type: String,
    pub name: String,
    pub repetition: Repetition,
    pub lifecycle: Lifecycle,
    /// The provider that the block names, if it names one: its local name and alias.
    pub provider: Option<(String, Option<String>)>,
    /// Which of the configurations of a `provider` block with `for_each` that is.
    pub provider_key: Option<Expr>,
    pub depends_on: Vec<Dependency>,
    /// What belongs to the provider: the block without `count` and the like.
    pub body: Body,
    /// The check that a data source is a part of: nothing else may refer to it, and it fails nothing else.
    pub check: Option<String>,
    pub range: SourceRange,
}

impl Resource {
    /// `TYPE.NAME`, or `data.TYPE.NAME`.
    pub fn address(&self) -> String {
        let prefix = if self.data { "data." } else { "" };
        format!("{prefix}{}.{}", self.resource_type, self.name)
    }

    /// The local name of the provider in charge: the one named, or the first word of the resource's type.
    pub fn provider_name(&self) -> &str {
        match &self.provider {
            Some((name, _)) => name,
            None => self.resource_type.split('_').next().unwrap_or(&self.resource_type),
        }
    }
}

/// What a `lifecycle` block says.
#[derive(Clone, Debug, Default)]
pub struct Lifecycle {
    pub create_before_destroy: Option<bool>,
    pub prevent_destroy: Option<Expr>,
    /// `false` leaves an object that is not wanted any longer where it is.
    pub destroy: Option<Expr>,
    pub enabled: Option<Expr>,
    pub ignore_changes: IgnoreChanges,
    pub replace_triggered_by: Vec<Trigger>,
    pub preconditions: Vec<Validation>,
    pub postconditions: Vec<Validation>,
}

impl Lifecycle {
    pub fn has_conditions(&self) -> bool {
        !self.preconditions.is_empty() || !self.postconditions.is_empty()
    }
}

/// What a `replace_triggered_by` looks at: a resource, one of its instances, or a part of it.
#[derive(Clone, Debug)]
pub struct Trigger {
    pub reference: Reference,
    pub key: Option<Expr>,
    pub path: landform_cty::Path,
    /// The whole of it, as it is written.
    pub expr: Expr,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum IgnoreChanges {
    #[default]
    None,
    All,
    Paths(Vec<(landform_cty::Path, SourceRange)>),
}

/// A `module` block.
#[derive(Clone, Debug)]
pub struct ModuleCall {
    pub name: String,
    pub source: String,
    pub repetition: Repetition,
    pub depends_on: Vec<Dependency>,
    /// The module's own name and alias for a provider, and what the caller means by it.
    pub providers: BTreeMap<(String, Option<String>), (String, Option<String>)>,
    /// Which of the configurations of a `provider` block with `for_each` is passed, by the module's own name for it.
    pub provider_keys: BTreeMap<(String, Option<String>), Expr>,
    /// Where the two names stand, by the module's own: there, and at the caller's.
    pub provider_places: BTreeMap<(String, Option<String>), [SourceRange; 2]>,
    pub inputs: BTreeMap<String, Expr>,
    pub range: SourceRange,
}

/// A `moved` block. Addresses are written as in the configuration, relative to the module.
#[derive(Clone, Debug)]
pub struct Moved {
    pub from: String,
    pub to: String,
    pub range: SourceRange,
}

/// A `removed` block.
#[derive(Clone, Debug)]
pub struct Removed {
    pub from: String,
    /// Whether the object goes too, or is only forgotten. Without a word about it the object stays.
    pub destroy: Option<bool>,
    pub range: SourceRange,
}

/// An `import` block.
#[derive(Clone, Debug)]
pub struct Import {
    /// An address, in parts (`module.NAME`, `TYPE.NAME`), each with the expression for its key.
    pub to: Vec<(String, Option<Expr>)>,
    pub by: ImportBy,
    pub for_each: Option<Expr>,
    /// The provider that it names. Where the resource is there, that one's counts.
    pub provider: Option<(String, Option<String>)>,
    pub range: SourceRange,
}

impl Import {
    /// The address, if nothing has to be evaluated to know it.
    pub fn constant_target(&self) -> Option<String> {
        let part = |(name, key): &(String, Option<Expr>)| match key.as_ref().map(|key| &key.node) {
            None => Some(name.clone()),
            Some(Expression::String(key)) => Some(format!("{name}[{}]", serde_json::Value::from(key.as_str()))),
            Some(Expression::Number(index)) => Some(format!("{name}[{}]", index.value())),
            Some(_) => None,
        };
        let parts: Option<Vec<String>> = self.to.iter().map(part).collect();
        parts.filter(|_| self.for_each.is_none()).map(|parts| parts.join("."))
    }
}

/// How an `import` block names the object that it is about.
#[derive(Clone, Debug)]
pub enum ImportBy {
    Id(Expr),
    /// The attributes that tell the object from all others of its type.
    Identity(Expr),
}

impl ImportBy {
    pub fn expr(&self) -> &Expr {
        match self {
            ImportBy::Id(expr) | ImportBy::Identity(expr) => expr,
        }
    }
}

/// A `check` block.
#[derive(Clone, Debug)]
pub struct Check {
    pub name: String,
    pub assertions: Vec<Validation>,
    pub range: SourceRange,
}

/// A `provider` block.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    pub name: String,
    pub alias: Option<String>,
    /// A constraint on the provider's version, which belongs into `required_providers` today.
    pub version: Option<String>,
    /// What it is repeated over, each with a configuration of its own.
    pub for_each: Option<Expr>,
    pub body: Body,
    pub range: SourceRange,
}

impl ProviderConfig {
    /// Whether it configures nothing. In a module it then stands for a provider that is passed, if one is, as in the days
    /// before `required_providers`.
    pub fn is_empty(&self) -> bool {
        self.body.is_empty() && self.version.is_none()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequiredProvider {
    pub source: Option<String>,
    pub version: Option<String>,
    /// The configurations that callers must pass (`configuration_aliases`), and where each is named.
    pub aliases: BTreeMap<String, SourceRange>,
}

/// A constraint on the version of the tool itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredVersion {
    pub constraint: String,
    pub range: SourceRange,
    /// Whether OpenTofu heeds it: what a `.tf` file requires is meant for Terraform.
    pub binding: bool,
}

/// A block that has no effect here, because Landform sees to it itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    pub construct: String,
    pub range: SourceRange,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    pub construct: String,
    pub range: SourceRange,
}
