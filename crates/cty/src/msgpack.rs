//! cty's wire encoding: msgpack against a type that both sides know.

use std::collections::BTreeMap;

use rmpv::Value as Pack;

use crate::{CodecError, Data, Number, Refinement, Type, Value, normalize};

/// Deeper than any type that a provider has; what is deeper is an attack on the stack.
const MAX_DEPTH: usize = 512;
const REFINED_UNKNOWN: i8 = 12;
/// Prefixes above this length are cut, so that the refinement stays below what decoders accept.
const MAX_PREFIX: usize = 256;

mod refinement_key {
    pub const NULLABLE: i64 = 1;
    pub const STRING_PREFIX: i64 = 2;
    pub const NUMBER_MIN: i64 = 3;
    pub const NUMBER_MAX: i64 = 4;
    pub const LENGTH_MIN: i64 = 5;
    pub const LENGTH_MAX: i64 = 6;
}

impl Value {
    /// Encodes the value as one of type `ty`. Marks cannot travel: take them off first.
    pub fn to_msgpack(&self, ty: &Type) -> Result<Vec<u8>, CodecError> {
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, &pack(self, ty)?).expect("writing to memory does not fail");
        Ok(bytes)
    }

    pub fn from_msgpack(mut bytes: &[u8], ty: &Type) -> Result<Value, CodecError> {
        let packed = rmpv::decode::read_value_with_max_depth(&mut bytes, MAX_DEPTH)
            .map_err(|error| CodecError::new(format!("not msgpack: {error}")))?;
        if !bytes.is_empty() {
            return Err(CodecError::new("something follows the value"));
        }
        unpack(packed, ty)
    }
}

fn pack(value: &Value, ty: &Type) -> Result<Pack, CodecError> {
    if !value.marks.is_empty() {
        return Err(CodecError::new("the value is marked, and marks cannot be encoded"));
    }
    if *ty == Type::Dynamic && value.ty != Type::Dynamic {
        let type_json = serde_json::to_vec(&value.ty).expect("a type is always JSON");
        return Ok(Pack::Array(vec![Pack::Binary(type_json), pack(value, &value.ty)?]));
    }
    match (&value.data, ty) {
        (Data::Null, _) => Ok(Pack::Nil),
        (Data::Unknown(refinement), _) => Ok(pack_unknown(refinement, ty)),
        (Data::Bool(value), Type::Bool) => Ok(Pack::Boolean(*value)),
        (Data::Number(value), Type::Number) => Ok(pack_number(value)),
        (Data::String(value), Type::String) => Ok(Pack::from(&**value)),
        (Data::Sequence(elements), Type::List(element) | Type::Set(element)) => Ok(Pack::Array(
            elements
                .iter()
                .enumerate()
                .map(|(index, value)| pack(value, element).map_err(|error| error.inside_index(index)))
                .collect::<Result<_, _>>()?,
        )),
        (Data::Sequence(elements), Type::Tuple(types)) if elements.len() == types.len() => Ok(Pack::Array(
            elements
                .iter()
                .zip(types.iter())
                .enumerate()
                .map(|(index, (value, ty))| pack(value, ty).map_err(|error| error.inside_index(index)))
                .collect::<Result<_, _>>()?,
        )),
        (Data::Mapping(elements), Type::Map(element)) => Ok(Pack::Map(
            elements
                .iter()
                .map(|(key, value)| {
                    let packed = pack(value, element).map_err(|error| error.inside_key(key))?;
                    Ok((Pack::from(key.as_str()), packed))
                })
                .collect::<Result<_, CodecError>>()?,
        )),
        (Data::Mapping(elements), Type::Object { attributes, .. }) => Ok(Pack::Map(
            attributes
                .iter()
                .map(|(name, ty)| {
                    let value = elements.get(name).ok_or_else(|| CodecError::missing(name))?;
                    let packed = pack(value, ty).map_err(|error| error.inside_attribute(name))?;
                    Ok((Pack::from(name.as_str()), packed))
                })
                .collect::<Result<_, CodecError>>()?,
        )),
        _ => Err(CodecError::wanted(ty, &value.ty.friendly_name())),
    }
}

/// Integers as integers, what is exactly a double as a double, and everything else as text.
fn pack_number(number: &Number) -> Pack {
    if let Some(integer) = number.to_i64() {
        return Pack::from(integer);
    }
    match number.to_exact_f64() {
        Some(float) if !number.is_integer() => Pack::F64(float),
        _ => Pack::from(number.to_string()),
    }
}

fn pack_unknown(refinement: &Refinement, ty: &Type) -> Pack {
    let mut entries: Vec<(Pack, Pack)> = Vec::new();
    let mut note = |key: i64, value: Pack| entries.push((Pack::from(key), value));
    if *ty != Type::Dynamic {
        if refinement.nullable == Some(false) {
            note(refinement_key::NULLABLE, Pack::Boolean(false));
        }
        let bound =
            |(number, inclusive): &(Number, bool)| Pack::Array(vec![pack_number(number), Pack::Boolean(*inclusive)]);
        match ty {
            Type::Number => {
                if let Some(min) = &refinement.number_min {
                    note(refinement_key::NUMBER_MIN, bound(min));
                }
                if let Some(max) = &refinement.number_max {
                    note(refinement_key::NUMBER_MAX, bound(max));
                }
            }
            Type::String => {
                if let Some(prefix) = refinement.string_prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
                    note(refinement_key::STRING_PREFIX, Pack::from(cut_prefix(prefix)));
                }
            }
            Type::List(_) | Type::Set(_) | Type::Map(_) => {
                if let Some(min) = refinement.length_min.filter(|min| *min != 0) {
                    note(refinement_key::LENGTH_MIN, Pack::from(min));
                }
                if let Some(max) = refinement.length_max {
                    note(refinement_key::LENGTH_MAX, Pack::from(max));
                }
            }
            _ => {}
        }
    }
    if entries.is_empty() {
        return Pack::Ext(0, vec![0]);
    }
    let mut body = Vec::new();
    rmpv::encode::write_value(&mut body, &Pack::Map(entries)).expect("writing to memory does not fail");
    Pack::Ext(REFINED_UNKNOWN, body)
}

fn cut_prefix(prefix: &str) -> &str {
    if prefix.len() <= MAX_PREFIX {
        return prefix;
    }
    crate::safe_known_prefix(&prefix[..prefix.floor_char_boundary(MAX_PREFIX - 1)])
}

fn unpack(packed: Pack, ty: &Type) -> Result<Value, CodecError> {
    let packed = match (packed, ty) {
        (Pack::Ext(kind, body), _) => return unpack_unknown(kind, &body, ty),
        (Pack::Nil, _) => return Ok(Value::null(ty.clone())),
        (packed, Type::Dynamic) => return unpack_dynamic(packed),
        (packed, _) => packed,
    };
    match (packed, ty) {
        (Pack::Boolean(value), Type::Bool) => Ok(Value::bool(value)),
        (packed, Type::Number) => Ok(Value::number(unpack_number(&packed)?)),
        (Pack::String(text), Type::String) => {
            text.as_str().map(Value::string).ok_or_else(|| CodecError::new("a string is not UTF-8"))
        }
        (Pack::Array(elements), Type::List(element)) => {
            Ok(Value::list((**element).clone(), unpack_elements(elements, element)?))
        }
        (Pack::Array(elements), Type::Set(element)) => {
            Ok(Value::set((**element).clone(), unpack_elements(elements, element)?))
        }
        (Pack::Array(elements), Type::Tuple(types)) if elements.len() == types.len() => Ok(Value::tuple(
            elements
                .into_iter()
                .zip(types.iter())
                .enumerate()
                .map(|(index, (element, ty))| unpack(element, ty).map_err(|error| error.inside_index(index)))
                .collect::<Result<_, _>>()?,
        )),
        (Pack::Map(entries), Type::Map(element)) => {
            let mut elements = BTreeMap::new();
            for (key, value) in entries {
                let key = key_of(key)?;
                let value = unpack(value, element).map_err(|error| error.inside_key(&key))?;
                elements.insert(key, value);
            }
            Ok(Value::map((**element).clone(), elements))
        }
        (Pack::Map(entries), Type::Object { attributes: types, .. }) => {
            let mut attributes = BTreeMap::new();
            for (key, value) in entries {
                let name = key_of(key)?;
                let ty = types.get(&name).ok_or_else(|| CodecError::unexpected(&name))?;
                let value = unpack(value, ty).map_err(|error| error.inside_attribute(&name))?;
                attributes.insert(name, value);
            }
            match types.keys().find(|name| !attributes.contains_key(*name)) {
                Some(name) => Err(CodecError::missing(name)),
                None => Ok(Value::object(attributes)),
            }
        }
        (_, ty) => Err(CodecError::wanted(ty, "something else")),
    }
}

fn unpack_elements(elements: Vec<Pack>, ty: &Type) -> Result<Vec<Value>, CodecError> {
    elements
        .into_iter()
        .enumerate()
        .map(|(index, element)| unpack(element, ty).map_err(|error| error.inside_index(index)))
        .collect()
}

fn key_of(key: Pack) -> Result<String, CodecError> {
    match key {
        // Keys are text like any other text of a value, so they have its normal form too.
        Pack::String(text) if text.is_str() => Ok(normalize(text.as_str().expect("checked"))),
        _ => Err(CodecError::new("a key is not a string")),
    }
}

fn unpack_number(packed: &Pack) -> Result<Number, CodecError> {
    let refuse = || CodecError::wanted(&Type::Number, "something else");
    match packed {
        Pack::Integer(integer) => match (integer.as_i64(), integer.as_u64()) {
            (Some(integer), _) => Ok(Number::from(integer)),
            (_, Some(integer)) => Ok(Number::from(integer)),
            _ => Err(refuse()),
        },
        Pack::F64(float) => Number::from_f64(*float).ok_or_else(|| CodecError::new("an infinite number")),
        Pack::F32(float) => Number::from_f64(f64::from(*float)).ok_or_else(|| CodecError::new("an infinite number")),
        Pack::String(text) => text.as_str().and_then(|text| Number::parse(text).ok()).ok_or_else(refuse),
        _ => Err(refuse()),
    }
}

fn unpack_dynamic(packed: Pack) -> Result<Value, CodecError> {
    let Pack::Array(parts) = packed else {
        return Err(CodecError::new("a value of dynamic type comes with its type"));
    };
    let [ty, value]: [Pack; 2] =
        parts.try_into().map_err(|_| CodecError::new("a value of dynamic type comes with its type"))?;
    let ty = match &ty {
        Pack::Binary(json) => json.as_slice(),
        Pack::String(json) => json.as_bytes(),
        _ => return Err(CodecError::new("the type of a dynamic value is not JSON")),
    };
    let ty: Type = serde_json::from_slice(ty).map_err(|error| CodecError::new(error.to_string()))?;
    unpack(value, &ty)
}

/// Any extension is an unknown value; one of type 12 also says something about it.
fn unpack_unknown(kind: i8, mut body: &[u8], ty: &Type) -> Result<Value, CodecError> {
    if kind != REFINED_UNKNOWN || body.len() <= 1 || *ty == Type::Dynamic {
        return Ok(Value::unknown(ty.clone()));
    }
    let malformed = || CodecError::new("what is said about an unknown value cannot be read");
    let Ok(Pack::Map(entries)) = rmpv::decode::read_value_with_max_depth(&mut body, 8) else {
        return Err(malformed());
    };
    let mut refinement = Refinement::default();
    let bound = |packed: &Pack| match packed.as_array().map(Vec::as_slice) {
        Some([number, Pack::Boolean(inclusive)]) => Ok((unpack_number(number)?, *inclusive)),
        _ => Err(malformed()),
    };
    for (key, value) in &entries {
        // Keys of a later protocol are skipped: knowing less is never wrong.
        match key.as_i64().ok_or_else(malformed)? {
            refinement_key::NULLABLE => refinement.nullable = Some(value.as_bool().ok_or_else(malformed)?),
            refinement_key::STRING_PREFIX => {
                refinement.string_prefix = Some(value.as_str().ok_or_else(malformed)?.to_owned());
            }
            refinement_key::NUMBER_MIN => refinement.number_min = Some(bound(value)?),
            refinement_key::NUMBER_MAX => refinement.number_max = Some(bound(value)?),
            refinement_key::LENGTH_MIN => refinement.length_min = Some(value.as_u64().ok_or_else(malformed)?),
            refinement_key::LENGTH_MAX => refinement.length_max = Some(value.as_u64().ok_or_else(malformed)?),
            _ => {}
        }
    }
    if refinement.nullable == Some(true) {
        return Ok(Value::null(ty.clone()));
    }
    Ok(Value::unknown_refined(ty.clone(), refinement))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn bytes_are_those_of_cty() {
        let number = |text: &str| Value::number(Number::parse(text).unwrap());
        let prefixed = Refinement { string_prefix: Some("a-".into()), ..Refinement::not_null() };
        for (value, ty, bytes) in [
            (Value::null(Type::String), Type::String, "c0"),
            (Value::unknown(Type::String), Type::String, "d40000"),
            (Value::unknown_not_null(Type::Bool), Type::Bool, "c7030c8101c2"),
            (Value::unknown_refined(Type::String, prefixed), Type::String, "c7070c8201c202a2612d"),
            (Value::unknown(Type::String), Type::Dynamic, "92c40822737472696e6722d40000"),
            (Value::unknown(Type::Dynamic), Type::Dynamic, "d40000"),
            (Value::null(Type::Dynamic), Type::Dynamic, "c0"),
            (Value::from("hi"), Type::Dynamic, "92c40822737472696e6722a26869"),
            (number("12"), Type::Number, "0c"),
            (number("-200"), Type::Number, "d1ff38"),
            (number("0.5"), Type::Number, "cb3fe0000000000000"),
            (number("0.1"), Type::Number, "a3302e31"),
            (number("18446744073709551615"), Type::Number, "b43138343436373434303733373039353531363135"),
            (
                Value::object([("b", Value::bool(true)), ("a", Value::from("x"))]),
                Type::object([("a", Type::String), ("b", Type::Bool)]),
                "82a161a178a162c3",
            ),
        ] {
            assert_eq!(hex(&value.to_msgpack(&ty).unwrap()), bytes, "{value:?}");
            assert_eq!(Value::from_msgpack(&value.to_msgpack(&ty).unwrap(), &ty).unwrap(), value);
        }
    }

    #[test]
    fn a_double_comes_back_as_the_same_double() {
        let bytes = [0xcb, 0x3f, 0xb9, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9a];
        let value = Value::from_msgpack(&bytes, &Type::Number).unwrap();
        assert_eq!(value.to_msgpack(&Type::Number).unwrap(), bytes);
    }

    #[test]
    fn wrong_bytes_are_refused_with_the_place() {
        let ty = Type::object([("a", Type::list(Type::Bool))]);
        let wrong = Type::object([("a", Type::list(Type::String))]);
        let value = Value::object([("a", Value::list(Type::String, vec!["x".into()]))]);
        let error = Value::from_msgpack(&value.to_msgpack(&wrong).unwrap(), &ty).unwrap_err();
        assert_eq!(error.to_string(), ".a[0]: bool required, but have something else");
        assert!(Value::from_msgpack(&[0x80], &ty).is_err(), "a missing attribute");
        assert!(Value::from_msgpack(&[0xc0, 0xc0], &ty).is_err(), "trailing bytes");
        assert!(Value::from_msgpack(&[0x91; 100_000], &Type::Dynamic).is_err(), "deep nesting");
        assert!(Value::from("s").with_mark(crate::Mark::Sensitive).to_msgpack(&Type::String).is_err());
    }
}
