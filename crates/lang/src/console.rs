//! How the console writes values and types.

use landform_cty::{Data, Mark, Type, Value};

/// A value as `tofu console` writes it.
pub fn render_value(value: &Value) -> String {
    nested(value, 0)
}

/// A type as the console's `type` function writes it.
pub fn render_type(ty: &Type) -> String {
    nested_type(ty, 0)
}

fn nested(value: &Value, indent: usize) -> String {
    if !value.is_known() {
        return "(known after apply)".to_owned();
    }
    if value.has_mark(Mark::Sensitive) {
        return "(sensitive value)".to_owned();
    }
    if value.has_mark(Mark::Ephemeral) {
        return "(ephemeral value)".to_owned();
    }
    match &value.data {
        Data::Unknown(_) | Data::Null => null(&value.ty),
        Data::Bool(value) => value.to_string(),
        Data::Number(value) => value.to_string(),
        Data::String(text) => string(text, indent),
        Data::Sequence(elements) => {
            let items: Vec<String> = elements.iter().map(|element| nested(element, indent + 2) + ",").collect();
            let body = container('[', &items, ']', indent, 2);
            match &value.ty {
                Type::List(_) => format!("tolist({body})"),
                Type::Set(_) => format!("toset({body})"),
                _ => body,
            }
        }
        Data::Mapping(elements) => {
            let items: Vec<String> = elements
                .iter()
                .map(|(key, element)| format!("{} = {}", string(key, indent + 2), nested(element, indent + 2)))
                .collect();
            let body = container('{', &items, '}', indent, 2);
            if matches!(value.ty, Type::Map(_)) { format!("tomap({body})") } else { body }
        }
    }
}

fn container(open: char, items: &[String], close: char, indent: usize, step: usize) -> String {
    if items.is_empty() {
        return format!("{open}{close}");
    }
    let inner = " ".repeat(indent + step);
    let body: String = items.iter().map(|item| format!("{inner}{item}\n")).collect();
    format!("{open}\n{body}{}{close}", " ".repeat(indent))
}

fn null(ty: &Type) -> String {
    match ty {
        Type::String => "tostring(null)".to_owned(),
        Type::Number => "tonumber(null)".to_owned(),
        Type::Bool => "tobool(null)".to_owned(),
        Type::Dynamic => "null".to_owned(),
        Type::List(element) => format!("tolist(null) /* of {} */", element.friendly_name()),
        Type::Set(element) => format!("toset(null) /* of {} */", element.friendly_name()),
        Type::Map(element) => format!("tomap(null) /* of {} */", element.friendly_name()),
        Type::Tuple(_) | Type::Object { .. } => format!("null /* {} */", ty.friendly_name()),
    }
}

/// Text of several lines is a heredoc.
fn string(text: &str, indent: usize) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    if lines.len() < 2 {
        return landform_cty::quote_as_go(text);
    }
    let mut end = "EOT".to_owned();
    while lines.iter().any(|line| line.trim() == end) {
        end.push('_');
    }
    let margin = " ".repeat(indent);
    let operator = if indent > 0 { "<<-" } else { "<<" };
    let body: String = lines.iter().map(|line| format!("{margin}{line}\n")).collect();
    format!("{operator}{end}\n{body}{margin}{end}")
}

fn nested_type(ty: &Type, indent: usize) -> String {
    match ty {
        Type::Dynamic | Type::Bool | Type::Number | Type::String => ty.friendly_name(),
        Type::List(element) => collection_type("list", element, indent),
        Type::Set(element) => collection_type("set", element, indent),
        Type::Map(element) => collection_type("map", element, indent),
        Type::Tuple(elements) => {
            let items: Vec<String> = elements.iter().map(|ty| nested_type(ty, indent + 4) + ",").collect();
            format!("tuple({})", container('[', &items, ']', indent, 4))
        }
        Type::Object { attributes, .. } => {
            let items: Vec<String> =
                attributes.iter().map(|(name, ty)| format!("{name}: {},", nested_type(ty, indent + 4))).collect();
            format!("object({})", container('{', &items, '}', indent, 4))
        }
    }
}

/// A structure inside is set apart by a line of its own.
fn collection_type(kind: &str, element: &Type, indent: usize) -> String {
    if !matches!(element, Type::Tuple(_) | Type::Object { .. }) {
        return format!("{kind}({})", nested_type(element, indent));
    }
    let (outer, inner) = (" ".repeat(indent), " ".repeat(indent + 4));
    format!("{kind}(\n{inner}{},\n{outer})", nested_type(element, indent + 4))
}
