use std::collections::BTreeMap;

use landform_cty::{Type, Value};

use super::tfplugin;
use crate::{Diagnostic, Identity, Path, ProviderSchema, Schema, Severity, Step};

/// Why a message cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    #[error("the provider has no {kind} {name:?}")]
    UnknownType { kind: &'static str, name: String },
    #[error("{what}: {detail}")]
    Value { what: &'static str, detail: String },
    #[error("the schema of {place}: {detail}")]
    Schema { place: String, detail: String },
    /// The answer asks for something that a client may only be asked for if it said that it can do it.
    #[error("the provider postponed the object, though it was not allowed to")]
    Deferred,
}

/// The types that a schema implies, worked out once: a value can only be written or read against its type.
#[derive(Debug)]
pub struct Types {
    provider: Type,
    resources: BTreeMap<String, Type>,
    data_sources: BTreeMap<String, Type>,
    identities: BTreeMap<String, Type>,
    has_meta: bool,
}

impl Types {
    pub fn new(schema: &ProviderSchema) -> Types {
        let implied = |schemas: &BTreeMap<String, Schema>| {
            schemas.iter().map(|(name, schema)| (name.clone(), schema.block.implied_type())).collect()
        };
        Types {
            provider: schema.provider.block.implied_type(),
            resources: implied(&schema.resources),
            data_sources: implied(&schema.data_sources),
            identities: implied(&schema.identities),
            has_meta: schema.provider_meta.is_some(),
        }
    }

    pub fn provider(&self) -> &Type {
        &self.provider
    }

    /// The null that goes with each call about an object, if the provider has a schema for it.
    pub(super) fn meta(&self) -> Option<tfplugin::DynamicValue> {
        const NIL: u8 = 0xc0;
        self.has_meta.then(|| tfplugin::DynamicValue { msgpack: vec![NIL], json: Vec::new() })
    }

    pub fn resource(&self, name: &str) -> Result<&Type, WireError> {
        self.resources.get(name).ok_or_else(|| WireError::UnknownType { kind: "resource type", name: name.into() })
    }

    /// An identity goes only where the provider has a schema for it.
    pub(super) fn identity_to(
        &self,
        name: &str,
        identity: &Identity,
    ) -> Result<Option<tfplugin::ResourceIdentityData>, WireError> {
        match (identity, self.identities.get(name)) {
            (Some(value), Some(ty)) if !value.is_null() => {
                Ok(Some(tfplugin::ResourceIdentityData { identity_data: to_dynamic("identity", value, ty)? }))
            }
            _ => Ok(None),
        }
    }

    pub(super) fn identity_from(
        &self,
        name: &str,
        wire: Option<tfplugin::ResourceIdentityData>,
    ) -> Result<Identity, WireError> {
        match (wire.and_then(|wire| wire.identity_data), self.identities.get(name)) {
            (Some(data), Some(ty)) => {
                Ok(Some(from_dynamic("identity", Some(data), ty)?).filter(|value| !value.is_null()))
            }
            _ => Ok(None),
        }
    }

    pub fn data_source(&self, name: &str) -> Result<&Type, WireError> {
        self.data_sources.get(name).ok_or_else(|| WireError::UnknownType { kind: "data source", name: name.into() })
    }
}

pub fn to_dynamic(what: &'static str, value: &Value, ty: &Type) -> Result<Option<tfplugin::DynamicValue>, WireError> {
    let msgpack = value.to_msgpack(ty).map_err(|error| WireError::Value { what, detail: error.to_string() })?;
    Ok(Some(tfplugin::DynamicValue { msgpack, json: Vec::new() }))
}

/// A message without the value, or with an empty one, means null.
pub fn from_dynamic(what: &'static str, value: Option<tfplugin::DynamicValue>, ty: &Type) -> Result<Value, WireError> {
    let value = value.unwrap_or_default();
    let failed = |detail: String| WireError::Value { what, detail };
    if !value.msgpack.is_empty() {
        Value::from_msgpack(&value.msgpack, ty).map_err(|error| failed(error.to_string()))
    } else if !value.json.is_empty() {
        let json = serde_json::from_slice(&value.json).map_err(|error| failed(error.to_string()))?;
        Value::from_json(&json, ty).map_err(|error| failed(error.to_string()))
    } else {
        Ok(Value::null(ty.clone()))
    }
}

impl From<tfplugin::AttributePath> for Path {
    fn from(path: tfplugin::AttributePath) -> Path {
        use tfplugin::attribute_path::step::Selector;
        path.steps
            .into_iter()
            .filter_map(|step| step.selector)
            .map(|selector| match selector {
                Selector::AttributeName(name) => Step::Attribute(name),
                Selector::ElementKeyString(key) => Step::Key(key),
                Selector::ElementKeyInt(index) => Step::Index(index),
            })
            .collect()
    }
}

impl From<Path> for tfplugin::AttributePath {
    fn from(path: Path) -> tfplugin::AttributePath {
        use tfplugin::attribute_path::{Step as WireStep, step::Selector};
        let selector = |step| match step {
            Step::Attribute(name) => Selector::AttributeName(name),
            Step::Key(key) => Selector::ElementKeyString(key),
            Step::Index(index) => Selector::ElementKeyInt(index),
        };
        tfplugin::AttributePath {
            steps: path.into_iter().map(|step| WireStep { selector: Some(selector(step)) }).collect(),
        }
    }
}

impl From<tfplugin::Diagnostic> for Diagnostic {
    fn from(diagnostic: tfplugin::Diagnostic) -> Diagnostic {
        // What says neither is taken for the worse.
        let severity = match diagnostic.severity() {
            tfplugin::diagnostic::Severity::Warning => Severity::Warning,
            tfplugin::diagnostic::Severity::Error | tfplugin::diagnostic::Severity::Invalid => Severity::Error,
        };
        Diagnostic {
            severity,
            summary: diagnostic.summary,
            detail: diagnostic.detail,
            attribute: diagnostic.attribute.map(Path::from).filter(|path| !path.is_empty()),
        }
    }
}

impl From<Diagnostic> for tfplugin::Diagnostic {
    fn from(diagnostic: Diagnostic) -> tfplugin::Diagnostic {
        let severity = match diagnostic.severity {
            Severity::Error => tfplugin::diagnostic::Severity::Error,
            Severity::Warning => tfplugin::diagnostic::Severity::Warning,
        };
        tfplugin::Diagnostic {
            severity: severity.into(),
            summary: diagnostic.summary,
            detail: diagnostic.detail,
            attribute: diagnostic.attribute.map(Into::into),
        }
    }
}
