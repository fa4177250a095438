use std::collections::BTreeMap;

use landform_cty::Type;
use serde::{Deserialize, Serialize};

/// All that a provider says about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderSchema {
    pub provider: Schema,
    pub resources: BTreeMap<String, Schema>,
    pub data_sources: BTreeMap<String, Schema>,
    pub capabilities: ServerCapabilities,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerCapabilities {
    pub plan_destroy: bool,
    pub get_provider_schema_optional: bool,
    pub move_resource_state: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    pub version: i64,
    pub block: Block,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    pub attributes: BTreeMap<String, Attribute>,
    pub blocks: BTreeMap<String, NestedBlock>,
    pub description: String,
    pub deprecated: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    pub kind: AttributeKind,
    pub required: bool,
    pub optional: bool,
    pub computed: bool,
    pub sensitive: bool,
    pub write_only: bool,
    pub description: String,
    pub deprecated: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum AttributeKind {
    Plain(Type),
    /// Protocol 6 only: an object or a collection of objects whose attributes have their own schema.
    Nested {
        nesting: Nesting,
        attributes: BTreeMap<String, Attribute>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Nesting {
    Single,
    Group,
    List,
    Set,
    Map,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NestedBlock {
    pub nesting: Nesting,
    pub block: Block,
    pub min_items: i64,
    pub max_items: i64,
}
