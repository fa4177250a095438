use std::collections::BTreeMap;

use landform_cty::Type;
use landform_protocol::{Attribute, AttributeKind, Block, NestedBlock, Nesting, Schema};

/// An attribute in the making: `string().required()`.
#[derive(Clone, Debug)]
pub struct Builder(Attribute);

pub fn string() -> Builder {
    of(Type::String)
}

pub fn number() -> Builder {
    of(Type::Number)
}

pub fn bool() -> Builder {
    of(Type::Bool)
}

pub fn of(ty: Type) -> Builder {
    kind(AttributeKind::Plain(ty))
}

/// An object, or a collection of objects, whose attributes have a schema of their own. Protocol 6 only.
pub fn nested<'a>(nesting: Nesting, attributes: impl IntoIterator<Item = (&'a str, Builder)>) -> Builder {
    kind(AttributeKind::Nested { nesting, attributes: named(attributes) })
}

fn kind(kind: AttributeKind) -> Builder {
    Builder(Attribute {
        kind,
        required: false,
        optional: false,
        computed: false,
        sensitive: false,
        write_only: false,
        description: String::new(),
        deprecated: None,
    })
}

impl Builder {
    pub fn required(mut self) -> Builder {
        self.0.required = true;
        self
    }

    pub fn optional(mut self) -> Builder {
        self.0.optional = true;
        self
    }

    /// Set by the provider; together with `optional`, only where the configuration does not.
    pub fn computed(mut self) -> Builder {
        self.0.computed = true;
        self
    }

    pub fn sensitive(mut self) -> Builder {
        self.0.sensitive = true;
        self
    }

    /// The provider gets it from the configuration; no plan and no state ever holds it.
    pub fn write_only(mut self) -> Builder {
        self.0.write_only = true;
        self
    }

    /// Not to be used any longer, with what to do instead.
    pub fn deprecated(mut self, instead: &str) -> Builder {
        self.0.deprecated = Some(instead.into());
        self
    }

    pub fn describe(mut self, description: &str) -> Builder {
        self.0.description = description.into();
        self
    }
}

/// A schema of version 0 with these attributes.
pub fn block<'a>(attributes: impl IntoIterator<Item = (&'a str, Builder)>) -> Schema {
    Schema { version: 0, block: Block { attributes: named(attributes), ..Block::default() } }
}

/// The schema with one more type of nested blocks, of which there may be any number.
pub fn with_block(mut schema: Schema, name: &str, nesting: Nesting, inner: Schema) -> Schema {
    let nested = NestedBlock { nesting, block: inner.block, min_items: 0, max_items: 0 };
    schema.block.blocks.insert(name.to_owned(), nested);
    schema
}

fn named<'a>(attributes: impl IntoIterator<Item = (&'a str, Builder)>) -> BTreeMap<String, Attribute> {
    attributes.into_iter().map(|(name, Builder(attribute))| (name.to_owned(), attribute)).collect()
}
