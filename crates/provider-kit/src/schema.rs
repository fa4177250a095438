use landform_cty::Type;
use landform_protocol::{Attribute, AttributeKind, Block, Schema};

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
    Builder(Attribute {
        kind: AttributeKind::Plain(ty),
        required: false,
        optional: false,
        computed: false,
        sensitive: false,
        write_only: false,
        description: String::new(),
        deprecated: false,
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

    pub fn describe(mut self, description: &str) -> Builder {
        self.0.description = description.into();
        self
    }
}

/// A schema of version 0 with these attributes.
pub fn block<'a>(attributes: impl IntoIterator<Item = (&'a str, Builder)>) -> Schema {
    let attributes = attributes.into_iter().map(|(name, Builder(attribute))| (name.to_owned(), attribute)).collect();
    Schema { version: 0, block: Block { attributes, ..Block::default() } }
}
