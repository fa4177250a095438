//! Conversion between types, with go-cty's rules: which conversions there are is decided by types alone
//! ([`possible`]), and whether one succeeds may still depend on the value.

mod mismatch;
mod possible;
mod unify;

use std::collections::BTreeMap;

pub use mismatch::mismatch_message;
pub use possible::{Safety, is_possible};
pub use unify::{Unified, unify};

use crate::{Data, Number, Path, Refinement, Step, Type, Value};

/// A value could not become one of the wanted type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConvertError {
    pub message: String,
    /// Where in the value.
    pub path: Path,
}

impl ConvertError {
    fn new(message: impl Into<String>) -> ConvertError {
        ConvertError { message: message.into(), path: Path::new() }
    }

    fn inside(mut self, step: Step) -> ConvertError {
        self.path.insert(0, step);
        self
    }
}

impl Value {
    /// Converts to `wanted`, which may leave things open (`list(any)`) or have optional attributes. Null and unknown
    /// become null and unknown of the wanted type; marks stay.
    pub fn convert(&self, wanted: &Type) -> Result<Value, ConvertError> {
        if self.ty == wanted.without_optional() {
            return Ok(self.clone());
        }
        if !is_possible(&self.ty, wanted, Safety::Unsafe) {
            return Err(ConvertError::new(mismatch_message(&self.ty, wanted)));
        }
        apply(self, wanted, Safety::Unsafe)
    }

    /// Converts to the common type that [`unify`] found.
    pub fn convert_unified(&self, unified: &Unified) -> Result<Value, ConvertError> {
        match unified {
            Unified::Undecided => Ok(Value::unknown(Type::Dynamic)),
            Unified::Common(ty) if *ty == self.ty => Ok(self.clone()),
            Unified::Common(ty) => apply(self, ty, Safety::Unsafe),
        }
    }
}

/// Performs a conversion that is possible between the types.
fn apply(value: &Value, wanted: &Type, safety: Safety) -> Result<Value, ConvertError> {
    if !value.marks.is_empty() {
        let (bare, marks) = value.clone().unmark();
        return Ok(apply(&bare, wanted, safety)?.with_marks(&marks));
    }
    if *wanted == Type::Dynamic || value.ty == *wanted {
        return Ok(value.clone());
    }
    match (&value.data, wanted) {
        (Data::Unknown(refinement), _) => Ok(convert_unknown(value, refinement, wanted)),
        (Data::Null, _) => Ok(Value::null(replace_dynamic(&value.ty, &wanted.without_optional()))),
        (Data::Number(number), Type::String) => Ok(Value::string(number.to_string())),
        (Data::Bool(value), Type::String) => Ok(Value::string(value.to_string())),
        (Data::String(text), Type::Number) => {
            Number::parse(text).map(Value::number).map_err(|error| ConvertError::new(error.to_string()))
        }
        (Data::String(text), Type::Bool) => match &**text {
            "true" | "1" => Ok(Value::bool(true)),
            "false" | "0" => Ok(Value::bool(false)),
            _ => {
                let lower = text.to_lowercase();
                let hint = matches!(lower.as_str(), "true" | "false")
                    .then(|| format!("; to convert from string, use lowercase \"{lower}\""));
                Err(ConvertError::new(format!("a bool is required{}", hint.unwrap_or_default())))
            }
        },
        (Data::Sequence(elements), Type::Tuple(types)) => Ok(Value::tuple(
            elements
                .iter()
                .zip(types.iter())
                .enumerate()
                .map(|(index, (element, ty))| {
                    apply(element, ty, safety).map_err(|error| error.inside(Step::Index(index)))
                })
                .collect::<Result<_, _>>()?,
        )),
        (Data::Sequence(elements), Type::List(element)) => to_list(value, elements, element, safety),
        (Data::Sequence(elements), Type::Set(element)) => to_set(value, elements, element, safety),
        (Data::Mapping(elements), Type::Map(element)) => to_map(value, elements, element, safety),
        (Data::Mapping(elements), Type::Object { .. }) => to_object(value, elements, wanted, safety),
        _ => Err(ConvertError::new(mismatch_message(&value.ty, wanted))),
    }
}

fn to_list(value: &Value, elements: &[Value], element: &Type, safety: Safety) -> Result<Value, ConvertError> {
    if value.known_length().is_none() {
        return Ok(Value::unknown(replace_dynamic(&value.ty, &Type::list(element.without_optional()))));
    }
    let is_tuple = matches!(value.ty, Type::Tuple(_));
    if elements.is_empty() {
        return Ok(Value::list(empty_element(value, element), Vec::new()));
    }
    let target = element_target(&value.ty, element, safety);
    let mut converted = convert_elements(elements, &target, safety)?;
    if is_tuple {
        converted = unify_elements(converted, safety)?;
    }
    require_one_type(&converted, "list")?;
    Ok(Value::list(target, converted))
}

fn to_set(value: &Value, elements: &[Value], element: &Type, safety: Safety) -> Result<Value, ConvertError> {
    if elements.is_empty() {
        return Ok(Value::set(empty_element(value, element), Vec::new()));
    }
    let target = element_target(&value.ty, element, safety);
    let converted = convert_elements(elements, &target, safety)?;
    require_one_type(&converted, "set")?;
    Ok(Value::set(target, converted))
}

fn to_map(
    value: &Value,
    elements: &BTreeMap<String, Value>,
    element: &Type,
    safety: Safety,
) -> Result<Value, ConvertError> {
    if elements.is_empty() {
        return Ok(Value::map::<String>(empty_element(value, element), []));
    }
    let target = element_target(&value.ty, element, safety);
    let mut converted = Vec::with_capacity(elements.len());
    for (key, element) in elements {
        converted.push(apply(element, &target, safety).map_err(|error| error.inside(Step::Key(key.clone())))?);
    }
    if target.is_collection() || matches!(target, Type::Object { .. }) {
        let safety = if matches!(value.ty, Type::Map(_)) { Safety::Safe } else { safety };
        converted = unify_elements(converted, safety)?;
    }
    require_one_type(&converted, "map")?;
    Ok(Value::map(target, elements.keys().cloned().zip(converted)))
}

fn to_object(
    value: &Value,
    elements: &BTreeMap<String, Value>,
    wanted: &Type,
    safety: Safety,
) -> Result<Value, ConvertError> {
    let Type::Object { attributes, optional } = wanted else { unreachable!("only called for objects") };
    let from_map = matches!(value.ty, Type::Map(_));
    let mut converted = BTreeMap::new();
    for (name, ty) in attributes.iter() {
        let part = match elements.get(name) {
            Some(part) if from_map && part.ty != *ty && !is_possible(&part.ty, ty, safety) => {
                return Err(ConvertError::new(format!(
                    "map element type is incompatible with attribute {name:?}: {}",
                    mismatch_message(&part.ty, ty)
                )));
            }
            Some(part) => {
                let step = if from_map { Step::Key(name.clone()) } else { Step::Attribute(name.clone()) };
                apply(part, ty, safety).map_err(|error| error.inside(step))?
            }
            None if optional.contains(name) => Value::null(ty.clone()),
            None => {
                return Err(ConvertError::new(format!("map has no element for required attribute {name:?}")));
            }
        };
        converted.insert(name.clone(), part);
    }
    Ok(Value::object(converted))
}

fn convert_elements(elements: &[Value], target: &Type, safety: Safety) -> Result<Vec<Value>, ConvertError> {
    elements
        .iter()
        .enumerate()
        .map(|(index, element)| apply(element, target, safety).map_err(|error| error.inside(Step::Index(index))))
        .collect()
}

/// The element type to convert to: where any type will do, the one that all parts have in common.
fn element_target(from: &Type, element: &Type, safety: Safety) -> Type {
    if *element != Type::Dynamic {
        return element.clone();
    }
    let parts: Vec<Type> = match from {
        Type::Tuple(types) => types.to_vec(),
        Type::Object { attributes, .. } => attributes.values().cloned().collect(),
        _ => return Type::Dynamic,
    };
    unify(&parts, safety).map_or(Type::Dynamic, Unified::into_type)
}

/// An empty collection has the wanted type, or keeps its own where any will do.
fn empty_element(value: &Value, wanted: &Type) -> Type {
    match value.ty.element() {
        Some(own) if *wanted == Type::Dynamic => own.clone(),
        _ => wanted.clone(),
    }
}

/// Parts that were converted to a type with something left open may still differ.
fn unify_elements(elements: Vec<Value>, safety: Safety) -> Result<Vec<Value>, ConvertError> {
    let types: Vec<Type> = elements.iter().map(|element| element.ty.clone()).collect();
    if types.windows(2).all(|pair| pair[0] == pair[1]) {
        return Ok(elements);
    }
    match unify(&types, safety) {
        None => Err(ConvertError::new("cannot find a common base type for all elements")),
        Some(Unified::Undecided) => Ok(elements.iter().map(|_| Value::unknown(Type::Dynamic)).collect()),
        Some(Unified::Common(ty)) => convert_elements(&elements, &ty, safety),
    }
}

fn require_one_type(elements: &[Value], kind: &str) -> Result<(), ConvertError> {
    let mut types = elements.iter().map(|element| &element.ty).filter(|ty| **ty != Type::Dynamic);
    let first = types.next();
    if types.all(|ty| Some(ty) == first) {
        return Ok(());
    }
    Err(ConvertError::new(format!("element types must all match for conversion to {kind}")))
}

/// Some of what is known about an unknown value is still true after the conversion.
fn convert_unknown(value: &Value, refinement: &Refinement, wanted: &Type) -> Value {
    let target = replace_dynamic(&value.ty, &wanted.without_optional());
    let mut kept = Refinement { nullable: refinement.nullable.filter(|nullable| !nullable), ..Refinement::default() };
    let mut exactly = |length: usize| {
        kept.length_min = Some(length as u64);
        kept.length_max = Some(length as u64);
    };
    match (&value.ty, &target) {
        (Type::Object { attributes, .. }, Type::Map(_)) => exactly(attributes.len()),
        (Type::Tuple(types), Type::List(_)) => exactly(types.len()),
        (Type::Tuple(types), Type::Set(_)) if types.len() < 2 => exactly(types.len()),
        (Type::Tuple(types), Type::Set(_)) => {
            kept.length_min = Some(1);
            kept.length_max = Some(types.len() as u64);
        }
        (from, Type::Set(_)) if from.is_collection() => {
            kept.length_min = refinement.length_min.map(|min| min.min(1));
            kept.length_max = refinement.length_max;
        }
        (from, to) if from.is_collection() && to.is_collection() => {
            kept.length_min = refinement.length_min;
            kept.length_max = refinement.length_max;
        }
        _ => {}
    }
    Value::unknown_refined(target, kept)
}

/// `wanted`, with what it leaves open filled in from `from`.
fn replace_dynamic(from: &Type, wanted: &Type) -> Type {
    let unified = |types: &[Type]| unify(types, Safety::Unsafe).map_or(Type::Dynamic, Unified::into_type);
    match (from, wanted) {
        (Type::Dynamic, _) => wanted.clone(),
        (_, Type::Dynamic) => from.clone(),
        (Type::Map(from), Type::Map(wanted)) => Type::map(replace_dynamic(from, wanted)),
        (Type::Object { attributes, .. }, Type::Map(wanted)) => {
            let types: Vec<Type> = attributes.values().cloned().collect();
            Type::map(replace_dynamic(&unified(&types), wanted))
        }
        (Type::List(from) | Type::Set(from), Type::List(wanted)) => Type::list(replace_dynamic(from, wanted)),
        (Type::List(from) | Type::Set(from), Type::Set(wanted)) => Type::set(replace_dynamic(from, wanted)),
        (Type::Tuple(types), Type::List(wanted)) => Type::list(replace_dynamic(&unified(types), wanted)),
        (Type::Tuple(types), Type::Set(wanted)) => Type::set(replace_dynamic(&unified(types), wanted)),
        (Type::Tuple(from), Type::Tuple(wanted)) if from.len() == wanted.len() => {
            Type::Tuple(from.iter().zip(wanted.iter()).map(|(from, wanted)| replace_dynamic(from, wanted)).collect())
        }
        (Type::Map(from), Type::Object { attributes, .. }) => {
            Type::object(attributes.iter().map(|(name, wanted)| (name.clone(), replace_dynamic(from, wanted))))
        }
        (Type::Object { attributes: from, .. }, Type::Object { attributes, .. }) => {
            Type::object(attributes.iter().map(|(name, wanted)| {
                let ty = from.get(name).map_or_else(|| wanted.clone(), |from| replace_dynamic(from, wanted));
                (name.clone(), ty)
            }))
        }
        _ => wanted.clone(),
    }
}

#[cfg(test)]
mod tests;
