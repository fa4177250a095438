//! One object and its provider: read it, plan it, change it. Who decides what to do, and when, is elsewhere.

mod planning;
mod reading;
mod told;

use std::sync::Arc;

use landform_cty::{Marks, Path, Value};
use landform_lang::IgnoreChanges;
use landform_protocol::{CallError, Provider, ProviderSchema, Schema};

use super::answers::Answers;
use super::change::{mark_existing, schema_marks};
use super::show::source_of;
use super::sound::SoundFor;
use super::warnings::Warnings;
use crate::{Action, Address, Diagnostic, Seen, Severity};
pub use reading::not_there;
pub use told::{Id, Told, id_of, id_of_target, id_or_name_of};

/// A configured provider with its schema.
#[derive(Clone)]
pub struct Bound {
    pub provider: Arc<dyn Provider>,
    pub schema: Arc<ProviderSchema>,
    /// As a state names it: `provider["registry.opentofu.org/hashicorp/time"]`.
    pub address: String,
    pub warnings: Warnings,
    pub memory: Memory,
}

/// Whether answers are kept for an apply that follows at once, and looked up in it.
#[derive(Clone, Default)]
pub enum Memory {
    #[default]
    None,
    /// It is not configured yet, and need not be asked what was found sound before.
    Sound(SoundFor),
    Keeping(Answers),
    Recalling(Answers),
}

/// An object as it is known to exist. Its value carries marks.
#[derive(Clone, Debug)]
pub struct Object {
    pub value: Value,
    pub private: Vec<u8>,
    pub identity: Option<Identity>,
    pub tainted: bool,
    pub dependencies: Vec<String>,
    /// How the object is to be replaced one day, even if the configuration does not have it any longer.
    pub create_before_destroy: bool,
    /// Whether it is then to be left where it is.
    pub skip_destroy: bool,
}

/// What tells an object from all others of its type, with the version of the schema that it follows.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    pub value: Value,
    pub version: i64,
}

/// The name of an object that exists already and is to be taken over.
#[derive(Clone, Debug, PartialEq)]
pub enum ImportTarget {
    Id(String),
    Identity(Value),
}

/// As people are told: the id, or the identity in JSON.
impl std::fmt::Display for ImportTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ImportTarget::Id(id) => f.write_str(id),
            ImportTarget::Identity(identity) => write!(f, "{}", identity.to_plain_json().unwrap_or_default()),
        }
    }
}

/// What a plan of one object has to heed besides its configuration.
pub struct Wishes<'a> {
    /// Replace it even if nothing about it changed, for this reason.
    pub force: Option<Reason>,
    pub ignore: &'a IgnoreChanges,
    pub create_before_destroy: bool,
    /// A replacement leaves the old object where it is. What is wrong with the configuration's word about it comes out
    /// when it is asked for.
    pub keep: Outcome<bool>,
    /// What the provider gave to keep with an object that is gone: it gets that back with the plan of the next one.
    pub gone_private: Vec<u8>,
}

/// What is to become of one object.
#[derive(Clone, Debug)]
pub struct Planned {
    pub address: Address,
    /// The provider's address, as in [`Bound`].
    pub provider: String,
    pub action: Action,
    pub reason: Option<Reason>,
    /// Null if there is no object yet.
    pub before: Value,
    /// Null if there is to be none.
    pub after: Value,
    pub private: Vec<u8>,
    pub identity_before: Option<Identity>,
    pub identity_after: Option<Identity>,
    /// The changes that cannot be made in place.
    pub replace_paths: Vec<Path>,
    pub importing: Option<ImportTarget>,
    /// The key of the deposed object that this is about, if it is about one.
    pub deposed: Option<String>,
    /// Where the object was before the configuration moved it.
    pub previous: Option<Address>,
    /// `before` is not what the state has: an earlier update may have left the object like that, and nobody can see it.
    pub assumed: bool,
}

impl Planned {
    /// This action and nothing else that could be said of it.
    pub fn plain(address: &Address, provider: &str, action: Action, (before, after): (Value, Value)) -> Planned {
        Planned {
            address: address.clone(),
            provider: provider.to_owned(),
            action,
            reason: None,
            before,
            after,
            private: Vec::new(),
            identity_before: None,
            identity_after: None,
            replace_paths: Vec::new(),
            importing: None,
            deposed: None,
            previous: None,
            assumed: false,
        }
    }

    /// Whether the plan would do anything about it.
    pub fn effective(&self) -> bool {
        self.action != Action::NoOp || self.importing.is_some() || self.previous.is_some()
    }

    /// Whether an object is destroyed and another one made in its place.
    pub fn replaces(&self) -> bool {
        matches!(self.action, Action::Replace | Action::CreateBeforeDestroy)
    }

    /// Whether another object takes the place of this one, whatever becomes of the old one.
    pub fn renews(&self) -> bool {
        self.replaces() || self.action == Action::ForgetThenCreate
    }
}

/// Why an object is replaced or deleted, in the words of OpenTofu's JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    ReplaceBecauseCannotUpdate,
    ReplaceBecauseTainted,
    ReplaceByRequest,
    ReplaceByTriggers,
    DeleteBecauseNoResourceConfig,
    DeleteBecauseNoModule,
    DeleteBecauseNoMoveTarget,
    DeleteBecauseWrongRepetition,
    DeleteBecauseCountIndex,
    DeleteBecauseEachKey,
    DeleteBecauseEnabledFalse,
    ForgotBecauseLifecycleDestroyInConfig,
    ForgotBecauseLifecycleDestroyInState,
    ReadBecauseConfigUnknown,
    ReadBecauseDependencyPending,
    ReadBecauseCheckNested,
}

pub type Outcome<T> = Result<T, Vec<Diagnostic>>;

/// A provider as people name it: without the host that is the usual one.
pub fn short(address: &str) -> String {
    let source = source_of(address);
    source.strip_prefix("registry.opentofu.org/").unwrap_or(source).to_owned()
}

impl Bound {
    pub fn resource(&self, address: &Address) -> Outcome<&Schema> {
        self.schema.resources.get(&address.type_name).ok_or_else(|| {
            let (provider, kind) = (short(&self.address), &address.type_name);
            let hint = landform_lang::did_you_mean(kind, self.schema.resources.keys().map(String::as_str));
            let detail = format!("The provider {provider} does not support resource type {kind:?}.{hint}");
            vec![at(address, Diagnostic::error("Invalid resource type", detail))]
        })
    }

    pub fn data_source(&self, address: &Address) -> Outcome<&Schema> {
        self.schema.data_sources.get(&address.type_name).ok_or_else(|| {
            let (provider, kind) = (short(&self.address), &address.type_name);
            let hint = landform_lang::did_you_mean(kind, self.schema.data_sources.keys().map(String::as_str));
            let detail = format!("The provider {provider} does not support data source {kind:?}.{hint}");
            vec![at(address, Diagnostic::error("Invalid data source", detail))]
        })
    }

    /// An identity as the provider has told it.
    pub fn identity(&self, address: &Address, told: landform_protocol::Identity) -> Option<Identity> {
        let version = self.schema.identities.get(&address.type_name).map_or(0, |schema| schema.version);
        told.map(|value| Identity { value, version })
    }

    /// Marks what the schema calls sensitive, and what was marked before it went to the provider.
    pub fn with_marks(&self, schema: &Schema, value: Value, places: &[(Path, Marks)]) -> Value {
        let from_schema = schema_marks(&schema.block, &value);
        mark_existing(mark_existing(value, places), &from_schema)
    }

    /// The answer, or its errors. Its warnings are kept.
    fn accept<T>(&self, address: &Address, diagnostics: landform_protocol::Diagnostics, answer: T) -> Outcome<T> {
        let diagnostics: Vec<_> = diagnostics.into_iter().map(|diagnostic| translate(address, diagnostic)).collect();
        if diagnostics.iter().any(Diagnostic::is_error) {
            return Err(diagnostics);
        }
        self.warnings.add_each(diagnostics);
        Ok(answer)
    }

    /// A diagnostic that blames the provider.
    pub fn broken(&self, address: &Address, summary: &str, what: &str) -> Diagnostic {
        self.blamed(address, summary, format!("Provider {} {what} for {address}.", self.address))
    }

    /// The same in words of their own.
    pub fn blamed(&self, address: &Address, summary: &str, words: String) -> Diagnostic {
        let detail = format!(
            "{words}\n\nThis is a bug in the provider, which should be reported in the \
             provider's own issue tracker."
        );
        at(address, Diagnostic::error(summary, detail))
    }
}

pub fn bare(value: &Value) -> Value {
    value.clone().unmark_deep().0
}

/// The same with null for all that is not known: how a state keeps it.
pub fn known_or_null(value: Value) -> Value {
    value.transform(&mut |_, part| if part.is_known() { part } else { Value::null(part.ty.clone()) })
}

pub fn at(address: &Address, diagnostic: Diagnostic) -> Diagnostic {
    Diagnostic { address: Some(address.to_string()), ..diagnostic }
}

/// The call did not come back.
pub fn failed(address: &Address, error: &CallError) -> Vec<Diagnostic> {
    vec![at(address, Diagnostic::error("Plugin did not respond", error.to_string()))]
}

pub fn translate(address: &Address, diagnostic: landform_protocol::Diagnostic) -> Diagnostic {
    Diagnostic {
        severity: match diagnostic.severity {
            landform_protocol::Severity::Error => Severity::Error,
            landform_protocol::Severity::Warning => Severity::Warning,
        },
        summary: diagnostic.summary,
        detail: diagnostic.detail,
        address: Some(address.to_string()),
        range: None,
        seen: Box::new(Seen { argument: Some(diagnostic.attribute.unwrap_or_default()), ..Seen::default() }),
    }
}
