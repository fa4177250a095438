use std::collections::BTreeMap;
use std::path::PathBuf;

use landform_cty::{Type, Value};

use crate::defaults::Defaults;
use crate::{Body, Expr, Reference, SourceRange};

/// One folder of configuration.
#[derive(Clone, Debug)]
pub struct Module {
    pub folder: PathBuf,
    pub variables: BTreeMap<String, Variable>,
    pub locals: BTreeMap<String, Local>,
    pub outputs: BTreeMap<String, Output>,
    /// In the order of address.
    pub resources: Vec<Resource>,
    pub providers: Vec<ProviderConfig>,
    pub required_providers: BTreeMap<String, RequiredProvider>,
    /// Constraints on the version of the tool itself.
    pub required_versions: Vec<String>,
    pub ignored: Vec<Ignored>,
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
    pub validations: Vec<Validation>,
    pub range: SourceRange,
}

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
    pub depends_on: Vec<Reference>,
    pub range: SourceRange,
}

#[derive(Clone, Debug)]
pub struct Resource {
    pub resource_type: String,
    pub name: String,
    pub count: Option<Expr>,
    /// The provider that the block names, if it names one: its local name and alias.
    pub provider: Option<(String, Option<String>)>,
    pub depends_on: Vec<Reference>,
    /// What belongs to the provider: the block without `count` and the like.
    pub body: Body,
    pub range: SourceRange,
}

impl Resource {
    pub fn address(&self) -> String {
        format!("{}.{}", self.resource_type, self.name)
    }

    /// The local name of the provider in charge: the one named, or the first word of the resource's type.
    pub fn provider_name(&self) -> &str {
        match &self.provider {
            Some((name, _)) => name,
            None => self.resource_type.split('_').next().unwrap_or(&self.resource_type),
        }
    }
}

/// A `provider` block.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    pub name: String,
    pub alias: Option<String>,
    pub body: Body,
    pub range: SourceRange,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequiredProvider {
    pub source: Option<String>,
    pub version: Option<String>,
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
