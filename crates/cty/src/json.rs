//! JSON against a type, as a state has it, and plain JSON whose type follows from what it looks like.

use serde_json::Value as Json;

use crate::{CodecError, Data, Number, Type, Value, normalize};

impl Value {
    /// Encodes the value as one of type `ty`. Unknown and marked values have no JSON form.
    pub fn to_json(&self, ty: &Type) -> Result<Json, CodecError> {
        if !self.marks.is_empty() {
            return Err(CodecError::new("the value is marked, and marks cannot be encoded"));
        }
        if *ty == Type::Dynamic && self.ty != Type::Dynamic {
            return Ok(serde_json::json!({ "value": self.to_json(&self.ty)?, "type": self.ty.to_json() }));
        }
        match (&self.data, ty) {
            (Data::Null, _) => Ok(Json::Null),
            (Data::Unknown(_), _) => Err(CodecError::new("the value is not known")),
            (Data::Bool(value), Type::Bool) => Ok(Json::Bool(*value)),
            (Data::Number(value), Type::Number) => Ok(Json::Number(json_number(value))),
            (Data::String(value), Type::String) => Ok(Json::String(value.to_string())),
            (Data::Sequence(elements), Type::List(element) | Type::Set(element)) => Ok(Json::Array(
                elements
                    .iter()
                    .enumerate()
                    .map(|(index, value)| value.to_json(element).map_err(|error| error.inside_index(index)))
                    .collect::<Result<_, _>>()?,
            )),
            (Data::Sequence(elements), Type::Tuple(types)) if elements.len() == types.len() => Ok(Json::Array(
                elements
                    .iter()
                    .zip(types.iter())
                    .enumerate()
                    .map(|(index, (value, ty))| value.to_json(ty).map_err(|error| error.inside_index(index)))
                    .collect::<Result<_, _>>()?,
            )),
            (Data::Mapping(elements), Type::Map(element)) => Ok(Json::Object(
                elements
                    .iter()
                    .map(|(key, value)| {
                        Ok((key.clone(), value.to_json(element).map_err(|error| error.inside_key(key))?))
                    })
                    .collect::<Result<_, CodecError>>()?,
            )),
            (Data::Mapping(elements), Type::Object { attributes, .. }) => Ok(Json::Object(
                attributes
                    .iter()
                    .map(|(name, ty)| {
                        let value = elements.get(name).ok_or_else(|| CodecError::missing(name))?;
                        Ok((name.clone(), value.to_json(ty).map_err(|error| error.inside_attribute(name))?))
                    })
                    .collect::<Result<_, CodecError>>()?,
            )),
            _ => Err(CodecError::wanted(ty, &self.ty.friendly_name())),
        }
    }

    /// Decodes JSON as a value of type `ty`. An attribute that is not there is null; one that `ty` does not have is an
    /// error.
    pub fn from_json(json: &Json, ty: &Type) -> Result<Value, CodecError> {
        if json.is_null() {
            return Ok(Value::null(ty.clone()));
        }
        match (json, ty) {
            (json, Type::Dynamic) => dynamic_from_json(json),
            (Json::Bool(value), Type::Bool) => Ok(Value::bool(*value)),
            (Json::Bool(value), Type::String) => Ok(Value::string(value.to_string())),
            (Json::String(text), Type::Bool) => match text.as_str() {
                "true" | "1" => Ok(Value::bool(true)),
                "false" | "0" => Ok(Value::bool(false)),
                _ => Err(CodecError::wanted(ty, "string")),
            },
            (Json::Number(number), Type::Number) => parse_number(&number.to_string()),
            (Json::String(text), Type::Number) => parse_number(text),
            (Json::Number(number), Type::String) => Ok(Value::string(number.to_string())),
            (Json::String(text), Type::String) => Ok(Value::string(text)),
            (Json::Array(elements), Type::List(element)) => {
                Ok(Value::list((**element).clone(), elements_from_json(elements, element)?))
            }
            (Json::Array(elements), Type::Set(element)) => {
                Ok(Value::set((**element).clone(), elements_from_json(elements, element)?))
            }
            (Json::Array(elements), Type::Tuple(types)) if elements.len() == types.len() => Ok(Value::tuple(
                elements
                    .iter()
                    .zip(types.iter())
                    .enumerate()
                    .map(|(index, (json, ty))| Value::from_json(json, ty).map_err(|error| error.inside_index(index)))
                    .collect::<Result<_, _>>()?,
            )),
            (Json::Object(entries), Type::Map(element)) => {
                let elements = entries
                    .iter()
                    .map(|(key, json)| {
                        Ok((normalize(key), Value::from_json(json, element).map_err(|error| error.inside_key(key))?))
                    })
                    .collect::<Result<Vec<_>, CodecError>>()?;
                Ok(Value::map((**element).clone(), elements))
            }
            (Json::Object(entries), Type::Object { attributes, .. }) => {
                if let Some(name) = entries.keys().find(|name| !attributes.contains_key(*name)) {
                    return Err(CodecError::unexpected(name));
                }
                let attributes = attributes
                    .iter()
                    .map(|(name, ty)| {
                        let json = entries.get(name).unwrap_or(&Json::Null);
                        Ok((name.clone(), Value::from_json(json, ty).map_err(|error| error.inside_attribute(name))?))
                    })
                    .collect::<Result<Vec<_>, CodecError>>()?;
                Ok(Value::object(attributes))
            }
            (json, ty) => Err(CodecError::wanted(ty, json_kind(json))),
        }
    }

    /// Plain JSON: arrays are tuples, objects are objects, and a null has no type yet.
    pub fn from_plain_json(json: &Json) -> Result<Value, CodecError> {
        match json {
            Json::Null => Ok(Value::null(Type::Dynamic)),
            Json::Bool(value) => Ok(Value::bool(*value)),
            Json::Number(number) => parse_number(&number.to_string()),
            Json::String(text) => Ok(Value::string(text)),
            Json::Array(elements) => Ok(Value::tuple(
                elements
                    .iter()
                    .enumerate()
                    .map(|(index, json)| Value::from_plain_json(json).map_err(|error| error.inside_index(index)))
                    .collect::<Result<_, _>>()?,
            )),
            Json::Object(entries) => Ok(Value::object(
                entries
                    .iter()
                    .map(|(name, json)| {
                        let value = Value::from_plain_json(json).map_err(|error| error.inside_attribute(name))?;
                        Ok((normalize(name), value))
                    })
                    .collect::<Result<Vec<_>, CodecError>>()?,
            )),
        }
    }

    /// The value as plain JSON, without a word about its type.
    pub fn to_plain_json(&self) -> Result<Json, CodecError> {
        self.to_json(&self.ty)
    }
}

fn json_number(number: &Number) -> serde_json::Number {
    number.to_string().parse().expect("a number's text is a JSON number")
}

fn parse_number(text: &str) -> Result<Value, CodecError> {
    Number::parse(text).map(Value::number).map_err(|error| CodecError::new(error.to_string()))
}

fn elements_from_json(elements: &[Json], ty: &Type) -> Result<Vec<Value>, CodecError> {
    elements
        .iter()
        .enumerate()
        .map(|(index, json)| Value::from_json(json, ty).map_err(|error| error.inside_index(index)))
        .collect()
}

fn dynamic_from_json(json: &Json) -> Result<Value, CodecError> {
    let parts = json.as_object().and_then(|parts| match (parts.get("type"), parts.get("value")) {
        (Some(ty), Some(value)) if parts.len() == 2 => Some((ty, value)),
        _ => None,
    });
    let (ty, value) = parts.ok_or_else(|| CodecError::new("a value of dynamic type comes with its type"))?;
    let ty = Type::from_json(ty).map_err(|error| CodecError::new(error.to_string()))?;
    Value::from_json(value, &ty)
}

fn json_kind(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "bool",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "an array",
        Json::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Json {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn numbers_are_exact() {
        for text in ["0.1", "123456789012345678901234567890", "-1e3", "18446744073709551616.5"] {
            let value = Value::from_json(&parse(text), &Type::Number).unwrap();
            assert_eq!(value, Value::number(Number::parse(text).unwrap()));
            let again = Value::from_json(&value.to_json(&Type::Number).unwrap(), &Type::Number).unwrap();
            assert_eq!(again, value);
        }
    }

    #[test]
    fn an_object_has_every_attribute_and_no_other() {
        let ty = Type::object([("a", Type::String), ("b", Type::Number)]);
        let value = Value::from_json(&parse(r#"{"a":"x"}"#), &ty).unwrap();
        assert_eq!(value.get("b"), Some(&Value::null(Type::Number)));
        let error = Value::from_json(&parse(r#"{"c":1}"#), &ty).unwrap_err();
        assert_eq!(error.to_string(), "unsupported attribute \"c\"");
    }

    #[test]
    fn dynamic_values_come_with_their_type() {
        let ty = Type::object([("a", Type::Dynamic)]);
        let value = Value::object([("a", Value::tuple(vec![Value::number(1)]))]);
        let json = value.to_json(&ty).unwrap();
        assert_eq!(json, parse(r#"{"a":{"value":[1],"type":["tuple",["number"]]}}"#));
        assert_eq!(Value::from_json(&json, &ty).unwrap(), value);
    }

    #[test]
    fn unknown_and_marked_values_are_refused_with_the_place() {
        let value = Value::object([("a", Value::tuple(vec![Value::unknown(Type::String)]))]);
        assert_eq!(value.to_plain_json().unwrap_err().to_string(), ".a[0]: the value is not known");
        assert!(Value::from("s").with_mark(crate::Mark::Sensitive).to_plain_json().is_err());
    }
}
