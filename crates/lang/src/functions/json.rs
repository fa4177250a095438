use std::collections::BTreeMap;

use landform_cty::{Data, Refinement, Type, Value, normalize, quote_as_go};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::call::Call;
use super::{Function, Kind, Outcome, Parameter, Problem, a_string};

/// Deeper values would be walked by functions that go one level deeper for each of theirs.
const MAX_DEPTH: usize = 100;

/// serde_json's own name for a number that keeps its digits.
const NUMBER: &str = "$serde_json::private::Number";

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "jsonencode",
        &[Parameter::new("val", Kind::Any).or_null().or_unknown().or_untyped()],
        a_string,
        |call| {
            let value = &call.args[0];
            if value.is_wholly_known() { Ok(Value::string(encode(value)?)) } else { Ok(encode_unknown(value)) }
        },
    ),
    Function::new("jsondecode", &[Parameter::new("str", Kind::String)], decoded_type, decode).may_be_null(),
];

/// JSON as Go writes it: what could harm inside HTML is escaped. These characters occur inside strings only.
pub(super) fn encode(value: &Value) -> Result<String, Problem> {
    let json = value.to_plain_json().map_err(|error| Problem::Call(error.to_string()))?;
    Ok(json
        .to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029"))
}

/// The first character already tells what kind of value it will be, unless it may be a null.
fn encode_unknown(value: &Value) -> Value {
    let prefix = match &value.ty {
        _ if !value.is_definitely_not_null() => None,
        Type::String => Some("\""),
        Type::Object { .. } | Type::Map(_) => Some("{"),
        Type::Tuple(_) | Type::List(_) | Type::Set(_) => Some("["),
        _ => None,
    };
    let refinement = Refinement { string_prefix: prefix.map(str::to_owned), ..Refinement::not_null() };
    Value::unknown_refined(Type::String, refinement)
}

fn decoded_type(args: &[Value]) -> Result<Type, Problem> {
    let Data::Unknown(refinement) = &args[0].data else { return Ok(Type::Dynamic) };
    let prefix = refinement.string_prefix.as_deref().unwrap_or_default().trim_start();
    match prefix.chars().next() {
        None | Some('{' | '[' | 'n') => Ok(Type::Dynamic),
        Some('"') => Ok(Type::String),
        Some('t' | 'f') => Ok(Type::Bool),
        Some('-' | '.' | '0'..='9') => Ok(Type::Number),
        Some(other) => Err(Problem::Argument(0, format!("a JSON document cannot begin with the character '{other}'"))),
    }
}

fn decode(call: &mut Call<'_>) -> Outcome {
    let document: Document = serde_json::from_str(call.text(0)).map_err(|error| Problem::Call(error.to_string()))?;
    document.value(0)
}

/// JSON with every property of its objects, also those that stand twice.
enum Document {
    Plain(serde_json::Value),
    Array(Vec<Document>),
    Object(Vec<(String, Document)>),
}

impl Document {
    fn value(self, depth: usize) -> Outcome {
        if depth > MAX_DEPTH {
            return Err(Problem::Unsupported("a document nested this deeply".into()));
        }
        match self {
            Document::Plain(json) => Value::from_plain_json(&json).map_err(|error| Problem::Call(error.to_string())),
            Document::Array(elements) => {
                let elements = elements.into_iter().map(|element| element.value(depth + 1));
                Ok(Value::tuple(elements.collect::<Result<_, _>>()?))
            }
            Document::Object(entries) => {
                let mut object: BTreeMap<String, Value> = BTreeMap::new();
                for (name, value) in entries {
                    let value = value.value(depth + 1)?;
                    let ty = value.ty.clone();
                    let before = object.insert(normalize(&name), value);
                    if before.is_some_and(|before| before.ty != ty) {
                        let name = quote_as_go(&name);
                        return Err(Problem::Call(format!("duplicate {name} property in JSON object")));
                    }
                }
                Ok(Value::object(object))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Document, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Document;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("JSON")
            }

            fn visit_unit<E>(self) -> Result<Document, E> {
                Ok(Document::Plain(serde_json::Value::Null))
            }

            fn visit_bool<E>(self, value: bool) -> Result<Document, E> {
                Ok(Document::Plain(value.into()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Document, E> {
                Ok(Document::Plain(number.into()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Document, E> {
                Ok(Document::Plain(number.into()))
            }

            fn visit_str<E>(self, text: &str) -> Result<Document, E> {
                Ok(Document::Plain(text.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Document, A::Error> {
                let mut found = Vec::new();
                while let Some(element) = elements.next_element()? {
                    found.push(element);
                }
                Ok(Document::Array(found))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Document, A::Error> {
                let mut found: Vec<(String, Document)> = Vec::new();
                while let Some(name) = entries.next_key::<String>()? {
                    // A number of any size comes as an object with one property of this name.
                    if name == NUMBER {
                        let text: String = entries.next_value()?;
                        let number = text.parse().map_err(serde::de::Error::custom)?;
                        return Ok(Document::Plain(serde_json::Value::Number(number)));
                    }
                    found.push((name, entries.next_value()?));
                }
                Ok(Document::Object(found))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}
