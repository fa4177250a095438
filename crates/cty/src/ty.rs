use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;

/// The type of a value. `Dynamic` stands for a type that is not known yet, or that travels with the value.
///
/// Every value has its type with it, so a copy of a type shares what is inside.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    Dynamic,
    Bool,
    Number,
    String,
    List(Arc<Type>),
    Set(Arc<Type>),
    Map(Arc<Type>),
    Tuple(Arc<[Type]>),
    /// `optional` names the attributes that a conversion may leave out; only type constraints have any.
    Object {
        attributes: Arc<BTreeMap<String, Type>>,
        optional: Arc<BTreeSet<String>>,
    },
}

/// A type's JSON form could not be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a type: {0}")]
pub struct NotAType(String);

impl Type {
    pub fn list(element: Type) -> Type {
        Type::List(Arc::new(element))
    }

    pub fn set(element: Type) -> Type {
        Type::Set(Arc::new(element))
    }

    pub fn map(element: Type) -> Type {
        Type::Map(Arc::new(element))
    }

    pub fn tuple(elements: impl IntoIterator<Item = Type>) -> Type {
        Type::Tuple(elements.into_iter().collect())
    }

    pub fn object<K: Into<String>>(attributes: impl IntoIterator<Item = (K, Type)>) -> Type {
        static NONE: LazyLock<Arc<BTreeSet<String>>> = LazyLock::new(Arc::default);
        let attributes = attributes.into_iter().map(|(name, ty)| (name.into(), ty)).collect();
        Type::Object { attributes: Arc::new(attributes), optional: NONE.clone() }
    }

    /// An object of which a conversion may leave out the attributes in `optional`.
    pub fn object_with_optional(attributes: BTreeMap<String, Type>, optional: BTreeSet<String>) -> Type {
        Type::Object { attributes: Arc::new(attributes), optional: Arc::new(optional) }
    }

    pub fn is_primitive(&self) -> bool {
        matches!(self, Type::Bool | Type::Number | Type::String)
    }

    /// A list, a set or a map: any number of elements of one type.
    pub fn is_collection(&self) -> bool {
        self.element().is_some()
    }

    /// The type of the elements of a list, a set or a map.
    pub fn element(&self) -> Option<&Type> {
        match self {
            Type::List(element) | Type::Set(element) | Type::Map(element) => Some(element),
            _ => None,
        }
    }

    /// The type of an object's attribute.
    pub fn attribute(&self, name: &str) -> Option<&Type> {
        match self {
            Type::Object { attributes, .. } => attributes.get(name),
            _ => None,
        }
    }

    pub fn has_dynamic(&self) -> bool {
        match self {
            Type::Dynamic => true,
            Type::Bool | Type::Number | Type::String => false,
            Type::List(element) | Type::Set(element) | Type::Map(element) => element.has_dynamic(),
            Type::Tuple(elements) => elements.iter().any(Type::has_dynamic),
            Type::Object { attributes, .. } => attributes.values().any(Type::has_dynamic),
        }
    }

    fn has_optional(&self) -> bool {
        match self {
            Type::Dynamic | Type::Bool | Type::Number | Type::String => false,
            Type::List(element) | Type::Set(element) | Type::Map(element) => element.has_optional(),
            Type::Tuple(elements) => elements.iter().any(Type::has_optional),
            Type::Object { attributes, optional } => {
                !optional.is_empty() || attributes.values().any(Type::has_optional)
            }
        }
    }

    /// The type of the values that a constraint leads to: no value's type has optional attributes.
    pub fn without_optional(&self) -> Type {
        if !self.has_optional() {
            return self.clone();
        }
        match self {
            Type::Dynamic | Type::Bool | Type::Number | Type::String => self.clone(),
            Type::List(element) => Type::list(element.without_optional()),
            Type::Set(element) => Type::set(element.without_optional()),
            Type::Map(element) => Type::map(element.without_optional()),
            Type::Tuple(elements) => Type::tuple(elements.iter().map(Type::without_optional)),
            Type::Object { attributes, .. } => {
                Type::object(attributes.iter().map(|(name, ty)| (name.clone(), ty.without_optional())))
            }
        }
    }

    /// The name for messages about a value: `list of string`.
    pub fn friendly_name(&self) -> String {
        self.name("dynamic")
    }

    /// The name for messages about what is wanted: `list of any single type`.
    pub fn friendly_name_for_constraint(&self) -> String {
        match self {
            Type::Dynamic => "any type".to_owned(),
            _ => self.name("any single type"),
        }
    }

    fn name(&self, dynamic: &str) -> String {
        match self {
            Type::Dynamic => dynamic.to_owned(),
            Type::Bool => "bool".to_owned(),
            Type::Number => "number".to_owned(),
            Type::String => "string".to_owned(),
            Type::List(element) => format!("list of {}", element.name(dynamic)),
            Type::Set(element) => format!("set of {}", element.name(dynamic)),
            Type::Map(element) => format!("map of {}", element.name(dynamic)),
            Type::Tuple(_) => "tuple".to_owned(),
            Type::Object { .. } => "object".to_owned(),
        }
    }

    /// The form that the protocol and the state have: `["list","string"]`.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Type::Dynamic => json!("dynamic"),
            Type::Bool => json!("bool"),
            Type::Number => json!("number"),
            Type::String => json!("string"),
            Type::List(element) => json!(["list", element.to_json()]),
            Type::Set(element) => json!(["set", element.to_json()]),
            Type::Map(element) => json!(["map", element.to_json()]),
            Type::Tuple(elements) => json!(["tuple", elements.iter().map(Type::to_json).collect::<Vec<_>>()]),
            Type::Object { attributes, optional } => {
                let attributes: serde_json::Map<_, _> =
                    attributes.iter().map(|(name, ty)| (name.clone(), ty.to_json())).collect();
                if optional.is_empty() {
                    json!(["object", attributes])
                } else {
                    json!(["object", attributes, **optional])
                }
            }
        }
    }

    pub fn from_json(json: &serde_json::Value) -> Result<Type, NotAType> {
        let refuse = || NotAType(json.to_string());
        if let Some(name) = json.as_str() {
            return match name {
                "dynamic" => Ok(Type::Dynamic),
                "bool" => Ok(Type::Bool),
                "number" => Ok(Type::Number),
                "string" => Ok(Type::String),
                _ => Err(refuse()),
            };
        }
        let parts = json.as_array().ok_or_else(refuse)?;
        let kind = parts.first().and_then(|kind| kind.as_str()).ok_or_else(refuse)?;
        match (kind, &parts[1..]) {
            ("list", [element]) => Ok(Type::list(Type::from_json(element)?)),
            ("set", [element]) => Ok(Type::set(Type::from_json(element)?)),
            ("map", [element]) => Ok(Type::map(Type::from_json(element)?)),
            ("tuple", [serde_json::Value::Array(elements)]) => {
                Ok(Type::Tuple(elements.iter().map(Type::from_json).collect::<Result<_, _>>()?))
            }
            ("object", [serde_json::Value::Object(attributes), rest @ ..]) => {
                let attributes = attributes
                    .iter()
                    .map(|(name, ty)| Ok((name.clone(), Type::from_json(ty)?)))
                    .collect::<Result<BTreeMap<_, _>, NotAType>>()?;
                let optional = match rest {
                    [] => BTreeSet::new(),
                    [serde_json::Value::Array(names)] => names
                        .iter()
                        .map(|name| name.as_str().map(str::to_owned).ok_or_else(refuse))
                        .collect::<Result<_, _>>()?,
                    _ => return Err(refuse()),
                };
                if !optional.iter().all(|name| attributes.contains_key(name)) {
                    return Err(refuse());
                }
                Ok(Type::object_with_optional(attributes, optional))
            }
            _ => Err(refuse()),
        }
    }
}

impl Serialize for Type {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Type {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Type, D::Error> {
        let json = serde_json::Value::deserialize(deserializer)?;
        Type::from_json(&json).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_form_of_the_protocol() {
        let text =
            r#"["object",{"a":["list","string"],"b":["tuple",["bool","dynamic"]],"c":["map",["set","number"]]},["a"]]"#;
        let ty: Type = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&ty).unwrap(), text);
    }

    #[test]
    fn what_is_no_type_is_refused() {
        for text in
            [r#""int""#, "[]", r#"["list"]"#, r#"["object",{"a":"string"},["b"]]"#, "null", r#"["tuple","string"]"#]
        {
            assert!(serde_json::from_str::<Type>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_are_those_of_messages() {
        assert_eq!(Type::list(Type::map(Type::String)).friendly_name(), "list of map of string");
        assert_eq!(Type::set(Type::Dynamic).friendly_name_for_constraint(), "set of any single type");
        assert_eq!(Type::Dynamic.friendly_name_for_constraint(), "any type");
    }
}
