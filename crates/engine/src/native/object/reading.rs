//! What is known of an object: from the state, from its provider, from the outside.

use landform_cty::{Mark, Marks, Value};
use landform_protocol::{
    ImportResourceState, ReadDataSource, ReadResource, Schema, UpgradeResourceIdentity, UpgradeResourceState,
    ValidateResourceConfig,
};

use super::{Bound, Id, Identity, ImportTarget, Memory, Object, Outcome, Told, at, bare, failed, id_of};
use crate::native::change::{mark_existing, normalise_legacy};
use crate::native::encode;
use crate::native::show::source_of;
use crate::native::sound::Kind;
use crate::state::Instance;
use crate::{Action, Address, Diagnostic, Progress, Stage, Work};

const NOT_THERE: &str = "Cannot import non-existent remote object";

impl Object {
    /// What a data source has said, as the state keeps it: secret where the configuration was. What the schema calls secret
    /// it says anew each time.
    pub fn read(value: &Value, config: &Value) -> Object {
        let (_, places) = config.clone().unmark_deep_with_paths();
        Object {
            value: mark_existing(bare(value), &places),
            private: Vec::new(),
            identity: None,
            tainted: false,
            dependencies: Vec::new(),
            create_before_destroy: false,
            skip_destroy: false,
        }
    }
}

impl Bound {
    /// Asks the provider for what a data source has to say. Configuration and answer are checked on the way.
    pub async fn read_data(&self, address: &Address, config: &Value, progress: &dyn Progress) -> Outcome<Value> {
        let schema = self.data_source(address)?;
        self.validate_data(address, config).await?;
        let told = Told::begin(progress, address, None, Work::Change(Action::Read), Id::default());
        let outcome = self.ask_data(schema, address, config).await;
        // Where it fails, OpenTofu says no more of it than why.
        if let Ok(value) = &outcome {
            told.end(Stage::Done, id_of(value));
        }
        outcome
    }

    async fn ask_data(&self, schema: &Schema, address: &Address, config: &Value) -> Outcome<Value> {
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
        let config = call.config.clone();
        let ask = self.provider.validate_data_config(call);
        let answer = match &self.memory {
            Memory::Sound(sound) => sound.unless_known(Kind::Data, &address.type_name, &config, ask).await,
            _ => ask.await,
        };
        self.accept(address, answer.map_err(|error| failed(address, &error))?, ())
    }

    pub async fn validate(&self, address: &Address, config: &Value) -> Outcome<()> {
        let call = ValidateResourceConfig { type_name: address.type_name.clone(), config: bare(config) };
        if let Memory::Recalling(answers) = &self.memory
            && let Some(answer) = answers.validation(address, &call)
        {
            return self.accept(address, answer, ());
        }
        let asked = call.clone();
        let ask = self.provider.validate_resource_config(call);
        let answer = match &self.memory {
            Memory::Sound(sound) => sound.unless_known(Kind::Resource, &asked.type_name, &asked.config, ask).await,
            _ => ask.await,
        };
        let answer = answer.map_err(|error| failed(address, &error))?;
        if let Memory::Keeping(answers) = &self.memory {
            answers.keep_validation(address, &asked, &answer);
        }
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
        let value = self.accept(address, diagnostics, value).map_err(unplaced)?;
        let secret = encode::sensitive_paths(instance).map_err(|detail| {
            vec![at(address, Diagnostic::error("Invalid sensitive attribute paths in state", detail))]
        })?;
        let places: Vec<_> = secret.into_iter().map(|path| (path, Marks::from([Mark::Sensitive]))).collect();
        Ok(Object {
            value: mark_existing(value, &places),
            private: instance.private.clone(),
            identity: self.read_identity(address, instance).await?,
            tainted: instance.tainted(),
            dependencies: instance.dependencies.clone(),
            create_before_destroy: instance.create_before_destroy,
            skip_destroy: instance.skip_destroy,
        })
    }

    /// The identity that the state has for an object, in the form of today's schema.
    async fn read_identity(&self, address: &Address, instance: &Instance) -> Outcome<Option<Identity>> {
        let Some(stored) = &instance.identity else { return Ok(None) };
        let schema = self.schema.identities.get(&address.type_name);
        let now = schema.map_or(0, |schema| schema.version);
        let version = i64::try_from(instance.identity_schema_version.unwrap_or_default()).unwrap_or(i64::MAX);
        if version > now {
            let detail = format!(
                "The current identity of {address} was created by a newer provider version than is currently selected. \
                 Upgrade the {} provider to work with this identity.",
                source_of(&self.address)
            );
            let summary = "Resource identity managed by newer provider version";
            return Err(vec![at(address, Diagnostic::error(summary, detail))]);
        }
        if version < now {
            let (type_name, identity_json) = (address.type_name.clone(), stored.get().into());
            let call = UpgradeResourceIdentity { type_name, version, identity_json };
            let (identity, diagnostics) =
                self.provider.upgrade_resource_identity(call).await.map_err(|error| failed(address, &error))?;
            return match self.accept(address, diagnostics, identity).map_err(unplaced)? {
                Some(value) => Ok(Some(Identity { value, version: now })),
                None => Err(vec![self.broken(address, "Provider returned no identity after upgrade", "returned none")]),
            };
        }
        // Without a schema it means nothing to the provider, and it is not sent.
        let Some(schema) = schema else { return Ok(None) };
        let unreadable =
            |detail: String| vec![at(address, Diagnostic::error("Invalid resource identity in state", detail))];
        let json = serde_json::from_str(stored.get()).map_err(|error| unreadable(error.to_string()))?;
        let value = Value::from_json(&json, &schema.block.implied_type());
        Ok(Some(Identity { value: value.map_err(|error| unreadable(error.to_string()))?, version }))
    }

    /// Asks the provider how the object is now; `None` if it is gone, with what the provider wants to be kept all the same.
    pub async fn refresh(&self, address: &Address, object: Object) -> Outcome<(Option<Object>, Vec<u8>)> {
        let schema = self.resource(address)?;
        let (current, places) = object.value.clone().unmark_deep_with_paths();
        let call = ReadResource {
            type_name: address.type_name.clone(),
            current,
            private: object.private.clone(),
            identity: object.identity.as_ref().map(|identity| identity.value.clone()),
        };
        let answer = self.provider.read_resource(call).await.map_err(|error| failed(address, &error))?;
        let identity = self.identity(address, answer.identity);
        let (value, private) = self.accept(address, answer.diagnostics, (answer.new_state, answer.private))?;
        let value = normalise_legacy(&schema.block, value);
        if value.is_null() {
            return Ok((None, private));
        }
        let value = self.with_marks(schema, value, &places);
        Ok((Some(Object { value, private, identity, ..object }), Vec::new()))
    }

    /// What the provider says of an object that it knows by this name, before it has looked at it.
    pub async fn ask_import(&self, address: &Address, target: &ImportTarget) -> Outcome<Object> {
        let (id, identity) = match target {
            ImportTarget::Id(id) => (id.clone(), None),
            ImportTarget::Identity(identity) => (String::new(), Some(identity.clone())),
        };
        let call = ImportResourceState { type_name: address.type_name.clone(), id, identity };
        let (imported, diagnostics) =
            self.provider.import_resource_state(call).await.map_err(|error| failed(address, &error))?;
        let imported = self.accept(address, diagnostics, imported).map_err(unplaced)?;
        let found = imported.into_iter().find(|resource| resource.type_name == address.type_name).ok_or_else(|| {
            let detail = format!("The provider returned no object for {address} {}.", named(target));
            vec![at(address, Diagnostic::error(NOT_THERE, detail))]
        })?;
        Ok(Object {
            value: found.state,
            private: found.private,
            identity: self.identity(address, found.identity),
            tainted: false,
            dependencies: Vec::new(),
            create_before_destroy: false,
            skip_destroy: false,
        })
    }
}

/// The provider knows the name, but there is no such object.
pub fn not_there(address: &Address, target: &ImportTarget) -> Vec<Diagnostic> {
    let detail = format!("While attempting to import {address}, the provider found no object {}.", named(target));
    vec![at(address, Diagnostic::error(NOT_THERE, detail))]
}

/// What has nothing to do with what the configuration says.
fn unplaced(mut found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    found.iter_mut().for_each(|diagnostic| diagnostic.seen.argument = None);
    found
}

fn named(target: &ImportTarget) -> String {
    match target {
        ImportTarget::Id(id) => format!("with the id {id:?}"),
        ImportTarget::Identity(_) => format!("with the identity {target}"),
    }
}
