use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use crate::{Number, Type, normalize, set};

/// What a value carries along through every expression it takes part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mark {
    Sensitive,
    Ephemeral,
    /// Comes from something that should not be used any longer. Whoever put the mark there knows by the number what it was.
    Deprecated(u32),
}

pub type Marks = BTreeSet<Mark>;

/// What is known about an unknown value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refinement {
    /// `Some(false)`: will certainly not be null.
    pub nullable: Option<bool>,
    pub string_prefix: Option<String>,
    /// The bound, and whether it is part of the range.
    pub number_min: Option<(Number, bool)>,
    pub number_max: Option<(Number, bool)>,
    pub length_min: Option<u64>,
    pub length_max: Option<u64>,
}

/// A longer list of unknown elements stays an unknown list: its length comes from outside and would be memory here.
const MAX_KNOWN_LENGTH: u64 = 100_000;

impl Refinement {
    pub fn not_null() -> Refinement {
        Refinement { nullable: Some(false), ..Refinement::default() }
    }
}

/// A value with its type and marks. Marks sit where they were put: a container's element keeps its own, but for a set,
/// which takes over the marks of its elements.
///
/// A copy shares what is inside: a reference to a whole resource costs as much as one to a number.
#[derive(Clone, PartialEq, Eq)]
pub struct Value {
    pub ty: Type,
    pub data: Data,
    pub marks: Marks,
}

#[derive(Clone, PartialEq, Eq)]
pub enum Data {
    Null,
    Unknown(Arc<Refinement>),
    Bool(bool),
    Number(Number),
    String(Arc<str>),
    /// Lists, tuples, and sets; a set's elements are unique and in a canonical order.
    Sequence(Arc<Vec<Value>>),
    /// Maps and objects; an object has every attribute of its type.
    Mapping(Arc<BTreeMap<String, Value>>),
}

impl Value {
    fn new(ty: Type, data: Data) -> Value {
        Value { ty, data, marks: Marks::new() }
    }

    pub fn null(ty: Type) -> Value {
        Value::new(ty.without_optional(), Data::Null)
    }

    pub fn unknown(ty: Type) -> Value {
        // Most are of this kind, and a large plan has very many.
        static NOTHING_KNOWN: LazyLock<Arc<Refinement>> = LazyLock::new(Arc::default);
        Value::new(ty.without_optional(), Data::Unknown(NOTHING_KNOWN.clone()))
    }

    /// An unknown value of which something is known. If that leaves only one possibility, the value is known after all;
    /// a list of known length becomes a list of unknown elements. Nothing can be said about a value of dynamic type.
    pub fn unknown_refined(ty: Type, mut refinement: Refinement) -> Value {
        let ty = ty.without_optional();
        refinement.length_min = refinement.length_min.filter(|min| *min > 0);
        refinement.string_prefix = refinement.string_prefix.filter(|prefix| !prefix.is_empty());
        let length = (refinement.length_max == Some(refinement.length_min.unwrap_or(0)))
            .then_some(refinement.length_min.unwrap_or(0));
        match (&ty, refinement.nullable) {
            (Type::Dynamic, _) => return Value::unknown(ty),
            (_, Some(true)) => return Value::null(ty),
            (Type::Number, Some(false)) => {
                if let (Some((min, true)), Some((max, true))) = (&refinement.number_min, &refinement.number_max)
                    && min == max
                {
                    return Value::number(min.clone());
                }
            }
            (Type::List(element), Some(false)) => {
                if let Some(length @ 0..=MAX_KNOWN_LENGTH) = length {
                    let elements = vec![Value::unknown((**element).clone()); length as usize];
                    return Value::new(ty, Data::Sequence(Arc::new(elements)));
                }
            }
            (Type::Set(element), Some(false)) => {
                if let Some(length @ 0..=1) = length {
                    let elements = vec![Value::unknown((**element).clone()); length as usize];
                    return Value::new(ty, Data::Sequence(Arc::new(elements)));
                }
            }
            (Type::Map(_), Some(false)) if length == Some(0) => {
                return Value::new(ty, Data::Mapping(Arc::default()));
            }
            _ => {}
        }
        Value::new(ty, Data::Unknown(Arc::new(refinement)))
    }

    pub fn unknown_not_null(ty: Type) -> Value {
        Value::unknown_refined(ty, Refinement::not_null())
    }

    pub fn bool(value: bool) -> Value {
        Value::new(Type::Bool, Data::Bool(value))
    }

    pub fn number(value: impl Into<Number>) -> Value {
        Value::new(Type::Number, Data::Number(value.into()))
    }

    /// Text in Unicode's normal form C: two spellings of one text are one value.
    pub fn string(text: impl AsRef<str>) -> Value {
        Value::new(Type::String, Data::String(normalize(text.as_ref()).into()))
    }

    /// A list. Where `element` is not wholly known, the elements say what it is.
    pub fn list(element: Type, elements: Vec<Value>) -> Value {
        Value::new(Type::list(element_type(element, &elements)), Data::Sequence(Arc::new(elements)))
    }

    /// A set: equal elements become one, and the elements' marks become the set's.
    pub fn set(element: Type, elements: Vec<Value>) -> Value {
        let element = element_type(element, &elements);
        let (elements, marks) = set::canonical(elements);
        Value { ty: Type::set(element), data: Data::Sequence(Arc::new(elements)), marks }
    }

    pub fn map<K: Into<String>>(element: Type, elements: impl IntoIterator<Item = (K, Value)>) -> Value {
        let elements: BTreeMap<String, Value> = elements.into_iter().map(|(key, value)| (key.into(), value)).collect();
        let element = element_type(element, elements.values());
        Value::new(Type::map(element), Data::Mapping(Arc::new(elements)))
    }

    pub fn tuple(elements: Vec<Value>) -> Value {
        let ty = Type::Tuple(elements.iter().map(|element| element.ty.clone()).collect());
        Value::new(ty, Data::Sequence(Arc::new(elements)))
    }

    pub fn object<K: Into<String>>(attributes: impl IntoIterator<Item = (K, Value)>) -> Value {
        let attributes: BTreeMap<String, Value> =
            attributes.into_iter().map(|(name, value)| (name.into(), value)).collect();
        let ty = Type::object(attributes.iter().map(|(name, value)| (name.clone(), value.ty.clone())));
        Value::new(ty, Data::Mapping(Arc::new(attributes)))
    }

    pub fn is_null(&self) -> bool {
        matches!(self.data, Data::Null)
    }

    /// Whether this value itself is known; its elements need not be.
    pub fn is_known(&self) -> bool {
        !matches!(self.data, Data::Unknown(_))
    }

    pub fn is_wholly_known(&self) -> bool {
        match &self.data {
            Data::Unknown(_) => false,
            Data::Sequence(elements) => elements.iter().all(Value::is_wholly_known),
            Data::Mapping(elements) => elements.values().all(Value::is_wholly_known),
            Data::Null | Data::Bool(_) | Data::Number(_) | Data::String(_) => true,
        }
    }

    /// Known and not null, or unknown but certainly not null.
    pub fn is_definitely_not_null(&self) -> bool {
        match &self.data {
            Data::Null => false,
            Data::Unknown(refinement) => refinement.nullable == Some(false),
            _ => true,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self.data {
            Data::Bool(value) => Some(value),
            _ => None,
        }
    }

    pub fn as_number(&self) -> Option<&Number> {
        match &self.data {
            Data::Number(value) => Some(value),
            _ => None,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match &self.data {
            Data::String(value) => Some(value),
            _ => None,
        }
    }

    /// The elements of a known list, set or tuple.
    pub fn as_sequence(&self) -> Option<&[Value]> {
        match &self.data {
            Data::Sequence(elements) => Some(elements),
            _ => None,
        }
    }

    /// The elements of a known map, or the attributes of a known object.
    pub fn as_mapping(&self) -> Option<&BTreeMap<String, Value>> {
        match &self.data {
            Data::Mapping(elements) => Some(elements),
            _ => None,
        }
    }

    /// An attribute of a known object, or an element of a known map.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.as_mapping()?.get(name)
    }

    /// An element of a known list, set or tuple.
    pub fn at(&self, index: usize) -> Option<&Value> {
        self.as_sequence()?.get(index)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::string(text)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::bool(value)
    }
}

/// The one type that all elements have, where the caller's idea of it leaves something open.
fn element_type<'a>(given: Type, elements: impl IntoIterator<Item = &'a Value>) -> Type {
    let given = given.without_optional();
    if !given.has_dynamic() {
        return given;
    }
    let concrete = elements.into_iter().map(|element| &element.ty).find(|ty| **ty != Type::Dynamic);
    concrete.cloned().unwrap_or(given)
}

/// A marked value is never printed.
impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.marks.is_empty() {
            return write!(f, "(marked {})", self.ty.friendly_name());
        }
        self.data.fmt(f)
    }
}

impl std::fmt::Debug for Data {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Data::Null => f.write_str("null"),
            Data::Unknown(_) => f.write_str("(unknown)"),
            Data::Bool(value) => value.fmt(f),
            Data::Number(value) => value.fmt(f),
            Data::String(value) => value.fmt(f),
            Data::Sequence(elements) => f.debug_list().entries(elements.iter()).finish(),
            Data::Mapping(elements) => f.debug_map().entries(elements.iter()).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_well_enough_is_known() {
        let refined = |ty: Type, refinement: Refinement| format!("{:?}", Value::unknown_refined(ty, refinement));
        let length = |min, max| Refinement { length_min: Some(min), length_max: Some(max), ..Refinement::not_null() };
        let strings = || Type::list(Type::String);
        assert_eq!(refined(strings(), length(2, 2)), "[(unknown), (unknown)]");
        assert_eq!(refined(strings(), length(0, 0)), "[]");
        assert_eq!(refined(strings(), length(1, 2)), "(unknown)");
        assert_eq!(refined(strings(), length(u64::MAX, u64::MAX)), "(unknown)");
        assert_eq!(refined(strings(), Refinement { nullable: None, ..length(2, 2) }), "(unknown)");
        assert_eq!(refined(Type::set(Type::String), length(1, 1)), "[(unknown)]");
        assert_eq!(refined(Type::set(Type::String), length(2, 2)), "(unknown)");
        let two = Some((Number::from(2), true));
        let bounds = Refinement { number_min: two.clone(), number_max: two, ..Refinement::not_null() };
        assert_eq!(refined(Type::Number, bounds), "2");
    }
}
