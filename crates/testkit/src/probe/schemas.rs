use landform_cty::Type;
use landform_protocol::{Nesting, Schema};
use landform_provider_kit::{Builder, block, bool, nested, number, of, string, with_block};

/// What every resource has.
fn with_common<'a>(more: impl IntoIterator<Item = (&'a str, Builder)>) -> Schema {
    let common = [
        ("id", string().computed()),
        ("name", string().required()),
        ("faults", string().optional().describe("Words for what goes wrong, see the module `faults`.")),
    ];
    block(common.into_iter().chain(more))
}

/// Attributes of every type, and every way in which a provider decides about one.
pub fn object() -> Schema {
    with_common([
        ("size", number().optional()),
        ("flag", bool().optional()),
        ("kind", string().optional().describe("Cannot be changed on an existing object.")),
        ("tags", of(Type::map(Type::String)).optional()),
        ("labels", of(Type::set(Type::String)).optional()),
        ("items", of(Type::list(Type::String)).optional()),
        ("shape", of(Type::object([("width", Type::Number), ("unit", Type::String)])).optional()),
        ("anything", of(Type::Dynamic).optional()),
        ("result", of(Type::Dynamic).computed().describe("What `anything` is.")),
        ("note", string().optional().computed().describe("Has a default that the plan knows.")),
        ("address", string().optional().computed().describe("Known after the apply where it is not set.")),
        ("secret", string().optional().sensitive()),
        ("region", string().computed().describe("That of the provider's configuration.")),
        ("revision", number().computed().describe("Rises with each change.")),
        ("parts", of(Type::list(Type::String)).computed()),
        ("old_name", string().optional().deprecated("Use name, which is the same and new.")),
    ])
}

/// An object that has an identity beside its attributes.
pub fn identified() -> Schema {
    with_common([
        ("kind", string().optional().describe("Cannot be changed on an existing object.")),
        ("size", number().optional()),
        ("region", string().computed()),
        ("revision", number().computed()),
    ])
}

/// What that identity consists of.
pub fn identity() -> Schema {
    Schema { version: 1, ..block([("id", string().required()), ("region", string().optional())]) }
}

/// Blocks in every nesting, two levels deep.
pub fn blocks() -> Schema {
    let port = || block([("number", number().required()), ("serial", string().computed())]);
    let rule = || {
        let attributes = [
            ("action", string().optional()),
            ("priority", number().optional().computed()),
            ("secret", string().optional().sensitive()),
        ];
        with_block(block(attributes), "port", Nesting::Set, port())
    };
    let item = || {
        let attributes = [("value", string().optional()), ("serial", string().computed())];
        with_block(block(attributes), "port", Nesting::List, port())
    };
    let entry = || block([("value", string().optional()), ("serial", string().computed())]);
    let schema = with_common([]);
    let schema = with_block(schema, "single", Nesting::Single, item());
    let schema = with_block(schema, "group", Nesting::Group, entry());
    let schema = with_block(schema, "item", Nesting::List, item());
    let schema = with_block(schema, "rule", Nesting::Set, rule());
    let mut schema = with_block(schema, "entry", Nesting::Map, entry());
    if let Some(item) = schema.block.blocks.get_mut("item") {
        item.max_items = 3;
    }
    schema
}

/// Nested attributes in every nesting.
pub fn nested_attributes() -> Schema {
    let inner = || {
        [
            ("value", string().optional()),
            ("count", number().optional().computed()),
            ("serial", string().computed()),
            ("secret", string().optional().sensitive()),
        ]
    };
    let deep = || {
        let with_more = inner().into_iter().chain([("more", nested(Nesting::List, inner()).optional())]);
        with_more.collect::<Vec<_>>()
    };
    with_common([
        ("single", nested(Nesting::Single, deep()).optional()),
        ("list", nested(Nesting::List, deep()).optional()),
        ("set", nested(Nesting::Set, inner()).optional()),
        ("map", nested(Nesting::Map, deep()).optional()),
        (
            "status",
            nested(Nesting::Single, [("phase", string().computed()), ("round", number().computed())]).computed(),
        ),
        ("either", nested(Nesting::List, inner()).optional().computed()),
    ])
}

/// Arguments that no plan and no state holds.
pub fn write_only() -> Schema {
    with_common([
        ("password", string().optional().write_only()),
        ("password_version", number().optional().describe("Another one makes the provider look at the password.")),
        ("fingerprint", string().computed().describe("Of the password: its length.")),
    ])
}

/// For answers with the legacy type system.
pub fn legacy() -> Schema {
    let schema = with_common([
        ("size", number().optional()),
        ("text", string().optional()),
        ("kind", string().optional().describe("Cannot be changed on an existing object.")),
        ("flag", bool().optional()),
        ("address", string().optional().computed()),
        ("tags", of(Type::map(Type::String)).optional()),
    ]);
    with_block(schema, "item", Nesting::List, block([("value", string().optional()), ("serial", string().computed())]))
}

/// Has had two older versions: 0 with `title` in place of `name`, 1 with `size` as a text.
pub fn versioned() -> Schema {
    let schema = with_common([("size", number().optional())]);
    Schema { version: 2, ..schema }
}
