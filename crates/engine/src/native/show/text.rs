//! A state as people read it: what `show` and `state show` write.

use std::fmt::Write as _;

use landform_cty::{Data, Mark, Type, Value};
use landform_protocol::{Block, Nesting};

use super::{Schemas, schema_of};
use crate::Address;
use crate::native::encode;
use crate::native::text::value_text;
use crate::state::State;

/// All objects and outputs, or one object alone. An object whose schema is not known is shown without its values.
pub fn state_text(state: &State, schemas: &Schemas, only: Option<&Address>) -> String {
    let mut out = String::new();
    for resource in state.resources() {
        for instance in resource.instances.iter().filter(|instance| instance.deposed.is_none()) {
            let address = resource.address(instance.index_key.clone());
            if only.is_some_and(|only| *only != address) {
                continue;
            }
            let kind = if address.data { "data" } else { "resource" };
            let tainted = if instance.tainted() { " (tainted)" } else { "" };
            let _ = writeln!(out, "# {address}:{tainted}\n{kind} {:?} {:?} {{", address.type_name, address.name);
            if let Some(schema) = schema_of(schemas, &resource.provider, &address)
                && let Ok(value) = encode::stored_value(instance, &schema.block)
            {
                body(&schema.block, &value, 4, &mut out);
            }
            out.push_str("}\n");
            if only.is_none() {
                out.push('\n');
            }
        }
    }
    if only.is_none() && !state.outputs.is_empty() {
        out.push_str("\nOutputs:\n\n");
        for (name, output) in &state.outputs {
            let value = serde_json::from_str(output.value.get()).unwrap_or_default();
            let shown = if output.sensitive { "(sensitive value)".to_owned() } else { value_text(&value, 0) };
            let _ = writeln!(out, "{name} = {shown}");
        }
    }
    out
}

/// Arguments first, in one column, then the blocks.
fn body(block: &Block, value: &Value, indent: usize, out: &mut String) {
    let set = |name: &String| Some((name.clone(), value.get(name).filter(|value| !value.is_null())?));
    let attributes: Vec<(String, &Value)> = block.attributes.keys().filter_map(set).collect();
    fields(&attributes, indent, out);
    for (name, nested) in &block.blocks {
        let Some(value) = value.get(name).filter(|value| !value.is_null()) else { continue };
        let mut one = |label: &str, value: &Value| {
            let _ = writeln!(out, "\n{:indent$}{name} {label}{{", "");
            body(&nested.block, value, indent + 4, out);
            let _ = writeln!(out, "{:indent$}}}", "");
        };
        match (nested.nesting, &value.data) {
            (Nesting::Single | Nesting::Group, _) => one("", value),
            (_, Data::Sequence(elements)) => elements.iter().for_each(|element| one("", element)),
            (_, Data::Mapping(elements)) => {
                elements.iter().for_each(|(key, element)| one(&format!("{key:?} "), element));
            }
            _ => {}
        }
    }
}

fn fields(fields: &[(String, &Value)], indent: usize, out: &mut String) {
    let width = fields.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, value) in fields {
        let _ = writeln!(out, "{:indent$}{name:width$} = {}", "", text(value, indent));
    }
}

fn text(value: &Value, indent: usize) -> String {
    if value.has_mark(Mark::Sensitive) {
        return "(sensitive value)".to_owned();
    }
    let mut out = String::new();
    match &value.data {
        Data::Sequence(elements) if !elements.is_empty() => {
            out.push_str("[\n");
            for element in elements.iter() {
                let _ = writeln!(out, "{:indent$}    {},", "", text(element, indent + 4));
            }
            let _ = write!(out, "{:indent$}]", "");
        }
        Data::Mapping(elements) if !elements.is_empty() => {
            let quoted = matches!(value.ty, Type::Map(_));
            let name = |name: &String| if quoted { format!("{name:?}") } else { name.clone() };
            let named: Vec<(String, &Value)> = elements.iter().map(|(key, value)| (name(key), value)).collect();
            out.push_str("{\n");
            fields(&named, indent + 4, &mut out);
            let _ = write!(out, "{:indent$}}}", "");
        }
        Data::Sequence(_) => out.push_str("[]"),
        Data::Mapping(_) => out.push_str("{}"),
        Data::Null | Data::Unknown(_) => out.push_str("null"),
        Data::Bool(value) => out.push_str(&value.to_string()),
        Data::Number(value) => out.push_str(&value.to_string()),
        Data::String(text) => out.push_str(&serde_json::Value::from(&**text).to_string()),
    }
    out
}
