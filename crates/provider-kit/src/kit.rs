use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use landform_cty::Value;
use landform_protocol::*;
use tokio::sync::OnceCell;

use crate::resource::{DataSource, Failure, Resource};

/// A provider's types of resources by name.
pub type Resources<C> = Vec<(&'static str, Box<dyn Resource<C>>)>;

/// A provider's data sources by name.
pub type DataSources<C> = Vec<(&'static str, Box<dyn DataSource<C>>)>;

/// A provider: its own configuration, its resources and its data sources.
#[async_trait]
pub trait Definition: Send + Sync + 'static {
    /// What the configuration is made into, and what the resources work with.
    type Client: Send + Sync + 'static;

    fn schema(&self) -> Schema;

    fn resources(&self) -> Resources<Self::Client>;

    fn data_sources(&self) -> DataSources<Self::Client> {
        Vec::new()
    }

    async fn configure(&self, config: &Value) -> Result<Self::Client, Failure>;
}

/// Makes a [`Provider`] of a [`Definition`], with one configuration for life.
pub struct Kit<D: Definition> {
    definition: D,
    resources: BTreeMap<&'static str, Box<dyn Resource<D::Client>>>,
    data_sources: BTreeMap<&'static str, Box<dyn DataSource<D::Client>>>,
    schema: Arc<ProviderSchema>,
    client: OnceCell<D::Client>,
}

impl<D: Definition> Kit<D> {
    pub fn new(definition: D) -> Kit<D> {
        let resources: BTreeMap<_, _> = definition.resources().into_iter().collect();
        let data_sources: BTreeMap<_, _> = definition.data_sources().into_iter().collect();
        let schema = ProviderSchema {
            provider: definition.schema(),
            resources: resources.iter().map(|(name, resource)| ((*name).to_owned(), resource.schema())).collect(),
            data_sources: data_sources.iter().map(|(name, source)| ((*name).to_owned(), source.schema())).collect(),
            identities: resources
                .iter()
                .filter_map(|(name, resource)| Some(((*name).to_owned(), resource.identity()?)))
                .collect(),
            provider_meta: None,
            capabilities: ServerCapabilities {
                plan_destroy: false,
                get_provider_schema_optional: true,
                move_resource_state: false,
            },
        };
        Kit { definition, resources, data_sources, schema: Arc::new(schema), client: OnceCell::new() }
    }

    fn resource(&self, name: &str) -> Result<&dyn Resource<D::Client>, Failure> {
        let unknown = || Diagnostic::error("Unknown resource type", format!("This provider has no {name:?}.")).into();
        self.resources.get(name).map(Box::as_ref).ok_or_else(unknown)
    }

    fn data_source(&self, name: &str) -> Result<&dyn DataSource<D::Client>, Failure> {
        let unknown = || Diagnostic::error("Unknown data source", format!("This provider has no {name:?}.")).into();
        self.data_sources.get(name).map(Box::as_ref).ok_or_else(unknown)
    }

    fn client(&self) -> Result<&D::Client, Failure> {
        let early = || Diagnostic::error("Provider not configured", "Configure must come before this call.").into();
        self.client.get().ok_or_else(early)
    }

    fn null(&self, name: &str) -> Value {
        Value::null(self.schema.resources.get(name).map_or(landform_cty::Type::Dynamic, |s| s.block.implied_type()))
    }

    fn identity(&self, name: &str, state: &Value) -> Identity {
        self.resources.get(name).filter(|_| !state.is_null())?.identity_of(state)
    }

    async fn plan(&self, call: &PlanResourceChange) -> Result<(Value, Vec<Path>), Failure> {
        let resource = self.resource(&call.type_name)?;
        if call.proposed.is_null() {
            return Ok((call.proposed.clone(), Vec::new()));
        }
        let planned = resource.plan(&call.prior, call.proposed.clone(), &call.config).await?;
        let replaced = |name: &&&str| !call.prior.is_null() && call.prior.get(name) != planned.get(name);
        let paths =
            resource.replace_on().iter().filter(replaced).map(|name| vec![Step::Attribute((*name).into())]).collect();
        Ok((planned, paths))
    }

    async fn apply(&self, call: ApplyResourceChange) -> Result<Value, Failure> {
        let (resource, client) = (self.resource(&call.type_name)?, self.client()?);
        if call.prior.is_null() {
            resource.create(client, call.planned).await
        } else if call.planned.is_null() {
            resource.delete(client, call.prior).await.map(|()| call.planned)
        } else {
            resource.update(client, call.prior, call.planned).await
        }
    }

    async fn import(&self, call: &ImportResourceState) -> Result<Value, Failure> {
        let (resource, client) = (self.resource(&call.type_name)?, self.client()?);
        let imported = match &call.identity {
            Some(identity) => resource.import_by_identity(client, identity).await?,
            None => resource.import(client, &call.id).await?,
        };
        imported.ok_or_else(|| {
            let named =
                if call.identity.is_some() { "this identity".to_owned() } else { format!("the id {:?}", call.id) };
            let detail = format!("There is no {} with {named}.", call.type_name);
            Diagnostic::error("Cannot import a non-existent object", detail).into()
        })
    }

    fn upgrade(&self, call: &UpgradeResourceState) -> Result<Value, Failure> {
        let name = &call.type_name;
        let failed = |detail: String| Failure::from(Diagnostic::error("The stored object cannot be read", detail));
        let schema = self.schema.resources.get(name).ok_or_else(|| failed(format!("There is no {name:?}.")))?;
        let json = serde_json::from_slice(&call.attributes_json).map_err(|error| failed(error.to_string()))?;
        if call.version != schema.version {
            return self.resource(name)?.upgrade(call.version, json);
        }
        Value::from_json(&json, &schema.block.implied_type()).map_err(|error| failed(error.to_string()))
    }
}

#[async_trait]
impl<D: Definition> Provider for Kit<D> {
    async fn schema(&self) -> Result<Arc<ProviderSchema>, CallError> {
        Ok(self.schema.clone())
    }

    async fn validate_provider_config(&self, config: Value) -> Result<(Value, Diagnostics), CallError> {
        Ok((config, Vec::new()))
    }

    async fn validate_resource_config(&self, call: ValidateResourceConfig) -> Result<Diagnostics, CallError> {
        match self.resource(&call.type_name) {
            Ok(resource) => Ok(resource.validate(&call.config).await),
            Err(failure) => Ok(failure.diagnostics),
        }
    }

    async fn validate_data_config(&self, call: ValidateResourceConfig) -> Result<Diagnostics, CallError> {
        match self.data_source(&call.type_name) {
            Ok(source) => Ok(source.validate(&call.config).await),
            Err(failure) => Ok(failure.diagnostics),
        }
    }

    async fn configure(&self, call: Configure) -> Result<Diagnostics, CallError> {
        if self.client.initialized() {
            let detail = "A provider keeps its configuration for life.";
            return Ok(vec![Diagnostic::error("Provider already configured", detail)]);
        }
        let made = self.client.get_or_try_init(|| self.definition.configure(&call.config)).await;
        Ok(made.err().map(|failure| failure.diagnostics).unwrap_or_default())
    }

    async fn upgrade_resource_state(&self, call: UpgradeResourceState) -> Result<(Value, Diagnostics), CallError> {
        Ok(match self.upgrade(&call) {
            Ok(state) => (state, Vec::new()),
            Err(failure) => (self.null(&call.type_name), failure.diagnostics),
        })
    }

    async fn upgrade_resource_identity(
        &self,
        call: UpgradeResourceIdentity,
    ) -> Result<(Identity, Diagnostics), CallError> {
        let upgrade = || {
            let failed =
                |detail: String| Failure::from(Diagnostic::error("The stored identity cannot be read", detail));
            let json = serde_json::from_slice(&call.identity_json).map_err(|error| failed(error.to_string()))?;
            self.resource(&call.type_name)?.upgrade_identity(call.version, json)
        };
        Ok(match upgrade() {
            Ok(identity) => (Some(identity), Vec::new()),
            Err(failure) => (None, failure.diagnostics),
        })
    }

    async fn read_resource(&self, call: ReadResource) -> Result<ReadAnswer, CallError> {
        let ReadResource { type_name, current, private, .. } = call;
        let read = async { self.resource(&type_name)?.read(self.client()?, current.clone()).await };
        let (new_state, diagnostics) = match read.await {
            Ok(state) => (state.unwrap_or_else(|| self.null(&type_name)), Vec::new()),
            Err(failure) => (failure.state.map_or(current, |state| *state), failure.diagnostics),
        };
        let identity = self.identity(&type_name, &new_state);
        Ok(ReadAnswer { new_state, private, identity, diagnostics })
    }

    async fn plan_resource_change(&self, call: PlanResourceChange) -> Result<PlanAnswer, CallError> {
        let (planned, requires_replace, diagnostics) = match self.plan(&call).await {
            Ok((planned, paths)) => (planned, paths, Vec::new()),
            Err(failure) => (call.prior, Vec::new(), failure.diagnostics),
        };
        // An object keeps its identity for life, and a new one gets it when it is made.
        let (planned_private, planned_identity) = (call.prior_private, call.prior_identity);
        let legacy_type_system = false;
        Ok(PlanAnswer { planned, requires_replace, planned_private, planned_identity, legacy_type_system, diagnostics })
    }

    async fn apply_resource_change(&self, call: ApplyResourceChange) -> Result<ApplyAnswer, CallError> {
        let (prior, private, type_name) = (call.prior.clone(), call.planned_private.clone(), call.type_name.clone());
        let (new_state, diagnostics) = match self.apply(call).await {
            Ok(state) => (state, Vec::new()),
            // Without other news, what was there before is there still.
            Err(failure) => (failure.state.map_or(prior, |state| *state), failure.diagnostics),
        };
        let identity = self.identity(&type_name, &new_state);
        Ok(ApplyAnswer { new_state, private, identity, legacy_type_system: false, diagnostics })
    }

    async fn import_resource_state(
        &self,
        call: ImportResourceState,
    ) -> Result<(Vec<ImportedResource>, Diagnostics), CallError> {
        Ok(match self.import(&call).await {
            Ok(state) => {
                let identity = self.identity(&call.type_name, &state);
                let imported = ImportedResource { type_name: call.type_name, state, private: Vec::new(), identity };
                (vec![imported], Vec::new())
            }
            Err(failure) => (Vec::new(), failure.diagnostics),
        })
    }

    async fn read_data_source(&self, call: ReadDataSource) -> Result<(Value, Diagnostics), CallError> {
        let null = Value::null(call.config.ty.clone());
        let read = async { self.data_source(&call.type_name)?.read(self.client()?, call.config).await };
        Ok(match read.await {
            Ok(state) => (state, Vec::new()),
            Err(failure) => (failure.state.map_or(null, |state| *state), failure.diagnostics),
        })
    }

    async fn stop(&self) -> Result<(), CallError> {
        Ok(())
    }
}
