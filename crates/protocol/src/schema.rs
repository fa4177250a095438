use std::collections::BTreeMap;
use std::sync::OnceLock;

use landform_cty::Type;
use serde::{Deserialize, Serialize};

/// All that a provider says about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderSchema {
    pub provider: Schema,
    pub resources: BTreeMap<String, Schema>,
    pub data_sources: BTreeMap<String, Schema>,
    /// The schemas of resources' identities, where they have any: attributes only.
    pub identities: BTreeMap<String, Schema>,
    /// What a module may tell the provider about itself. Nothing here does; but a provider that has this schema is
    /// sent a null in each call, as the CLI does it.
    pub provider_meta: Option<Schema>,
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
    /// What to do instead of using it, where that is said.
    pub deprecated: Option<String>,
    pub implied: ImpliedType,
}

/// A block's type, once it was asked for: values share it, and a plan has one for each of its objects. It is no part of what
/// a block says, and a copy of a block, which may be changed, has none.
#[derive(Debug, Default)]
pub struct ImpliedType(OnceLock<Type>);

impl Clone for ImpliedType {
    fn clone(&self) -> ImpliedType {
        ImpliedType::default()
    }
}

impl PartialEq for ImpliedType {
    fn eq(&self, _other: &ImpliedType) -> bool {
        true
    }
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
    /// What to do instead of using it, where that is said.
    pub deprecated: Option<String>,
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

impl Block {
    /// The type of the values that this block describes: an object with every attribute and every nested block.
    pub fn implied_type(&self) -> Type {
        let make = || {
            let attributes = self.attributes.iter().map(|(name, attribute)| (name.clone(), attribute.implied_type()));
            let blocks = self.blocks.iter().map(|(name, nested)| (name.clone(), nested.implied_type()));
            Type::object(attributes.chain(blocks))
        };
        self.implied.0.get_or_init(make).clone()
    }
}

impl NestedBlock {
    fn implied_type(&self) -> Type {
        let block = self.block.implied_type();
        match self.nesting {
            Nesting::Single | Nesting::Group => block,
            // The elements' types may differ, so the collection's type travels with the value.
            Nesting::List | Nesting::Map if block.has_dynamic() => Type::Dynamic,
            Nesting::List => Type::list(block),
            Nesting::Map => Type::map(block),
            Nesting::Set => Type::set(block),
        }
    }
}

impl Attribute {
    pub fn implied_type(&self) -> Type {
        match &self.kind {
            AttributeKind::Plain(ty) => ty.clone(),
            AttributeKind::Nested { nesting, attributes } => {
                let object = Type::object(attributes.iter().map(|(name, inner)| (name.clone(), inner.implied_type())));
                match nesting {
                    Nesting::Single | Nesting::Group => object,
                    Nesting::List => Type::list(object),
                    Nesting::Map => Type::map(object),
                    Nesting::Set => Type::set(object),
                }
            }
        }
    }
}
