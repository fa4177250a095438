use std::collections::BTreeMap;

use landform_cty::Type;
use prost::Message;

use super::{Version, WireError, tfplugin, tfplugin5, tfplugin6};
use crate::{
    Attribute, AttributeKind, Block, Diagnostics, NestedBlock, Nesting, ProviderSchema, Schema, ServerCapabilities,
};

/// Reads the answer to GetProviderSchema from its bytes, which is also the form in which schemas are cached.
pub fn schema_from_wire(version: Version, bytes: &[u8]) -> Result<(ProviderSchema, Diagnostics), WireError> {
    let unreadable = |error: prost::DecodeError| schema_error("the provider", error);
    match version {
        Version::V5 => v5::from_wire(Message::decode(bytes).map_err(unreadable)?),
        Version::V6 => v6::from_wire(Message::decode(bytes).map_err(unreadable)?),
    }
}

pub fn schema_to_wire(version: Version, schema: &ProviderSchema) -> Result<Vec<u8>, WireError> {
    match version {
        Version::V5 => Ok(v5::to_wire(schema)?.encode_to_vec()),
        Version::V6 => Ok(v6::to_wire(schema)?.encode_to_vec()),
    }
}

/// Reads the answer to GetResourceIdentitySchemas, likewise.
pub fn identities_from_wire(bytes: &[u8]) -> Result<(BTreeMap<String, Schema>, Diagnostics), WireError> {
    let wire = tfplugin::get_resource_identity_schemas::Response::decode(bytes)
        .map_err(|error| schema_error("the provider's identities", error))?;
    let mut identities = BTreeMap::new();
    for (name, identity) in wire.identity_schemas {
        let attribute = |wire: tfplugin::resource_identity_schema::IdentityAttribute| {
            let ty = type_from_wire(&wire.name, &wire.r#type)?;
            let attribute = Attribute {
                kind: AttributeKind::Plain(ty),
                required: wire.required_for_import,
                optional: wire.optional_for_import,
                computed: false,
                sensitive: false,
                write_only: false,
                description: wire.description,
                deprecated: None,
            };
            Ok((wire.name, attribute))
        };
        let attributes = identity.identity_attributes.into_iter().map(attribute).collect::<Result<_, WireError>>()?;
        identities.insert(name, Schema { version: identity.version, block: Block { attributes, ..Block::default() } });
    }
    Ok((identities, wire.diagnostics.into_iter().map(Into::into).collect()))
}

pub fn identities_to_wire(schema: &ProviderSchema) -> Vec<u8> {
    use tfplugin::resource_identity_schema::IdentityAttribute;
    let identity = |(name, schema): (&String, &Schema)| {
        let attribute = |(name, attribute): (&String, &Attribute)| IdentityAttribute {
            name: name.clone(),
            r#type: type_to_wire(&attribute.implied_type()),
            required_for_import: attribute.required,
            optional_for_import: attribute.optional,
            description: attribute.description.clone(),
        };
        let identity_attributes = schema.block.attributes.iter().map(attribute).collect();
        (name.clone(), tfplugin::ResourceIdentitySchema { version: schema.version, identity_attributes })
    };
    let identity_schemas = schema.identities.iter().map(identity).collect();
    tfplugin::get_resource_identity_schemas::Response { identity_schemas, diagnostics: Vec::new() }.encode_to_vec()
}

fn schema_error(place: &str, detail: impl ToString) -> WireError {
    WireError::Schema { place: place.into(), detail: detail.to_string() }
}

fn type_from_wire(name: &str, json: &[u8]) -> Result<Type, WireError> {
    serde_json::from_slice(json)
        .map_err(|error| schema_error(name, error))
        .and_then(|json| Type::from_json(&json).map_err(|error| schema_error(name, error)))
}

fn type_to_wire(ty: &Type) -> Vec<u8> {
    ty.to_json().to_string().into_bytes()
}

impl From<tfplugin::ServerCapabilities> for ServerCapabilities {
    fn from(wire: tfplugin::ServerCapabilities) -> ServerCapabilities {
        ServerCapabilities {
            plan_destroy: wire.plan_destroy,
            get_provider_schema_optional: wire.get_provider_schema_optional,
            move_resource_state: wire.move_resource_state,
        }
    }
}

impl From<ServerCapabilities> for tfplugin::ServerCapabilities {
    fn from(capabilities: ServerCapabilities) -> tfplugin::ServerCapabilities {
        tfplugin::ServerCapabilities {
            plan_destroy: capabilities.plan_destroy,
            get_provider_schema_optional: capabilities.get_provider_schema_optional,
            move_resource_state: capabilities.move_resource_state,
        }
    }
}

/// The two versions' schema messages have the same shape but not the same Rust types; only an attribute's kind and
/// the number of `write_only` differ. `$kind_from` and `$kind_to` are that difference.
macro_rules! schema_conversion {
    ($module:ident, $wire:ident, $kind_from:ident, $kind_to:ident) => {
        mod $module {
            use super::*;
            use $wire::{get_provider_schema::Response, schema as wire};

            pub fn from_wire(response: Response) -> Result<(ProviderSchema, Diagnostics), WireError> {
                let schemas = |wire: std::collections::HashMap<String, $wire::Schema>| {
                    wire.into_iter().map(|(name, schema)| Ok((name, schema_from(schema)?))).collect::<Result<_, _>>()
                };
                let schema = ProviderSchema {
                    // A provider without configuration may leave its own schema out.
                    provider: schema_from(response.provider.unwrap_or_default())?,
                    resources: schemas(response.resource_schemas)?,
                    data_sources: schemas(response.data_source_schemas)?,
                    identities: BTreeMap::new(),
                    provider_meta: response.provider_meta.map(schema_from).transpose()?,
                    capabilities: response.server_capabilities.unwrap_or_default().into(),
                };
                Ok((schema, response.diagnostics.into_iter().map(Into::into).collect()))
            }

            pub fn to_wire(schema: &ProviderSchema) -> Result<Response, WireError> {
                let schemas = |schemas: &BTreeMap<String, Schema>| {
                    schemas
                        .iter()
                        .map(|(name, schema)| Ok((name.clone(), schema_to(schema)?)))
                        .collect::<Result<_, _>>()
                };
                Ok(Response {
                    provider: Some(schema_to(&schema.provider)?),
                    resource_schemas: schemas(&schema.resources)?,
                    data_source_schemas: schemas(&schema.data_sources)?,
                    diagnostics: Vec::new(),
                    provider_meta: schema.provider_meta.as_ref().map(schema_to).transpose()?,
                    server_capabilities: Some(schema.capabilities.into()),
                })
            }

            fn schema_from(schema: $wire::Schema) -> Result<Schema, WireError> {
                Ok(Schema { version: schema.version, block: block_from(schema.block.unwrap_or_default())? })
            }

            fn schema_to(schema: &Schema) -> Result<$wire::Schema, WireError> {
                Ok($wire::Schema { version: schema.version, block: Some(block_to(&schema.block)?) })
            }

            fn block_from(block: wire::Block) -> Result<Block, WireError> {
                Ok(Block {
                    attributes: attributes_from(block.attributes)?,
                    blocks: block
                        .block_types
                        .into_iter()
                        .map(|nested| {
                            let nesting = nesting_from(&nested.type_name, nested.nesting)?;
                            let block = block_from(nested.block.unwrap_or_default())?;
                            let (min_items, max_items) = (nested.min_items, nested.max_items);
                            Ok((nested.type_name, NestedBlock { nesting, block, min_items, max_items }))
                        })
                        .collect::<Result<_, WireError>>()?,
                    description: block.description,
                    deprecated: block.deprecated.then_some(block.deprecation_message),
                    ..Block::default()
                })
            }

            fn block_to(block: &Block) -> Result<wire::Block, WireError> {
                Ok(wire::Block {
                    version: 0,
                    attributes: attributes_to(&block.attributes)?,
                    block_types: block
                        .blocks
                        .iter()
                        .map(|(name, nested)| {
                            Ok(wire::NestedBlock {
                                type_name: name.clone(),
                                block: Some(block_to(&nested.block)?),
                                nesting: nesting_to(nested.nesting),
                                min_items: nested.min_items,
                                max_items: nested.max_items,
                            })
                        })
                        .collect::<Result<_, WireError>>()?,
                    description: block.description.clone(),
                    deprecated: block.deprecated.is_some(),
                    deprecation_message: block.deprecated.clone().unwrap_or_default(),
                })
            }

            pub fn attributes_from(attributes: Vec<wire::Attribute>) -> Result<BTreeMap<String, Attribute>, WireError> {
                attributes
                    .into_iter()
                    .map(|mut wire| {
                        let attribute = Attribute {
                            kind: $kind_from(&mut wire)?,
                            required: wire.required,
                            optional: wire.optional,
                            computed: wire.computed,
                            sensitive: wire.sensitive,
                            write_only: wire.write_only,
                            description: wire.description,
                            deprecated: wire.deprecated.then_some(wire.deprecation_message),
                        };
                        Ok((wire.name, attribute))
                    })
                    .collect()
            }

            pub fn attributes_to(attributes: &BTreeMap<String, Attribute>) -> Result<Vec<wire::Attribute>, WireError> {
                attributes
                    .iter()
                    .map(|(name, attribute)| {
                        let mut wire = wire::Attribute {
                            name: name.clone(),
                            description: attribute.description.clone(),
                            required: attribute.required,
                            optional: attribute.optional,
                            computed: attribute.computed,
                            sensitive: attribute.sensitive,
                            deprecated: attribute.deprecated.is_some(),
                            deprecation_message: attribute.deprecated.clone().unwrap_or_default(),
                            write_only: attribute.write_only,
                            ..Default::default()
                        };
                        $kind_to(&attribute.kind, &mut wire)?;
                        Ok(wire)
                    })
                    .collect()
            }
        }
    };
}

schema_conversion!(v5, tfplugin5, v5_kind_from, v5_kind_to);
schema_conversion!(v6, tfplugin6, v6_kind_from, v6_kind_to);

fn v5_kind_from(wire: &mut tfplugin5::schema::Attribute) -> Result<AttributeKind, WireError> {
    Ok(AttributeKind::Plain(type_from_wire(&wire.name, &wire.r#type)?))
}

fn v5_kind_to(kind: &AttributeKind, wire: &mut tfplugin5::schema::Attribute) -> Result<(), WireError> {
    match kind {
        AttributeKind::Plain(ty) => wire.r#type = type_to_wire(ty),
        AttributeKind::Nested { .. } => {
            return Err(schema_error(&wire.name, "protocol 5 has no attributes with a schema of their own"));
        }
    }
    Ok(())
}

fn v6_kind_from(wire: &mut tfplugin6::schema::Attribute) -> Result<AttributeKind, WireError> {
    match wire.nested_type.take() {
        None => Ok(AttributeKind::Plain(type_from_wire(&wire.name, &wire.r#type)?)),
        Some(object) => Ok(AttributeKind::Nested {
            nesting: nesting_from(&wire.name, object.nesting)?,
            attributes: v6::attributes_from(object.attributes)?,
        }),
    }
}

fn v6_kind_to(kind: &AttributeKind, wire: &mut tfplugin6::schema::Attribute) -> Result<(), WireError> {
    match kind {
        AttributeKind::Plain(ty) => wire.r#type = type_to_wire(ty),
        AttributeKind::Nested { nesting: Nesting::Group, .. } => {
            return Err(schema_error(&wire.name, "only blocks can be groups"));
        }
        AttributeKind::Nested { nesting, attributes } => {
            wire.nested_type = Some(tfplugin6::schema::Object {
                attributes: v6::attributes_to(attributes)?,
                nesting: nesting_to(*nesting),
            });
        }
    }
    Ok(())
}

/// All nesting enums of both versions have these numbers.
const NESTINGS: [(i32, Nesting); 5] =
    [(1, Nesting::Single), (2, Nesting::List), (3, Nesting::Set), (4, Nesting::Map), (5, Nesting::Group)];

fn nesting_from(name: &str, wire: i32) -> Result<Nesting, WireError> {
    NESTINGS
        .iter()
        .find(|(number, _)| *number == wire)
        .map(|(_, nesting)| *nesting)
        .ok_or_else(|| schema_error(name, format!("nesting mode {wire} is not known")))
}

fn nesting_to(nesting: Nesting) -> i32 {
    NESTINGS.iter().find(|(_, known)| *known == nesting).map_or(0, |(number, _)| *number)
}
