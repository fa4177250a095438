use std::collections::{BTreeMap, BTreeSet};

/// The type of a value. `Dynamic` stands for a type that is not known yet, or that travels with the value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    Dynamic,
    Bool,
    Number,
    String,
    List(Box<Type>),
    Set(Box<Type>),
    Map(Box<Type>),
    Tuple(Vec<Type>),
    /// `optional` names the attributes that a conversion may leave out; only type constraints have any.
    Object {
        attributes: BTreeMap<String, Type>,
        optional: BTreeSet<String>,
    },
}

impl Type {
    pub fn list(element: Type) -> Type {
        Type::List(Box::new(element))
    }

    pub fn set(element: Type) -> Type {
        Type::Set(Box::new(element))
    }

    pub fn map(element: Type) -> Type {
        Type::Map(Box::new(element))
    }

    pub fn object<K: Into<String>>(attributes: impl IntoIterator<Item = (K, Type)>) -> Type {
        Type::Object {
            attributes: attributes.into_iter().map(|(name, ty)| (name.into(), ty)).collect(),
            optional: BTreeSet::new(),
        }
    }
}
