use landform_cty::Value;
use landform_protocol::{Block, NestedBlock, Nesting};

use super::proposed::{empty_block, empty_object};

/// The old provider SDK cannot tell "no blocks" from null. Everybody else counts on blocks never being null, so an
/// object that was read is brought into that form.
pub fn normalise_legacy(block: &Block, value: Value) -> Value {
    let Some(fields) = value.as_mapping() else { return value };
    let fields = fields.iter().map(|(name, field)| match block.blocks.get(name) {
        Some(nested) if !nested.block.implied_type().has_dynamic() => (name.clone(), nested_value(nested, field)),
        _ => (name.clone(), field.clone()),
    });
    Value::object(fields).with_marks(&value.marks)
}

fn nested_value(nested: &NestedBlock, value: &Value) -> Value {
    let block = &nested.block;
    let elements = |value: &Value| -> Vec<Value> {
        let elements = value.as_sequence().unwrap_or_default();
        elements.iter().map(|element| normalise_legacy(block, element.clone())).collect()
    };
    match nested.nesting {
        Nesting::Map => value.clone(),
        Nesting::Single | Nesting::Group if !value.is_known() => unknown_object(block),
        Nesting::Group if value.is_null() => empty_object(block),
        Nesting::Single | Nesting::Group => normalise_legacy(block, value.clone()),
        Nesting::List | Nesting::Set if value.is_null() => empty_block(nested),
        Nesting::List if !value.is_known() => Value::list(block.implied_type(), vec![unknown_object(block)]),
        Nesting::Set if !value.is_known() => Value::set(block.implied_type(), vec![unknown_object(block)]),
        Nesting::List => Value::list(block.implied_type(), elements(value)),
        Nesting::Set => Value::set(block.implied_type(), elements(value)),
    }
}

/// One block of which nothing is known: the nearest that a block can come to being unknown itself.
fn unknown_object(block: &Block) -> Value {
    let attributes =
        block.attributes.iter().map(|(name, attribute)| (name.clone(), Value::unknown(attribute.implied_type())));
    let blocks = block.blocks.iter().map(|(name, nested)| {
        let inner = || unknown_object(&nested.block);
        let value = match nested.nesting {
            Nesting::Single | Nesting::Group => inner(),
            Nesting::List => Value::list(nested.block.implied_type(), vec![inner()]),
            Nesting::Set => Value::set(nested.block.implied_type(), vec![inner()]),
            Nesting::Map => empty_block(nested),
        };
        (name.clone(), value)
    });
    Value::object(attributes.chain(blocks))
}
