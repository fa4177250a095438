use crate::{Data, Number, Refinement, Type, Value};

impl Value {
    /// Whether two values are equal in the language's sense: a bool, unknown as long as it cannot be told, and with
    /// the marks of both. For sameness in every respect use `==`.
    pub fn equals(&self, other: &Value) -> Value {
        let deep = self.is_null() == other.is_null();
        let marks_of = |value: &Value| {
            if deep { value.clone().unmark_deep().1 } else { value.marks.clone() }
        };
        let result = match compare(self, other) {
            Some(equal) => Value::bool(equal),
            None => Value::unknown_not_null(Type::Bool),
        };
        result.with_marks(&marks_of(self)).with_marks(&marks_of(other))
    }

    /// How many elements a known container has; `None` for a set in which something is unknown, since its elements may
    /// turn out to be equal.
    pub fn known_length(&self) -> Option<usize> {
        match &self.data {
            Data::Sequence(elements) => {
                let certain = !matches!(self.ty, Type::Set(_)) || elements.len() < 2 || self.is_wholly_known();
                certain.then_some(elements.len())
            }
            Data::Mapping(elements) => Some(elements.len()),
            _ => None,
        }
    }
}

/// `None`: cannot be told yet.
fn compare(left: &Value, right: &Value) -> Option<bool> {
    if (left.is_null() && right.is_definitely_not_null()) || (right.is_null() && left.is_definitely_not_null()) {
        return Some(false);
    }
    match (&left.data, &right.data) {
        (Data::Unknown(_), Data::Unknown(_)) => None,
        (Data::Unknown(refinement), _) => compare_unknown(&left.ty, refinement, right),
        (_, Data::Unknown(refinement)) => compare_unknown(&right.ty, refinement, left),
        (Data::Null, Data::Null) => Some(true),
        (Data::Null, _) | (_, Data::Null) => Some(false),
        _ if !has_known_type(left) || !has_known_type(right) => {
            if conforms(&left.ty, &right.ty) || conforms(&right.ty, &left.ty) { None } else { Some(false) }
        }
        _ if left.ty != right.ty => Some(false),
        (Data::Bool(left), Data::Bool(right)) => Some(left == right),
        (Data::Number(left), Data::Number(right)) => Some(left == right),
        (Data::String(left), Data::String(right)) => Some(left == right),
        (Data::Sequence(left_elements), Data::Sequence(right_elements)) => {
            if matches!(left.ty, Type::Set(_)) {
                return compare_sets(left_elements, right_elements);
            }
            if left_elements.len() != right_elements.len() {
                return Some(false);
            }
            compare_all(left_elements.iter().zip(right_elements.iter()))
        }
        (Data::Mapping(left), Data::Mapping(right)) => {
            if left.len() != right.len() || !left.keys().all(|key| right.contains_key(key)) {
                return Some(false);
            }
            compare_all(left.values().zip(right.values()))
        }
        _ => Some(false),
    }
}

/// The first pair that cannot be told makes the whole unknown, the first that differs makes it different.
fn compare_all<'a>(pairs: impl Iterator<Item = (&'a Value, &'a Value)>) -> Option<bool> {
    for (left, right) in pairs {
        if !compare(left, right)? {
            return Some(false);
        }
    }
    Some(true)
}

fn compare_sets(left: &[Value], right: &[Value]) -> Option<bool> {
    if left.iter().chain(right).any(|element| !element.is_known()) {
        return None;
    }
    let has = |set: &[Value], wanted: &Value| set.iter().any(|element| compare(element, wanted) == Some(true));
    Some(left.iter().all(|element| has(right, element)) && right.iter().all(|element| has(left, element)))
}

fn compare_unknown(ty: &Type, refinement: &Refinement, known: &Value) -> Option<bool> {
    if known.is_null() || ty.has_dynamic() {
        return None;
    }
    if *ty != known.ty || excludes(refinement, known) { Some(false) } else { None }
}

/// Whether what is known about an unknown value rules this one out.
fn excludes(refinement: &Refinement, known: &Value) -> bool {
    let below = |number: &Number, bound: &Option<(Number, bool)>| {
        bound.as_ref().is_some_and(|(bound, inclusive)| number < bound || (number == bound && !inclusive))
    };
    let above = |number: &Number, bound: &Option<(Number, bool)>| {
        bound.as_ref().is_some_and(|(bound, inclusive)| number > bound || (number == bound && !inclusive))
    };
    match &known.data {
        Data::String(text) => refinement.string_prefix.as_ref().is_some_and(|prefix| !text.starts_with(prefix)),
        Data::Number(number) => below(number, &refinement.number_min) || above(number, &refinement.number_max),
        Data::Sequence(_) | Data::Mapping(_) if known.ty.is_collection() => {
            known.known_length().is_some_and(|length| {
                refinement.length_min.is_some_and(|min| (length as u64) < min)
                    || refinement.length_max.is_some_and(|max| length as u64 > max)
            })
        }
        _ => false,
    }
}

/// Whether no part of the value has a type that is still open.
fn has_known_type(value: &Value) -> bool {
    match &value.data {
        _ if !value.ty.has_dynamic() => true,
        Data::Null => true,
        Data::Unknown(_) => false,
        Data::Sequence(elements) => elements.iter().all(has_known_type),
        Data::Mapping(elements) => elements.values().all(has_known_type),
        _ => true,
    }
}

/// Whether a value of type `ty` fits the constraint, without any conversion.
fn conforms(ty: &Type, constraint: &Type) -> bool {
    match (ty, constraint) {
        (_, Type::Dynamic) => true,
        (Type::List(ty), Type::List(constraint))
        | (Type::Set(ty), Type::Set(constraint))
        | (Type::Map(ty), Type::Map(constraint)) => conforms(ty, constraint),
        (Type::Tuple(types), Type::Tuple(constraints)) => {
            types.len() == constraints.len()
                && types.iter().zip(constraints.iter()).all(|(ty, wanted)| conforms(ty, wanted))
        }
        (Type::Object { attributes: types, .. }, Type::Object { attributes: constraints, .. }) => {
            types.len() == constraints.len()
                && types
                    .iter()
                    .zip(constraints.iter())
                    .all(|((name, ty), (wanted_name, wanted))| name == wanted_name && conforms(ty, wanted))
        }
        _ => ty == constraint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mark;

    #[test]
    fn types_must_match_but_nulls_are_all_the_same() {
        assert_eq!(Value::from("1").equals(&Value::number(1)).as_bool(), Some(false));
        assert_eq!(Value::null(Type::String).equals(&Value::null(Type::Bool)).as_bool(), Some(true));
        assert_eq!(Value::null(Type::String).equals(&Value::from("")).as_bool(), Some(false));
    }

    #[test]
    fn unknowns_are_told_apart_by_what_is_known() {
        let unknown = Value::unknown(Type::String);
        assert!(!unknown.equals(&unknown).is_known());
        assert!(!unknown.equals(&Value::null(Type::String)).is_known());
        assert_eq!(unknown.equals(&Value::bool(true)).as_bool(), Some(false));
        let prefixed = Value::unknown_refined(
            Type::String,
            Refinement { string_prefix: Some("ami-".into()), ..Refinement::not_null() },
        );
        assert_eq!(prefixed.equals(&Value::from("i-1")).as_bool(), Some(false));
        assert_eq!(prefixed.equals(&Value::null(Type::String)).as_bool(), Some(false));
        assert!(!prefixed.equals(&Value::from("ami-1")).is_known());
    }

    #[test]
    fn marks_travel_to_the_answer() {
        let secret = Value::tuple(vec![Value::from("a").with_mark(Mark::Sensitive)]);
        assert!(secret.equals(&secret).has_mark(Mark::Sensitive));
        assert!(!secret.equals(&Value::null(Type::Dynamic)).has_mark(Mark::Sensitive));
    }
}
