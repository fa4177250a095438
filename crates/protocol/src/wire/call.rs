use landform_cty::Value;

use super::tfplugin::{
    ClientCapabilities, Deferred, Diagnostic as WireDiagnostic, RawState, apply_resource_change, configure_provider,
    import_resource_state, plan_resource_change, read_data_source, read_resource, stop_provider,
    upgrade_resource_identity, upgrade_resource_state, validate_data_resource_config, validate_provider_config,
    validate_resource_config,
};
use super::{Method, Types, WireError, from_dynamic, to_dynamic};
use crate::*;

/// A call with its answer, both ways: the client writes the one and reads the other, the server the reverse.
pub trait Call: Sized + Send {
    const METHOD: Method;
    type Answer: Send;
    type Request: prost::Message + Default + 'static;
    type Response: prost::Message + Default + 'static;

    fn to_wire(&self, types: &Types) -> Result<Self::Request, WireError>;
    fn from_wire(request: Self::Request, types: &Types) -> Result<Self, WireError>;
    /// `request` is the call that is answered; an answer does not repeat what it is about.
    fn answer_to_wire(answer: Self::Answer, request: &Self, types: &Types) -> Result<Self::Response, WireError>;
    fn answer_from_wire(&self, response: Self::Response, types: &Types) -> Result<Self::Answer, WireError>;
}

/// What OpenTofu declares. Deferral is not: an object is planned now, or the plan fails.
fn client_capabilities() -> Option<ClientCapabilities> {
    Some(ClientCapabilities { deferral_allowed: false, write_only_attributes_allowed: true })
}

fn never_deferred(deferred: Option<Deferred>) -> Result<(), WireError> {
    deferred.map_or(Ok(()), |_| Err(WireError::Deferred))
}

fn from_diagnostics(diagnostics: Vec<WireDiagnostic>) -> Diagnostics {
    diagnostics.into_iter().map(Diagnostic::from).collect()
}

fn to_diagnostics(diagnostics: Diagnostics) -> Vec<WireDiagnostic> {
    diagnostics.into_iter().map(WireDiagnostic::from).collect()
}

/// The argument of [`Provider::validate_provider_config`].
#[derive(Clone, Debug)]
pub struct ValidateProviderConfig(pub Value);

impl Call for ValidateProviderConfig {
    const METHOD: Method = Method::ValidateProviderConfig;
    type Answer = (Value, Diagnostics);
    type Request = validate_provider_config::Request;
    type Response = validate_provider_config::Response;

    fn to_wire(&self, types: &Types) -> Result<Self::Request, WireError> {
        Ok(Self::Request { config: to_dynamic("config", &self.0, types.provider())? })
    }

    fn from_wire(request: Self::Request, types: &Types) -> Result<Self, WireError> {
        Ok(Self(from_dynamic("config", request.config, types.provider())?))
    }

    fn answer_to_wire(
        (value, diagnostics): Self::Answer,
        _: &Self,
        types: &Types,
    ) -> Result<Self::Response, WireError> {
        Ok(Self::Response {
            prepared_config: to_dynamic("prepared_config", &value, types.provider())?,
            diagnostics: to_diagnostics(diagnostics),
        })
    }

    fn answer_from_wire(&self, response: Self::Response, types: &Types) -> Result<Self::Answer, WireError> {
        // Protocol 6 has no prepared configuration, and a provider of protocol 5 may leave it out.
        let value = match response.prepared_config {
            None => self.0.clone(),
            prepared => from_dynamic("prepared_config", prepared, types.provider())?,
        };
        Ok((value, from_diagnostics(response.diagnostics)))
    }
}

impl Call for ValidateResourceConfig {
    const METHOD: Method = Method::ValidateResourceConfig;
    type Answer = Diagnostics;
    type Request = validate_resource_config::Request;
    type Response = validate_resource_config::Response;

    fn to_wire(&self, types: &Types) -> Result<Self::Request, WireError> {
        Ok(Self::Request {
            config: to_dynamic("config", &self.config, types.resource(&self.type_name)?)?,
            type_name: self.type_name.clone(),
            client_capabilities: client_capabilities(),
        })
    }

    fn from_wire(request: Self::Request, types: &Types) -> Result<Self, WireError> {
        let config = from_dynamic("config", request.config, types.resource(&request.type_name)?)?;
        Ok(Self { type_name: request.type_name, config })
    }

    fn answer_to_wire(diagnostics: Diagnostics, _: &Self, _: &Types) -> Result<Self::Response, WireError> {
        Ok(Self::Response { diagnostics: to_diagnostics(diagnostics) })
    }

    fn answer_from_wire(&self, response: Self::Response, _: &Types) -> Result<Diagnostics, WireError> {
        Ok(from_diagnostics(response.diagnostics))
    }
}

/// The argument of [`Provider::validate_data_config`].
#[derive(Clone, Debug)]
pub struct ValidateDataConfig(pub ValidateResourceConfig);

impl Call for ValidateDataConfig {
    const METHOD: Method = Method::ValidateDataResourceConfig;
    type Answer = Diagnostics;
    type Request = validate_data_resource_config::Request;
    type Response = validate_data_resource_config::Response;

    fn to_wire(&self, types: &Types) -> Result<Self::Request, WireError> {
        Ok(Self::Request {
            config: to_dynamic("config", &self.0.config, types.data_source(&self.0.type_name)?)?,
            type_name: self.0.type_name.clone(),
        })
    }

    fn from_wire(request: Self::Request, types: &Types) -> Result<Self, WireError> {
        let config = from_dynamic("config", request.config, types.data_source(&request.type_name)?)?;
        Ok(Self(ValidateResourceConfig { type_name: request.type_name, config }))
    }

    fn answer_to_wire(diagnostics: Diagnostics, _: &Self, _: &Types) -> Result<Self::Response, WireError> {
        Ok(Self::Response { diagnostics: to_diagnostics(diagnostics) })
    }

    fn answer_from_wire(&self, response: Self::Response, _: &Types) -> Result<Diagnostics, WireError> {
        Ok(from_diagnostics(response.diagnostics))
    }
}

impl Call for Configure {
    const METHOD: Method = Method::ConfigureProvider;
    type Answer = Diagnostics;
    type Request = configure_provider::Request;
    type Response = configure_provider::Response;

    fn to_wire(&self, types: &Types) -> Result<Self::Request, WireError> {
        Ok(Self::Request {
            terraform_version: self.terraform_version.clone(),
            config: to_dynamic("config", &self.config, types.provider())?,
            client_capabilities: client_capabilities(),
        })
    }

    fn from_wire(request: Self::Request, types: &Types) -> Result<Self, WireError> {
        let config = from_dynamic("config", request.config, types.provider())?;
        Ok(Self { terraform_version: request.terraform_version, config })
    }

    fn answer_to_wire(diagnostics: Diagnostics, _: &Self, _: &Types) -> Result<Self::Response, WireError> {
        Ok(Self::Response { diagnostics: to_diagnostics(diagnostics) })
    }

    fn answer_from_wire(&self, response: Self::Response, _: &Types) -> Result<Diagnostics, WireError> {
        Ok(from_diagnostics(response.diagnostics))
    }
}

impl Call for UpgradeResourceState {
    const METHOD: Method = Method::UpgradeResourceState;
    type Answer = (Value, Diagnostics);
    type Request = upgrade_resource_state::Request;
    type Response = upgrade_resource_state::Response;

    fn to_wire(&self, _: &Types) -> Result<Self::Request, WireError> {
        Ok(Self::Request {
            type_name: self.type_name.clone(),
            version: self.version,
            raw_state: Some(RawState { json: self.attributes_json.clone(), flatmap: Default::default() }),
        })
    }

    fn from_wire(request: Self::Request, _: &Types) -> Result<Self, WireError> {
        let raw_state = request.raw_state.unwrap_or_default();
        if raw_state.json.is_empty() {
            let detail = "only states of format 4 and newer can be read".into();
            return Err(WireError::Value { what: "raw_state", detail });
        }
        Ok(Self { type_name: request.type_name, version: request.version, attributes_json: raw_state.json })
    }

    fn answer_to_wire(
        (state, diagnostics): Self::Answer,
        request: &Self,
        types: &Types,
    ) -> Result<Self::Response, WireError> {
        Ok(Self::Response {
            upgraded_state: to_dynamic("upgraded_state", &state, types.resource(&request.type_name)?)?,
            diagnostics: to_diagnostics(diagnostics),
        })
    }

    fn answer_from_wire(&self, response: Self::Response, types: &Types) -> Result<Self::Answer, WireError> {
        let state = from_dynamic("upgraded_state", response.upgraded_state, types.resource(&self.type_name)?)?;
        Ok((state, from_diagnostics(response.diagnostics)))
    }
}

impl Call for UpgradeResourceIdentity {
    const METHOD: Method = Method::UpgradeResourceIdentity;
    type Answer = (Identity, Diagnostics);
    type Request = upgrade_resource_identity::Request;
    type Response = upgrade_resource_identity::Response;

    fn to_wire(&self, _: &Types) -> Result<Self::Request, WireError> {
        Ok(Self::Request {
            type_name: self.type_name.clone(),
            version: self.version,
            raw_identity: Some(RawState { json: self.identity_json.clone(), flatmap: Default::default() }),
        })
    }

    fn from_wire(request: Self::Request, _: &Types) -> Result<Self, WireError> {
        let identity_json = request.raw_identity.unwrap_or_default().json;
        Ok(Self { type_name: request.type_name, version: request.version, identity_json })
    }

    fn answer_to_wire(
        (identity, diagnostics): Self::Answer,
        request: &Self,
        types: &Types,
    ) -> Result<Self::Response, WireError> {
        Ok(Self::Response {
            upgraded_identity: types.identity_to(&request.type_name, &identity)?,
            diagnostics: to_diagnostics(diagnostics),
        })
    }

    fn answer_from_wire(&self, response: Self::Response, types: &Types) -> Result<Self::Answer, WireError> {
        let identity = types.identity_from(&self.type_name, response.upgraded_identity)?;
        Ok((identity, from_diagnostics(response.diagnostics)))
    }
}

impl Call for ReadResource {
    const METHOD: Method = Method::ReadResource;
    type Answer = ReadAnswer;
    type Request = read_resource::Request;
    type Response = read_resource::Response;

    fn to_wire(&self, types: &Types) -> Result<Self::Request, WireError> {
        Ok(Self::Request {
            type_name: self.type_name.clone(),
            current_state: to_dynamic("current_state", &self.current, types.resource(&self.type_name)?)?,
            private: self.private.clone(),
            provider_meta: types.meta(),
            client_capabilities: client_capabilities(),
            current_identity: types.identity_to(&self.type_name, &self.identity)?,
        })
    }

    fn from_wire(request: Self::Request, types: &Types) -> Result<Self, WireError> {
        let current = from_dynamic("current_state", request.current_state, types.resource(&request.type_name)?)?;
        let identity = types.identity_from(&request.type_name, request.current_identity)?;
        Ok(Self { type_name: request.type_name, current, private: request.private, identity })
    }

    fn answer_to_wire(answer: ReadAnswer, request: &Self, types: &Types) -> Result<Self::Response, WireError> {
        Ok(Self::Response {
            new_state: to_dynamic("new_state", &answer.new_state, types.resource(&request.type_name)?)?,
            diagnostics: to_diagnostics(answer.diagnostics),
            private: answer.private,
            deferred: None,
            new_identity: types.identity_to(&request.type_name, &answer.identity)?,
        })
    }

    fn answer_from_wire(&self, response: Self::Response, types: &Types) -> Result<ReadAnswer, WireError> {
        never_deferred(response.deferred)?;
        Ok(ReadAnswer {
            new_state: from_dynamic("new_state", response.new_state, types.resource(&self.type_name)?)?,
            private: response.private,
            identity: types.identity_from(&self.type_name, response.new_identity)?,
            diagnostics: from_diagnostics(response.diagnostics),
        })
    }
}

impl Call for PlanResourceChange {
    const METHOD: Method = Method::PlanResourceChange;
    type Answer = PlanAnswer;
    type Request = plan_resource_change::Request;
    type Response = plan_resource_change::Response;

    fn to_wire(&self, types: &Types) -> Result<Self::Request, WireError> {
        let ty = types.resource(&self.type_name)?;
        Ok(Self::Request {
            type_name: self.type_name.clone(),
            prior_state: to_dynamic("prior_state", &self.prior, ty)?,
            proposed_new_state: to_dynamic("proposed_new_state", &self.proposed, ty)?,
            config: to_dynamic("config", &self.config, ty)?,
            prior_private: self.prior_private.clone(),
            provider_meta: types.meta(),
            client_capabilities: client_capabilities(),
            prior_identity: types.identity_to(&self.type_name, &self.prior_identity)?,
        })
    }

    fn from_wire(request: Self::Request, types: &Types) -> Result<Self, WireError> {
        let ty = types.resource(&request.type_name)?;
        Ok(Self {
            prior: from_dynamic("prior_state", request.prior_state, ty)?,
            proposed: from_dynamic("proposed_new_state", request.proposed_new_state, ty)?,
            config: from_dynamic("config", request.config, ty)?,
            prior_private: request.prior_private,
            prior_identity: types.identity_from(&request.type_name, request.prior_identity)?,
            type_name: request.type_name,
        })
    }

    fn answer_to_wire(answer: PlanAnswer, request: &Self, types: &Types) -> Result<Self::Response, WireError> {
        Ok(Self::Response {
            planned_state: to_dynamic("planned_state", &answer.planned, types.resource(&request.type_name)?)?,
            requires_replace: answer.requires_replace.into_iter().map(Into::into).collect(),
            planned_private: answer.planned_private,
            diagnostics: to_diagnostics(answer.diagnostics),
            legacy_type_system: answer.legacy_type_system,
            deferred: None,
            planned_identity: types.identity_to(&request.type_name, &answer.planned_identity)?,
        })
    }

    fn answer_from_wire(&self, response: Self::Response, types: &Types) -> Result<PlanAnswer, WireError> {
        never_deferred(response.deferred)?;
        Ok(PlanAnswer {
            planned: from_dynamic("planned_state", response.planned_state, types.resource(&self.type_name)?)?,
            requires_replace: response.requires_replace.into_iter().map(Path::from).collect(),
            planned_private: response.planned_private,
            planned_identity: types.identity_from(&self.type_name, response.planned_identity)?,
            legacy_type_system: response.legacy_type_system,
            diagnostics: from_diagnostics(response.diagnostics),
        })
    }
}

impl Call for ApplyResourceChange {
    const METHOD: Method = Method::ApplyResourceChange;
    type Answer = ApplyAnswer;
    type Request = apply_resource_change::Request;
    type Response = apply_resource_change::Response;

    fn to_wire(&self, types: &Types) -> Result<Self::Request, WireError> {
        let ty = types.resource(&self.type_name)?;
        Ok(Self::Request {
            type_name: self.type_name.clone(),
            prior_state: to_dynamic("prior_state", &self.prior, ty)?,
            planned_state: to_dynamic("planned_state", &self.planned, ty)?,
            config: to_dynamic("config", &self.config, ty)?,
            planned_private: self.planned_private.clone(),
            provider_meta: types.meta(),
            planned_identity: types.identity_to(&self.type_name, &self.planned_identity)?,
        })
    }

    fn from_wire(request: Self::Request, types: &Types) -> Result<Self, WireError> {
        let ty = types.resource(&request.type_name)?;
        Ok(Self {
            prior: from_dynamic("prior_state", request.prior_state, ty)?,
            planned: from_dynamic("planned_state", request.planned_state, ty)?,
            config: from_dynamic("config", request.config, ty)?,
            planned_private: request.planned_private,
            planned_identity: types.identity_from(&request.type_name, request.planned_identity)?,
            type_name: request.type_name,
        })
    }

    fn answer_to_wire(answer: ApplyAnswer, request: &Self, types: &Types) -> Result<Self::Response, WireError> {
        Ok(Self::Response {
            new_state: to_dynamic("new_state", &answer.new_state, types.resource(&request.type_name)?)?,
            private: answer.private,
            diagnostics: to_diagnostics(answer.diagnostics),
            legacy_type_system: answer.legacy_type_system,
            new_identity: types.identity_to(&request.type_name, &answer.identity)?,
        })
    }

    fn answer_from_wire(&self, response: Self::Response, types: &Types) -> Result<ApplyAnswer, WireError> {
        Ok(ApplyAnswer {
            new_state: from_dynamic("new_state", response.new_state, types.resource(&self.type_name)?)?,
            private: response.private,
            identity: types.identity_from(&self.type_name, response.new_identity)?,
            legacy_type_system: response.legacy_type_system,
            diagnostics: from_diagnostics(response.diagnostics),
        })
    }
}

impl Call for ImportResourceState {
    const METHOD: Method = Method::ImportResourceState;
    type Answer = (Vec<ImportedResource>, Diagnostics);
    type Request = import_resource_state::Request;
    type Response = import_resource_state::Response;

    fn to_wire(&self, types: &Types) -> Result<Self::Request, WireError> {
        Ok(Self::Request {
            type_name: self.type_name.clone(),
            id: self.id.clone(),
            client_capabilities: client_capabilities(),
            identity: types.identity_to(&self.type_name, &self.identity)?,
        })
    }

    fn from_wire(request: Self::Request, types: &Types) -> Result<Self, WireError> {
        let identity = types.identity_from(&request.type_name, request.identity)?;
        Ok(Self { type_name: request.type_name, id: request.id, identity })
    }

    fn answer_to_wire(
        (imported, diagnostics): Self::Answer,
        _: &Self,
        types: &Types,
    ) -> Result<Self::Response, WireError> {
        let to_wire = |resource: ImportedResource| {
            Ok(import_resource_state::ImportedResource {
                state: to_dynamic("state", &resource.state, types.resource(&resource.type_name)?)?,
                identity: types.identity_to(&resource.type_name, &resource.identity)?,
                type_name: resource.type_name,
                private: resource.private,
            })
        };
        Ok(Self::Response {
            imported_resources: imported.into_iter().map(to_wire).collect::<Result<_, WireError>>()?,
            diagnostics: to_diagnostics(diagnostics),
            deferred: None,
        })
    }

    fn answer_from_wire(&self, response: Self::Response, types: &Types) -> Result<Self::Answer, WireError> {
        never_deferred(response.deferred)?;
        let from_wire = |resource: import_resource_state::ImportedResource| {
            Ok(ImportedResource {
                state: from_dynamic("state", resource.state, types.resource(&resource.type_name)?)?,
                identity: types.identity_from(&resource.type_name, resource.identity)?,
                type_name: resource.type_name,
                private: resource.private,
            })
        };
        let imported = response.imported_resources.into_iter().map(from_wire).collect::<Result<_, WireError>>()?;
        Ok((imported, from_diagnostics(response.diagnostics)))
    }
}

impl Call for ReadDataSource {
    const METHOD: Method = Method::ReadDataSource;
    type Answer = (Value, Diagnostics);
    type Request = read_data_source::Request;
    type Response = read_data_source::Response;

    fn to_wire(&self, types: &Types) -> Result<Self::Request, WireError> {
        Ok(Self::Request {
            config: to_dynamic("config", &self.config, types.data_source(&self.type_name)?)?,
            type_name: self.type_name.clone(),
            provider_meta: types.meta(),
            client_capabilities: client_capabilities(),
        })
    }

    fn from_wire(request: Self::Request, types: &Types) -> Result<Self, WireError> {
        let config = from_dynamic("config", request.config, types.data_source(&request.type_name)?)?;
        Ok(Self { type_name: request.type_name, config })
    }

    fn answer_to_wire(
        (state, diagnostics): Self::Answer,
        request: &Self,
        types: &Types,
    ) -> Result<Self::Response, WireError> {
        Ok(Self::Response {
            state: to_dynamic("state", &state, types.data_source(&request.type_name)?)?,
            diagnostics: to_diagnostics(diagnostics),
            deferred: None,
        })
    }

    fn answer_from_wire(&self, response: Self::Response, types: &Types) -> Result<Self::Answer, WireError> {
        never_deferred(response.deferred)?;
        let state = from_dynamic("state", response.state, types.data_source(&self.type_name)?)?;
        Ok((state, from_diagnostics(response.diagnostics)))
    }
}

/// [`Provider::stop`]; the answer says what went wrong, if anything.
#[derive(Clone, Debug)]
pub struct StopProvider;

impl Call for StopProvider {
    const METHOD: Method = Method::StopProvider;
    type Answer = String;
    type Request = stop_provider::Request;
    type Response = stop_provider::Response;

    fn to_wire(&self, _: &Types) -> Result<Self::Request, WireError> {
        Ok(Self::Request {})
    }

    fn from_wire(_: Self::Request, _: &Types) -> Result<Self, WireError> {
        Ok(Self)
    }

    fn answer_to_wire(error: String, _: &Self, _: &Types) -> Result<Self::Response, WireError> {
        Ok(Self::Response { error })
    }

    fn answer_from_wire(&self, response: Self::Response, _: &Types) -> Result<String, WireError> {
        Ok(response.error)
    }
}
