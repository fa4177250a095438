//! One object and its provider: read it, plan it, change it. Who decides what to do, and when, is elsewhere.

use std::sync::Arc;

use landform_cty::{Mark, Marks, Path, Step, Type, Value};
use landform_lang::IgnoreChanges;
use landform_protocol::{
    CallError, ImportResourceState, PlanAnswer, PlanResourceChange, Provider, ProviderSchema, ReadDataSource,
    ReadResource, Schema, UpgradeResourceState, ValidateResourceConfig,
};

use super::change::{
    attribute_at, invalid_plan, mark_existing, normalise_legacy, path_text, proposed_new, schema_marks,
    sensitivity_differs, with_ignored,
};
use super::encode;
use super::warnings::Warnings;
use crate::state::Instance;
use crate::{Action, Address, Diagnostic, Severity};

/// A configured provider with its schema.
#[derive(Clone)]
pub struct Bound {
    pub provider: Arc<dyn Provider>,
    pub schema: Arc<ProviderSchema>,
    /// As a state names it: `provider["registry.opentofu.org/hashicorp/time"]`.
    pub address: String,
    pub warnings: Warnings,
}

/// An object as it is known to exist. Its value carries marks.
#[derive(Clone, Debug)]
pub struct Object {
    pub value: Value,
    pub private: Vec<u8>,
    pub tainted: bool,
    pub dependencies: Vec<String>,
    /// How the object is to be replaced one day, even if the configuration does not have it any longer.
    pub create_before_destroy: bool,
}

/// What a plan of one object has to heed besides its configuration.
pub struct Wishes<'a> {
    /// Replace it even if nothing about it changed, for this reason.
    pub force: Option<Reason>,
    pub ignore: &'a IgnoreChanges,
    pub create_before_destroy: bool,
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
    /// The changes that cannot be made in place.
    pub replace_paths: Vec<Path>,
    pub importing: Option<String>,
    /// The key of the deposed object that this is about, if it is about one.
    pub deposed: Option<String>,
    /// Where the object was before the configuration moved it.
    pub previous: Option<Address>,
}

impl Planned {
    /// Whether the plan would do anything about it.
    pub fn effective(&self) -> bool {
        self.action != Action::NoOp || self.importing.is_some() || self.previous.is_some()
    }

    pub fn replaces(&self) -> bool {
        matches!(self.action, Action::Replace | Action::CreateBeforeDestroy)
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
    DeleteBecauseWrongRepetition,
    DeleteBecauseCountIndex,
    DeleteBecauseEachKey,
    ReadBecauseConfigUnknown,
    ReadBecauseDependencyPending,
}

pub type Outcome<T> = Result<T, Vec<Diagnostic>>;

impl Bound {
    pub fn resource(&self, address: &Address) -> Outcome<&Schema> {
        self.schema.resources.get(&address.type_name).ok_or_else(|| {
            let detail =
                format!("The provider {} does not support resource type {:?}.", self.address, address.type_name);
            vec![at(address, Diagnostic::error("Invalid resource type", detail))]
        })
    }

    pub fn data_source(&self, address: &Address) -> Outcome<&Schema> {
        self.schema.data_sources.get(&address.type_name).ok_or_else(|| {
            let detail = format!("The provider {} does not support data source {:?}.", self.address, address.type_name);
            vec![at(address, Diagnostic::error("Invalid data source", detail))]
        })
    }

    /// Asks the provider for what a data source has to say. Configuration and answer are checked on the way.
    pub async fn read_data(&self, address: &Address, config: &Value) -> Outcome<Value> {
        let schema = self.data_source(address)?;
        self.validate_data(address, config).await?;
        let (bare_config, places) = config.clone().unmark_deep_with_paths();
        let call = ReadDataSource { type_name: address.type_name.clone(), config: bare_config };
        let (value, diagnostics) =
            self.provider.read_data_source(call).await.map_err(|error| failed(address, &error))?;
        let value = self.accept(address, diagnostics, value)?;
        let problem = if value.is_null() {
            Some("returned null")
        } else if !value.is_wholly_known() {
            Some("returned a value that is not wholly known")
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err(vec![self.broken(address, "Provider produced invalid object", problem)]);
        }
        Ok(self.with_marks(schema, value, &places))
    }

    pub async fn validate_data(&self, address: &Address, config: &Value) -> Outcome<()> {
        let call = ValidateResourceConfig { type_name: address.type_name.clone(), config: bare(config) };
        let answer = self.provider.validate_data_config(call).await.map_err(|error| failed(address, &error))?;
        self.accept(address, answer, ())
    }

    pub async fn validate(&self, address: &Address, config: &Value) -> Outcome<()> {
        let call = ValidateResourceConfig { type_name: address.type_name.clone(), config: bare(config) };
        let answer = self.provider.validate_resource_config(call).await.map_err(|error| failed(address, &error))?;
        self.accept(address, answer, ())
    }

    /// Takes an object from the state. The provider brings it into the form of today's schema.
    pub async fn read_state(&self, address: &Address, instance: &Instance) -> Outcome<Object> {
        let schema = self.resource(address)?;
        let ty = schema.block.implied_type();
        if instance.schema_version > u64::try_from(schema.version).unwrap_or_default() {
            let detail = format!(
                "The current state of {address} was created by a newer provider version than is currently selected. \
                 Upgrade the {} provider to work with this state.",
                self.address
            );
            let summary = "Resource instance managed by newer provider version";
            return Err(vec![at(address, Diagnostic::error(summary, detail))]);
        }
        let attributes = instance.attributes.as_ref().map_or("{}", |raw| raw.get());
        let same_version = i64::try_from(instance.schema_version) == Ok(schema.version);
        let attributes_json = if same_version { encode::without_removed(attributes, &ty) } else { attributes.into() };
        let call = UpgradeResourceState {
            type_name: address.type_name.clone(),
            version: i64::try_from(instance.schema_version).unwrap_or(i64::MAX),
            attributes_json,
        };
        let (value, diagnostics) =
            self.provider.upgrade_resource_state(call).await.map_err(|error| failed(address, &error))?;
        let value = self.accept(address, diagnostics, value)?;
        let secret = encode::sensitive_paths(instance).map_err(|detail| {
            vec![at(address, Diagnostic::error("Invalid sensitive attribute paths in state", detail))]
        })?;
        let places: Vec<_> = secret.into_iter().map(|path| (path, Marks::from([Mark::Sensitive]))).collect();
        Ok(Object {
            value: mark_existing(value, &places),
            private: instance.private.clone(),
            tainted: instance.tainted(),
            dependencies: instance.dependencies.clone(),
            create_before_destroy: instance.create_before_destroy,
        })
    }

    /// Asks the provider how the object is now; `None` if it is gone.
    pub async fn refresh(&self, address: &Address, object: Object) -> Outcome<Option<Object>> {
        let schema = self.resource(address)?;
        let (current, places) = object.value.clone().unmark_deep_with_paths();
        let call = ReadResource { type_name: address.type_name.clone(), current, private: object.private.clone() };
        let answer = self.provider.read_resource(call).await.map_err(|error| failed(address, &error))?;
        let (value, private) = self.accept(address, answer.diagnostics, (answer.new_state, answer.private))?;
        let value = normalise_legacy(&schema.block, value);
        if value.is_null() {
            return Ok(None);
        }
        let value = self.with_marks(schema, value, &places);
        Ok(Some(Object { value, private, ..object }))
    }

    /// Takes over an object that exists already.
    pub async fn import(&self, address: &Address, id: &str) -> Outcome<Object> {
        let call = ImportResourceState { type_name: address.type_name.clone(), id: id.to_owned() };
        let (imported, diagnostics) =
            self.provider.import_resource_state(call).await.map_err(|error| failed(address, &error))?;
        let imported = self.accept(address, diagnostics, imported)?;
        let missing =
            |detail: String| vec![at(address, Diagnostic::error("Cannot import non-existent remote object", detail))];
        let found = imported
            .into_iter()
            .find(|resource| resource.type_name == address.type_name)
            .ok_or_else(|| missing(format!("The provider returned no object for {address} with the id {id:?}.")))?;
        let object = Object {
            value: found.state,
            private: found.private,
            tainted: false,
            dependencies: Vec::new(),
            create_before_destroy: false,
        };
        self.refresh(address, object).await?.ok_or_else(|| {
            missing(format!("While attempting to import {address}, the provider found no object with the id {id:?}."))
        })
    }

    /// Plans one object that the configuration wants. `earlier` is the plan that is being carried out, if one is.
    pub async fn plan(
        &self,
        address: &Address,
        prior: Option<&Object>,
        config: &Value,
        wishes: &Wishes<'_>,
        earlier: Option<&Planned>,
    ) -> Outcome<Planned> {
        let schema = self.resource(address)?;
        let block = &schema.block;
        let nothing = Value::null(block.implied_type());
        let tainted = prior.is_some_and(|object| object.tainted);
        let (prior_value, prior_private) = match prior {
            Some(object) if !tainted => (object.value.clone(), object.private.clone()),
            _ => (nothing.clone(), Vec::new()),
        };
        self.validate(address, config).await?;
        let (bare_config, config_marks) = config.clone().unmark_deep_with_paths();
        let bare_prior = bare(&prior_value);
        let heeded = with_ignored(block, &bare_prior, &bare_config, wishes.ignore);
        let proposed = proposed_new(block, &bare_prior, &heeded);
        let mut first = self.ask_plan(address, &bare_prior, proposed, &heeded, prior_private).await?;
        if first.legacy_type_system {
            first.planned = with_ignored(block, &bare_prior, &first.planned, wishes.ignore);
        }
        self.check_plan(address, schema, &first, &bare_prior, &heeded)?;
        let replace_paths = self.real_replacements(address, schema, &first, &bare_prior)?;
        let writes_only =
            replace_paths.iter().any(|path| attribute_at(block, path).is_some_and(|attribute| attribute.write_only));
        let unchanged = first.planned.equals(&bare_prior).as_bool() == Some(true);
        let replace = if wishes.create_before_destroy { Action::CreateBeforeDestroy } else { Action::Replace };
        let mut action = if bare_prior.is_null() {
            Action::Create
        } else if writes_only || wishes.force.is_some() {
            replace
        } else if unchanged {
            Action::NoOp
        } else if !replace_paths.is_empty() {
            replace
        } else {
            Action::Update
        };
        let mut reason = match wishes.force {
            // OpenTofu names the trigger of an object that is only now made, too.
            Some(Reason::ReplaceByTriggers) if action == Action::Create => wishes.force,
            _ if action != replace => None,
            None => Some(Reason::ReplaceBecauseCannotUpdate),
            force => force,
        };
        let mut answer = first;
        if action == replace {
            // What comes after a replacement is a new object, so the provider plans it once more without the old one.
            let proposed = proposed_new(block, &nothing, &bare_config);
            answer = self.ask_plan(address, &nothing, proposed, &bare_config, answer.planned_private).await?;
        }
        let mut before = prior_value;
        if action == Action::Create
            && let Some(old) = prior.filter(|object| object.tainted)
        {
            (action, reason, before) = (replace, Some(Reason::ReplaceBecauseTainted), old.value.clone());
        }
        let after = self.with_marks(schema, answer.planned, &config_marks);
        if action == Action::NoOp && sensitivity_differs(&before, &after) {
            action = Action::Update;
        }
        if let Some(earlier) = earlier
            && earlier.replaces()
            && action == Action::Create
        {
            // The old object is gone (or deposed) by now, so what is left of the replacement looks like a create.
            (action, before) = (earlier.action, earlier.before.clone());
        }
        Ok(Planned {
            address: address.clone(),
            provider: self.address.clone(),
            action,
            reason,
            before,
            after,
            private: answer.planned_private,
            replace_paths,
            importing: None,
            deposed: None,
            previous: None,
        })
    }

    /// Plans the end of an object.
    pub async fn plan_destroy(&self, address: &Address, object: &Object, reason: Option<Reason>) -> Outcome<Planned> {
        let nothing = Value::null(self.resource(address)?.block.implied_type());
        let mut private = object.private.clone();
        if self.schema.capabilities.plan_destroy {
            let prior = bare(&object.value);
            let answer = self.ask_plan(address, &prior, nothing.clone(), &nothing, private).await?;
            if !answer.planned.is_null() {
                return Err(vec![self.broken(
                    address,
                    "Provider produced invalid plan",
                    "planned a non-null destroy value",
                )]);
            }
            private = answer.planned_private;
        }
        Ok(Planned {
            address: address.clone(),
            provider: self.address.clone(),
            action: Action::Delete,
            reason,
            before: object.value.clone(),
            after: nothing,
            private,
            replace_paths: Vec::new(),
            importing: None,
            deposed: None,
            previous: None,
        })
    }

    async fn ask_plan(
        &self,
        address: &Address,
        prior: &Value,
        proposed: Value,
        config: &Value,
        prior_private: Vec<u8>,
    ) -> Outcome<PlanAnswer> {
        let call = PlanResourceChange {
            type_name: address.type_name.clone(),
            prior: prior.clone(),
            proposed,
            config: config.clone(),
            prior_private,
        };
        let mut answer = self.provider.plan_resource_change(call).await.map_err(|error| failed(address, &error))?;
        let diagnostics = std::mem::take(&mut answer.diagnostics);
        self.accept(address, diagnostics, answer)
    }

    fn check_plan(
        &self,
        address: &Address,
        schema: &Schema,
        answer: &PlanAnswer,
        prior: &Value,
        config: &Value,
    ) -> Outcome<()> {
        let problems = invalid_plan(&schema.block, prior, config, &answer.planned);
        if answer.legacy_type_system {
            // The old SDK cannot help it; OpenTofu tolerates it too.
            for problem in problems {
                tracing::debug!(%address, problem, "tolerated: a plan of a provider with the legacy type system");
            }
            return Ok(());
        }
        let broken = |problem: &String| {
            self.broken(address, "Provider produced invalid plan", &format!("planned an invalid value: {problem}"))
        };
        if problems.is_empty() { Ok(()) } else { Err(problems.iter().map(broken).collect()) }
    }

    /// Of the paths that require replacement those at which something really changes. Providers name them generously.
    fn real_replacements(
        &self,
        address: &Address,
        schema: &Schema,
        answer: &PlanAnswer,
        prior: &Value,
    ) -> Outcome<Vec<Path>> {
        let mut real: Vec<Path> = Vec::new();
        if prior.is_null() {
            return Ok(real);
        }
        for path in &answer.requires_replace {
            let path = resolve(path, prior, &answer.planned);
            let (before, after) = (prior.at_path(&path), answer.planned.at_path(&path));
            let null_of = |other: &Value| Value::null(other.ty.clone());
            let (before, after) = match (before, after) {
                (Some(before), Some(after)) => (before.clone(), after.clone()),
                (Some(before), None) => (before.clone(), null_of(before)),
                (None, Some(after)) => (null_of(after), after.clone()),
                (None, None) => {
                    let problem =
                        format!("indicated \"requires replacement\" for a non-existent path {}", path_text(&path));
                    return Err(vec![self.broken(address, "Provider produced invalid plan", &problem)]);
                }
            };
            let write_only = attribute_at(&schema.block, &path).is_some_and(|attribute| attribute.write_only);
            let changed = after.equals(&before).as_bool() != Some(true);
            if (changed || write_only) && !real.contains(&path) {
                real.push(path);
            }
        }
        Ok(real)
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
        self.warnings.add(diagnostics);
        Ok(answer)
    }

    /// A diagnostic that blames the provider.
    pub fn broken(&self, address: &Address, summary: &str, what: &str) -> Diagnostic {
        let detail = format!(
            "Provider {} {what} for {address}.\n\nThis is a bug in the provider, which should be reported in the \
             provider's own issue tracker.",
            self.address
        );
        at(address, Diagnostic::error(summary, detail))
    }
}

/// The path in terms of the values: the wire does not tell a map's key from an attribute's name.
fn resolve(path: &landform_protocol::Path, prior: &Value, planned: &Value) -> Path {
    let mut resolved = Path::new();
    for step in path {
        let inside_map = [prior, planned]
            .iter()
            .find_map(|value| value.at_path(&resolved))
            .is_some_and(|value| matches!(value.ty, Type::Map(_)));
        resolved.push(match step {
            landform_protocol::Step::Attribute(name) => Step::Attribute(name.clone()),
            landform_protocol::Step::Key(key) if inside_map => Step::Key(key.clone()),
            landform_protocol::Step::Key(key) => Step::Attribute(key.clone()),
            landform_protocol::Step::Index(index) => Step::Index(usize::try_from(*index).unwrap_or(usize::MAX)),
        });
    }
    resolved
}

pub fn bare(value: &Value) -> Value {
    value.clone().unmark_deep().0
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
    }
}
