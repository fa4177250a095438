//! Reading and changing attributes of objects, and the fields of a vendor's JSON.

use std::sync::Arc;

use landform_cty::{Data, Number, Type, Value};
use serde_json::Value as Json;

/// An attribute that is a known text.
pub fn text<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str)
}

/// The same where the schema says that there is one.
pub fn required(object: &Value, name: &str) -> String {
    text(object, name).unwrap_or_default().to_owned()
}

pub fn whole(object: &Value, name: &str) -> Option<i64> {
    object.get(name).and_then(Value::as_number).and_then(Number::to_i64)
}

/// The object with other values for some of its attributes.
pub fn with<const N: usize>(mut object: Value, changes: [(&str, Value); N]) -> Value {
    if let Data::Mapping(attributes) = &mut object.data {
        let attributes = Arc::make_mut(attributes);
        for (name, value) in changes {
            attributes.insert(name.to_owned(), value);
        }
    }
    object
}

/// A field of the vendor's answer as a value: text, or null where it has none.
pub fn text_of(json: &Json) -> Value {
    json.as_str().map_or(Value::null(Type::String), Value::string)
}

pub fn whole_of(json: &Json) -> Value {
    json.as_i64().map_or(Value::null(Type::Number), Value::number)
}

/// An empty text at the vendor is what is not set here.
pub fn text_or_null(json: &Json) -> Value {
    json.as_str().filter(|text| !text.is_empty()).map_or(Value::null(Type::String), Value::string)
}
