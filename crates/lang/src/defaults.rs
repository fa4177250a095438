use std::collections::BTreeMap;

use landform_cty::{Data, Safety, Type, Value, unify};

/// The default values inside a type constraint: `object({ a = optional(number, 5) })`.
///
/// They are applied to the given value before it is converted to the type, because afterwards it could not be told
/// what was left out.
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    /// For the attributes of an object.
    values: BTreeMap<String, Value>,
    inner: Inner,
}

#[derive(Clone, Debug, Default)]
enum Inner {
    #[default]
    None,
    Elements(Box<Defaults>),
    Tuple(Vec<Defaults>),
    Object(BTreeMap<String, Defaults>),
}

impl Defaults {
    pub(crate) fn of_elements(element: Defaults) -> Defaults {
        let inner = if element.is_empty() { Inner::None } else { Inner::Elements(Box::new(element)) };
        Defaults { values: BTreeMap::new(), inner }
    }

    pub(crate) fn of_tuple(elements: Vec<Defaults>) -> Defaults {
        let empty = elements.iter().all(Defaults::is_empty);
        Defaults { values: BTreeMap::new(), inner: if empty { Inner::None } else { Inner::Tuple(elements) } }
    }

    pub(crate) fn of_object(values: BTreeMap<String, Value>, mut attributes: BTreeMap<String, Defaults>) -> Defaults {
        attributes.retain(|_, defaults| !defaults.is_empty());
        Defaults { values, inner: if attributes.is_empty() { Inner::None } else { Inner::Object(attributes) } }
    }

    fn is_empty(&self) -> bool {
        self.values.is_empty() && matches!(self.inner, Inner::None)
    }

    /// Fills in what was left out or is null.
    pub(crate) fn apply(&self, value: &Value) -> Value {
        if self.is_empty() {
            return value.clone();
        }
        let (value, marks) = value.clone().unmark();
        let filled = match &value.data {
            Data::Sequence(elements) => {
                let elements = elements.iter().enumerate().map(|(index, element)| match &self.inner {
                    Inner::Elements(defaults) => defaults.apply(element),
                    Inner::Tuple(defaults) => {
                        defaults.get(index).map_or_else(|| element.clone(), |defaults| defaults.apply(element))
                    }
                    _ => element.clone(),
                });
                sequence(&value.ty, elements.collect())
            }
            Data::Mapping(elements) => mapping(&value.ty, self.apply_to_mapping(elements)),
            _ => value,
        };
        filled.with_marks(&marks)
    }

    fn apply_to_mapping(&self, elements: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
        let inner = |name: &str| match &self.inner {
            Inner::Elements(defaults) => Some(&**defaults),
            Inner::Object(defaults) => defaults.get(name),
            _ => None,
        };
        let apply = |name: &str, value: &Value| match inner(name) {
            Some(defaults) => defaults.apply(value),
            None => value.clone(),
        };
        let mut filled: BTreeMap<String, Value> =
            elements.iter().map(|(name, element)| (name.clone(), apply(name, element))).collect();
        for (name, default) in &self.values {
            if filled.get(name).is_none_or(Value::is_null) {
                filled.insert(name.clone(), apply(name, default));
            }
        }
        filled
    }
}

/// A collection stays one if its elements still have a common type; otherwise it becomes a structure, and the
/// conversion that follows has the last word.
fn sequence(ty: &Type, elements: Vec<Value>) -> Value {
    match (ty, common(&elements)) {
        (Type::List(element) | Type::Set(element), _) if elements.is_empty() => match ty {
            Type::Set(_) => Value::set((**element).clone(), Vec::new()),
            _ => Value::list((**element).clone(), Vec::new()),
        },
        (Type::List(_), Some((element, converted))) => Value::list(element, converted),
        (Type::Set(_), Some((element, converted))) => Value::set(element, converted),
        _ => Value::tuple(elements),
    }
}

fn mapping(ty: &Type, elements: BTreeMap<String, Value>) -> Value {
    let Type::Map(element) = ty else { return Value::object(elements) };
    if elements.is_empty() {
        return Value::map::<String>((**element).clone(), []);
    }
    let values: Vec<Value> = elements.values().cloned().collect();
    match common(&values) {
        Some((element, converted)) => Value::map(element, elements.into_keys().zip(converted)),
        None => Value::object(elements),
    }
}

fn common(values: &[Value]) -> Option<(Type, Vec<Value>)> {
    let types: Vec<Type> = values.iter().map(|value| value.ty.clone()).collect();
    let unified = unify(&types, Safety::Unsafe)?;
    let converted = values.iter().map(|value| value.convert_unified(&unified)).collect::<Result<_, _>>().ok()?;
    Some((unified.into_type(), converted))
}
