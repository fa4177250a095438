use std::collections::{BTreeMap, BTreeSet};

use crate::Type;

/// A number as Terraform has it: exact, of any size.
pub type Number = bigdecimal::BigDecimal;

/// What a value carries along through every expression it takes part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mark {
    Sensitive,
    Ephemeral,
}

pub type Marks = BTreeSet<Mark>;

/// What is known about an unknown value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Refinement {
    /// `Some(false)`: will certainly not be null.
    pub nullable: Option<bool>,
    pub string_prefix: Option<String>,
    pub number_min: Option<(Number, bool)>,
    pub number_max: Option<(Number, bool)>,
    pub length_min: Option<u64>,
    pub length_max: Option<u64>,
}

/// A value with its type and marks. Marks sit where they were put: a container's element keeps its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Value {
    pub ty: Type,
    pub data: Data,
    pub marks: Marks,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Data {
    Null,
    Unknown(Box<Refinement>),
    Bool(bool),
    Number(Number),
    String(String),
    /// Lists, tuples, and sets; a set's elements are unique and in a canonical order.
    Sequence(Vec<Value>),
    /// Maps and objects; an object has every attribute of its type.
    Mapping(BTreeMap<String, Value>),
}
