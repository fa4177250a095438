//! A call's bytes as readable JSON: nothing of them is left out, and nothing looks like something else.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use landform_cty::{Data, Refinement, Type, Value};
use landform_protocol::wire::tfplugin::{
    self, AttributePath, ClientCapabilities, Deferred, DynamicValue, ResourceIdentityData,
};
use landform_protocol::wire::{Method, Types};
use landform_protocol::{Path, Step};
use prost::Message;
use serde_json::{Map, Value as Json, json};

use super::{Call, Response};

/// One field of a message. Values are told apart because only they follow the schema.
#[derive(Clone, Debug)]
pub enum Field {
    Value(Json),
    Other(Json),
}

#[derive(Clone, Debug, Default)]
pub struct Fields(pub Vec<(&'static str, Field)>);

#[derive(Clone, Debug)]
pub struct Readable {
    /// The name in protocol 6, also for protocol 5.
    pub method: String,
    pub type_name: Option<String>,
    pub request: Fields,
    pub response: Fields,
}

impl Fields {
    fn value(&mut self, name: &'static str, value: Option<DynamicValue>, ty: Option<&Type>) {
        self.0.push((name, Field::Value(dynamic(value, ty))));
    }

    fn bytes(&mut self, name: &'static str, bytes: &[u8]) {
        let text =
            std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| json!({"«base64»": STANDARD.encode(bytes)}));
        self.0.push((name, Field::Other(text.map_or_else(|other| other, Json::String))));
    }

    fn other(&mut self, name: &'static str, value: Json) {
        self.0.push((name, Field::Other(value)));
    }

    fn capabilities(&mut self, capabilities: Option<ClientCapabilities>) {
        let json = capabilities.map_or(json!("«absent»"), |capabilities| {
            json!({
                "deferral_allowed": capabilities.deferral_allowed,
                "write_only_attributes_allowed": capabilities.write_only_attributes_allowed,
            })
        });
        self.other("client_capabilities", json);
    }

    /// Rare fields are shown where they are set.
    fn identity(&mut self, name: &'static str, identity: Option<ResourceIdentityData>) {
        if let Some(identity) = identity {
            self.other(name, json!({"«base64»": STANDARD.encode(identity.encode_to_vec())}));
        }
    }

    fn meta(&mut self, meta: Option<DynamicValue>) {
        if let Some(meta) = meta {
            self.other("provider_meta", json!({"«base64»": STANDARD.encode(meta.encode_to_vec())}));
        }
    }

    fn deferred(&mut self, deferred: Option<Deferred>) {
        if let Some(deferred) = deferred {
            self.other("deferred", json!(deferred.reason));
        }
    }

    fn diagnostics(&mut self, diagnostics: Vec<tfplugin::Diagnostic>) {
        let one = |diagnostic: tfplugin::Diagnostic| {
            json!({
                "severity": diagnostic.severity().as_str_name(),
                "summary": diagnostic.summary,
                "detail": diagnostic.detail,
                "attribute": diagnostic.attribute.map(path),
            })
        };
        if !diagnostics.is_empty() {
            self.other("diagnostics", diagnostics.into_iter().map(one).collect());
        }
    }

    /// Decodes a message. A field that we do not know must not go unseen: it makes the message longer than what we
    /// read of it.
    fn decode<M: Message + Default>(&mut self, bytes: &[u8]) -> M {
        let message = M::decode(bytes).unwrap_or_default();
        if message.encoded_len() != bytes.len() {
            self.other("«unread»", json!({"«base64»": STANDARD.encode(bytes)}));
        }
        message
    }
}

pub fn read(call: &Call, types: &Types) -> Readable {
    let Some(method) = Method::from_path(call.version(), &call.method) else {
        let mut readable = Readable {
            method: call.method.rsplit('/').next().unwrap_or_default().to_owned(),
            type_name: None,
            request: Fields::default(),
            response: Fields::default(),
        };
        readable.request.bytes("message", &call.request);
        match &call.response {
            Response::Message(bytes) => readable.response.bytes("message", bytes),
            Response::Status { code, message } => status(&mut readable.response, *code, message),
        }
        return readable;
    };
    let (mut request, mut response) = (Fields::default(), Fields::default());
    let type_name = read_request(method, &call.request, types, &mut request);
    match &call.response {
        Response::Message(bytes) => read_response(method, bytes, type_name.as_deref(), types, &mut response),
        Response::Status { code, message } => status(&mut response, *code, message),
    }
    Readable { method: method.name().to_owned(), type_name, request, response }
}

fn status(fields: &mut Fields, code: i32, message: &str) {
    fields.other("status", json!({"code": code, "message": message}));
}

fn read_request(method: Method, bytes: &[u8], types: &Types, fields: &mut Fields) -> Option<String> {
    match method {
        Method::ValidateProviderConfig => {
            let request: tfplugin::validate_provider_config::Request = fields.decode(bytes);
            fields.value("config", request.config, Some(types.provider()));
            None
        }
        Method::ConfigureProvider => {
            let request: tfplugin::configure_provider::Request = fields.decode(bytes);
            fields.other("terraform_version", json!(request.terraform_version));
            fields.value("config", request.config, Some(types.provider()));
            fields.capabilities(request.client_capabilities);
            None
        }
        Method::ValidateResourceConfig => {
            let request: tfplugin::validate_resource_config::Request = fields.decode(bytes);
            fields.value("config", request.config, types.resource(&request.type_name).ok());
            fields.capabilities(request.client_capabilities);
            Some(request.type_name)
        }
        Method::ValidateDataResourceConfig => {
            let request: tfplugin::validate_data_resource_config::Request = fields.decode(bytes);
            fields.value("config", request.config, types.data_source(&request.type_name).ok());
            Some(format!("data.{}", request.type_name))
        }
        Method::UpgradeResourceState => {
            let request: tfplugin::upgrade_resource_state::Request = fields.decode(bytes);
            let raw = request.raw_state.unwrap_or_default();
            fields.other("version", json!(request.version));
            let json = serde_json::from_slice(&raw.json);
            fields.0.push(("raw_state", Field::Value(json.unwrap_or_else(|_| json!("«unreadable»")))));
            Some(request.type_name)
        }
        Method::UpgradeResourceIdentity => {
            let request: tfplugin::upgrade_resource_identity::Request = fields.decode(bytes);
            fields.other("version", json!(request.version));
            let json = serde_json::from_slice(&request.raw_identity.unwrap_or_default().json);
            fields.0.push(("raw_identity", Field::Value(json.unwrap_or_else(|_| json!("«unreadable»")))));
            Some(request.type_name)
        }
        Method::ReadResource => {
            let request: tfplugin::read_resource::Request = fields.decode(bytes);
            fields.value("current_state", request.current_state, types.resource(&request.type_name).ok());
            fields.bytes("private", &request.private);
            fields.meta(request.provider_meta);
            fields.capabilities(request.client_capabilities);
            fields.identity("current_identity", request.current_identity);
            Some(request.type_name)
        }
        Method::PlanResourceChange => {
            let request: tfplugin::plan_resource_change::Request = fields.decode(bytes);
            let ty = types.resource(&request.type_name).ok();
            fields.value("prior_state", request.prior_state, ty);
            fields.value("proposed_new_state", request.proposed_new_state, ty);
            fields.value("config", request.config, ty);
            fields.bytes("prior_private", &request.prior_private);
            fields.meta(request.provider_meta);
            fields.capabilities(request.client_capabilities);
            fields.identity("prior_identity", request.prior_identity);
            Some(request.type_name)
        }
        Method::ApplyResourceChange => {
            let request: tfplugin::apply_resource_change::Request = fields.decode(bytes);
            let ty = types.resource(&request.type_name).ok();
            fields.value("prior_state", request.prior_state, ty);
            fields.value("planned_state", request.planned_state, ty);
            fields.value("config", request.config, ty);
            fields.bytes("planned_private", &request.planned_private);
            fields.meta(request.provider_meta);
            fields.identity("planned_identity", request.planned_identity);
            Some(request.type_name)
        }
        Method::ImportResourceState => {
            let request: tfplugin::import_resource_state::Request = fields.decode(bytes);
            fields.other("id", json!(request.id));
            fields.capabilities(request.client_capabilities);
            fields.identity("identity", request.identity);
            Some(request.type_name)
        }
        Method::ReadDataSource => {
            let request: tfplugin::read_data_source::Request = fields.decode(bytes);
            fields.value("config", request.config, types.data_source(&request.type_name).ok());
            fields.meta(request.provider_meta);
            fields.capabilities(request.client_capabilities);
            Some(format!("data.{}", request.type_name))
        }
        Method::GetProviderSchema | Method::GetResourceIdentitySchemas | Method::StopProvider => None,
    }
}

fn read_response(method: Method, bytes: &[u8], type_name: Option<&str>, types: &Types, fields: &mut Fields) {
    let ty = type_name.and_then(|name| match name.strip_prefix("data.") {
        Some(name) => types.data_source(name).ok(),
        None => types.resource(name).ok(),
    });
    match method {
        Method::ValidateProviderConfig => {
            let response: tfplugin::validate_provider_config::Response = fields.decode(bytes);
            // Protocol 6 has no such field, and nobody uses what protocol 5 says there.
            fields.diagnostics(response.diagnostics);
        }
        Method::ConfigureProvider => {
            let response: tfplugin::configure_provider::Response = fields.decode(bytes);
            fields.diagnostics(response.diagnostics);
        }
        Method::ValidateResourceConfig => {
            let response: tfplugin::validate_resource_config::Response = fields.decode(bytes);
            fields.diagnostics(response.diagnostics);
        }
        Method::ValidateDataResourceConfig => {
            let response: tfplugin::validate_data_resource_config::Response = fields.decode(bytes);
            fields.diagnostics(response.diagnostics);
        }
        Method::UpgradeResourceState => {
            let response: tfplugin::upgrade_resource_state::Response = fields.decode(bytes);
            fields.value("upgraded_state", response.upgraded_state, ty);
            fields.diagnostics(response.diagnostics);
        }
        Method::UpgradeResourceIdentity => {
            let response: tfplugin::upgrade_resource_identity::Response = fields.decode(bytes);
            fields.identity("upgraded_identity", response.upgraded_identity);
            fields.diagnostics(response.diagnostics);
        }
        Method::ReadResource => {
            let response: tfplugin::read_resource::Response = fields.decode(bytes);
            fields.value("new_state", response.new_state, ty);
            fields.bytes("private", &response.private);
            fields.diagnostics(response.diagnostics);
            fields.deferred(response.deferred);
            fields.identity("new_identity", response.new_identity);
        }
        Method::PlanResourceChange => {
            let response: tfplugin::plan_resource_change::Response = fields.decode(bytes);
            fields.value("planned_state", response.planned_state, ty);
            // Their order means nothing, and some providers' order is that of a hash table.
            let mut paths: Vec<Json> = response.requires_replace.into_iter().map(path).collect();
            paths.sort_by_key(Json::to_string);
            fields.other("requires_replace", paths.into());
            fields.bytes("planned_private", &response.planned_private);
            fields.other("legacy_type_system", json!(response.legacy_type_system));
            fields.diagnostics(response.diagnostics);
            fields.deferred(response.deferred);
            fields.identity("planned_identity", response.planned_identity);
        }
        Method::ApplyResourceChange => {
            let response: tfplugin::apply_resource_change::Response = fields.decode(bytes);
            fields.value("new_state", response.new_state, ty);
            fields.bytes("private", &response.private);
            fields.other("legacy_type_system", json!(response.legacy_type_system));
            fields.diagnostics(response.diagnostics);
            fields.identity("new_identity", response.new_identity);
        }
        Method::ImportResourceState => {
            let response: tfplugin::import_resource_state::Response = fields.decode(bytes);
            for resource in response.imported_resources {
                fields.other("type_name", json!(resource.type_name));
                fields.value("state", resource.state, types.resource(&resource.type_name).ok());
                fields.bytes("private", &resource.private);
                fields.identity("identity", resource.identity);
            }
            fields.diagnostics(response.diagnostics);
            fields.deferred(response.deferred);
        }
        Method::ReadDataSource => {
            let response: tfplugin::read_data_source::Response = fields.decode(bytes);
            fields.value("state", response.state, ty);
            fields.diagnostics(response.diagnostics);
            fields.deferred(response.deferred);
        }
        Method::GetProviderSchema | Method::GetResourceIdentitySchemas | Method::StopProvider => {}
    }
}

fn dynamic(value: Option<DynamicValue>, ty: Option<&Type>) -> Json {
    let (Some(value), Some(ty)) = (value, ty) else { return json!("«absent»") };
    let decoded = if value.msgpack.is_empty() {
        serde_json::from_slice(&value.json).ok().and_then(|json| Value::from_json(&json, ty).ok())
    } else {
        Value::from_msgpack(&value.msgpack, ty).ok()
    };
    match decoded {
        Some(decoded) => show(&decoded, ty),
        None => json!({"«unreadable»": STANDARD.encode(value.encode_to_vec())}),
    }
}

/// `ty` is what the schema says; where it leaves the type open, the value's own is part of what was said.
fn show(value: &Value, ty: &Type) -> Json {
    let shown = match &value.data {
        Data::Null => Json::Null,
        Data::Unknown(refinement) => unknown(refinement),
        Data::Bool(value) => json!(value),
        Data::Number(number) => serde_json::from_str(&number.to_string()).unwrap_or_else(|_| json!(number.to_string())),
        Data::String(text) => json!(text),
        Data::Sequence(elements) => elements.iter().map(|element| show(element, inner(ty, element))).collect(),
        Data::Mapping(elements) => {
            let shown = elements.iter().map(|(name, element)| {
                let ty = ty.attribute(name).unwrap_or_else(|| inner(ty, element));
                (name.clone(), show(element, ty))
            });
            Json::Object(shown.collect::<Map<_, _>>())
        }
    };
    if *ty == Type::Dynamic && !value.is_null() {
        json!({"«type»": value.ty.to_json(), "«value»": shown})
    } else {
        shown
    }
}

/// The type that the schema gives to an element; a tuple's elements have their own.
fn inner<'a>(ty: &'a Type, element: &'a Value) -> &'a Type {
    ty.element().unwrap_or(&element.ty)
}

fn unknown(refinement: &Refinement) -> Json {
    if *refinement == Refinement::default() {
        return json!("«unknown»");
    }
    let bound = |bound: &Option<(landform_cty::Number, bool)>| {
        bound.as_ref().map(|(number, inclusive)| json!([number.to_string(), inclusive]))
    };
    json!({"«unknown»": {
        "nullable": refinement.nullable,
        "prefix": refinement.string_prefix,
        "min": bound(&refinement.number_min),
        "max": bound(&refinement.number_max),
        "length_min": refinement.length_min,
        "length_max": refinement.length_max,
    }})
}

fn path(path: AttributePath) -> Json {
    let step = |step: Step| match step {
        Step::Attribute(name) => json!({"attribute": name}),
        Step::Key(key) => json!({"key": key}),
        Step::Index(index) => json!({"index": index}),
    };
    Path::from(path).into_iter().map(step).collect()
}
