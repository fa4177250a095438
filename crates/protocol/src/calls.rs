use landform_cty::Value;

/// A message of a provider about a call. An error in it means that the call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub summary: String,
    pub detail: String,
    /// Where in the configuration, if the provider said.
    pub attribute: Option<Path>,
}

impl Diagnostic {
    pub fn error(summary: impl Into<String>, detail: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Error, summary: summary.into(), detail: detail.into(), attribute: None }
    }

    pub fn warning(summary: impl Into<String>, detail: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(summary, detail) }
    }

    /// The same, about one attribute.
    pub fn at(self, attribute: &str) -> Diagnostic {
        Diagnostic { attribute: Some(vec![Step::Attribute(attribute.into())]), ..self }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Error,
    Warning,
}

pub type Diagnostics = Vec<Diagnostic>;

/// A place inside a value, from the outside in.
pub type Path = Vec<Step>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    Attribute(String),
    Key(String),
    Index(i64),
}

/// Bytes that belong to the provider: kept with the object, returned unchanged, never looked into.
pub type Private = Vec<u8>;

#[derive(Clone, Debug)]
pub struct ValidateResourceConfig {
    pub type_name: String,
    pub config: Value,
}

#[derive(Clone, Debug)]
pub struct Configure {
    pub terraform_version: String,
    pub config: Value,
}

/// The stored attributes go as JSON, since only the provider knows their old type.
#[derive(Clone, Debug)]
pub struct UpgradeResourceState {
    pub type_name: String,
    pub version: i64,
    pub attributes_json: Vec<u8>,
}

/// An identity goes as JSON for the same reason.
#[derive(Clone, Debug)]
pub struct UpgradeResourceIdentity {
    pub type_name: String,
    pub version: i64,
    pub identity_json: Vec<u8>,
}

/// What tells an object from all others of its type, for good; of the type that its own schema implies. Most types of
/// resources have none.
pub type Identity = Option<Value>;

#[derive(Clone, Debug)]
pub struct ReadResource {
    pub type_name: String,
    pub current: Value,
    pub private: Private,
    pub identity: Identity,
}

#[derive(Clone, Debug)]
pub struct ReadAnswer {
    /// Null: the object is gone.
    pub new_state: Value,
    pub private: Private,
    pub identity: Identity,
    pub diagnostics: Diagnostics,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PlanResourceChange {
    pub type_name: String,
    pub prior: Value,
    pub proposed: Value,
    pub config: Value,
    pub prior_private: Private,
    pub prior_identity: Identity,
}

#[derive(Clone, Debug)]
pub struct PlanAnswer {
    pub planned: Value,
    pub requires_replace: Vec<Path>,
    pub planned_private: Private,
    pub planned_identity: Identity,
    pub legacy_type_system: bool,
    pub diagnostics: Diagnostics,
}

#[derive(Clone, Debug)]
pub struct ApplyResourceChange {
    pub type_name: String,
    pub prior: Value,
    pub planned: Value,
    pub config: Value,
    pub planned_private: Private,
    pub planned_identity: Identity,
}

#[derive(Clone, Debug)]
pub struct ApplyAnswer {
    /// What exists now, also when the diagnostics say that the call failed half-way.
    pub new_state: Value,
    pub private: Private,
    pub identity: Identity,
    pub legacy_type_system: bool,
    pub diagnostics: Diagnostics,
}

#[derive(Clone, Debug)]
pub struct ImportResourceState {
    pub type_name: String,
    /// Empty if the object is known by its identity.
    pub id: String,
    pub identity: Identity,
}

#[derive(Clone, Debug)]
pub struct ImportedResource {
    pub type_name: String,
    pub state: Value,
    pub private: Private,
    pub identity: Identity,
}

#[derive(Clone, Debug)]
pub struct ReadDataSource {
    pub type_name: String,
    pub config: Value,
}
