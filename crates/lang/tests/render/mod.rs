//! Writes a value the way `tofu console` does.

use landform_cty::{Data, Mark, Type, Value};

pub fn value(value: &Value) -> String {
    nested(value, 0)
}

fn nested(value: &Value, indent: usize) -> String {
    if value.has_mark(Mark::Sensitive) {
        return "(sensitive value)".to_owned();
    }
    match &value.data {
        Data::Unknown(_) => "(known after apply)".to_owned(),
        Data::Null => null(&value.ty),
        Data::Bool(value) => value.to_string(),
        Data::Number(value) => value.to_string(),
        Data::String(text) => quoted(text),
        Data::Sequence(elements) => {
            let items: Vec<String> = elements.iter().map(|element| nested(element, indent + 2) + ",").collect();
            let body = container('[', &items, ']', indent);
            match &value.ty {
                Type::List(_) => format!("tolist({body})"),
                Type::Set(_) => format!("toset({body})"),
                _ => body,
            }
        }
        Data::Mapping(elements) => {
            let items: Vec<String> = elements
                .iter()
                .map(|(key, element)| format!("{} = {}", quoted(key), nested(element, indent + 2)))
                .collect();
            let body = container('{', &items, '}', indent);
            if matches!(value.ty, Type::Map(_)) { format!("tomap({body})") } else { body }
        }
    }
}

fn container(open: char, items: &[String], close: char, indent: usize) -> String {
    if items.is_empty() {
        return format!("{open}{close}");
    }
    let inner = " ".repeat(indent + 2);
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

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
