use std::collections::BTreeMap;

use landform_cty::Type;
use landform_lang::{AttributeSpec, BlockSpec, BodySpec};
use landform_protocol::{Attribute, AttributeKind, Block, Nesting};

/// How a block of the configuration is to be read, according to the provider's schema.
pub fn body_spec(block: &Block) -> BodySpec {
    let attribute = |attribute: &Attribute| AttributeSpec { ty: config_type(attribute), required: attribute.required };
    let attributes = block.attributes.iter().map(|(name, schema)| (name.clone(), attribute(schema))).collect();
    let nested = |nested: &landform_protocol::NestedBlock| BlockSpec {
        nesting: match nested.nesting {
            Nesting::Single => landform_lang::Nesting::Single,
            Nesting::Group => landform_lang::Nesting::Group,
            Nesting::List => landform_lang::Nesting::List,
            Nesting::Set => landform_lang::Nesting::Set,
            Nesting::Map => landform_lang::Nesting::Map,
        },
        body: body_spec(&nested.block),
        min_items: u64::try_from(nested.min_items).unwrap_or_default(),
        max_items: u64::try_from(nested.max_items).unwrap_or_default(),
    };
    let blocks = block.blocks.iter().map(|(name, schema)| (name.clone(), nested(schema))).collect();
    BodySpec { attributes, blocks }
}

/// What may be written for an attribute: of a nested object, optional and computed attributes may be left out.
fn config_type(attribute: &Attribute) -> Type {
    let AttributeKind::Nested { nesting, attributes } = &attribute.kind else { return attribute.implied_type() };
    let fields: BTreeMap<String, Type> =
        attributes.iter().map(|(name, inner)| (name.clone(), config_type(inner))).collect();
    let optional = attributes.iter().filter(|(_, inner)| inner.optional || inner.computed);
    let object = Type::object_with_optional(fields, optional.map(|(name, _)| name.clone()).collect());
    match nesting {
        Nesting::Single | Nesting::Group => object,
        Nesting::List => Type::list(object),
        Nesting::Set => Type::set(object),
        Nesting::Map => Type::map(object),
    }
}
