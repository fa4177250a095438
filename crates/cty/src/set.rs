//! What makes a set a set: which elements are one, and the order in which they are kept.

use std::cmp::Ordering;

use crate::{Data, Marks, Type, Value, quote_as_go};

/// Unmarked, unique and ordered elements, and the marks that were on them.
pub(crate) fn canonical(elements: Vec<Value>) -> (Vec<Value>, Marks) {
    let mut marks = Marks::new();
    let mut keyed: Vec<(String, Value)> = Vec::with_capacity(elements.len());
    for element in elements {
        let (element, element_marks) = element.unmark_deep();
        marks.extend(element_marks);
        let mut key = String::new();
        write_key(&element, &mut key);
        keyed.push((key, element));
    }
    keyed.sort_by(|(left_key, left), (right_key, right)| order(left, right).unwrap_or_else(|| left_key.cmp(right_key)));
    // Equal elements are neighbours, since equal elements have equal keys. An element with something unknown in it
    // may turn out to be different from every other, so it stays.
    keyed.dedup_by(|(key, value), (previous_key, previous)| {
        key == previous_key && value.is_wholly_known() && value.equals(previous).as_bool() == Some(true)
    });
    (keyed.into_iter().map(|(_, element)| element).collect(), marks)
}

/// The order of primitive values, nulls and unknowns; `None` where the keys decide.
fn order(left: &Value, right: &Value) -> Option<Ordering> {
    let rank = |value: &Value| match value.data {
        Data::Null => 2,
        Data::Unknown(_) => 1,
        _ => 0,
    };
    match (&left.data, &right.data) {
        _ if rank(left) != rank(right) => Some(rank(left).cmp(&rank(right))),
        (Data::String(left), Data::String(right)) => Some(left.cmp(right)),
        (Data::Bool(left), Data::Bool(right)) => Some(left.cmp(right)),
        (Data::Number(left), Data::Number(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

/// The key by which go-cty orders elements that have no order of their own. Two implementations that talk to the same
/// provider must send the same order, so this is theirs to the byte.
fn write_key(value: &Value, key: &mut String) {
    match &value.data {
        Data::Unknown(_) => key.push('?'),
        Data::Null => key.push('~'),
        Data::Number(number) => key.push_str(&number.to_general_notation()),
        Data::Bool(true) => key.push('T'),
        Data::Bool(false) => key.push('F'),
        Data::String(text) => key.push_str(&quote_as_go(text)),
        Data::Sequence(elements) => {
            let (open, close) = if matches!(value.ty, Type::Tuple(_)) { ('<', '>') } else { ('[', ']') };
            key.push(open);
            for element in elements.iter() {
                write_key(element, key);
                key.push(';');
            }
            key.push(close);
        }
        Data::Mapping(elements) => {
            let is_map = matches!(value.ty, Type::Map(_));
            key.push(if is_map { '{' } else { '<' });
            for (name, element) in elements.iter() {
                if is_map {
                    key.push_str(&quote_as_go(name));
                    key.push(':');
                }
                write_key(element, key);
                key.push(';');
            }
            key.push(if is_map { '}' } else { '>' });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primitive_elements_have_their_natural_order() {
        let numbers = [10, 9, 10, -1].map(Value::number).to_vec();
        let set = Value::set(Type::Number, numbers);
        assert_eq!(format!("{set:?}"), "[-1, 9, 10]");
        let strings = ["b", "a", "b", "B"].map(Value::from).to_vec();
        assert_eq!(format!("{:?}", Value::set(Type::String, strings)), r#"["B", "a", "b"]"#);
    }

    #[test]
    fn objects_are_ordered_by_their_key() {
        let object = |n: i64, s: &str| Value::object([("a", Value::number(n)), ("b", Value::from(s))]);
        let set = Value::set(Type::Dynamic, vec![object(9, "x"), object(10, "x"), object(9, "x")]);
        assert_eq!(format!("{set:?}"), r#"[{"a": 10, "b": "x"}, {"a": 9, "b": "x"}]"#);
    }

    #[test]
    fn text_inside_is_ordered_as_go_quotes_it() {
        let elements = ["\u{301}x", "b", "\u{200b}", "\t", "\"", "é"].map(|text| Value::tuple(vec![Value::from(text)]));
        let set = Value::set(Type::Dynamic, elements.to_vec());
        assert_eq!(format!("{set:?}"), r#"[["\""], ["\t"], ["\u{200b}"], ["b"], ["é"], ["\u{301}x"]]"#);
    }

    #[test]
    fn unknown_elements_stay_apart_and_nulls_come_last() {
        let elements =
            vec![Value::null(Type::String), Value::unknown(Type::String), Value::unknown(Type::String), "a".into()];
        assert_eq!(format!("{:?}", Value::set(Type::String, elements)), r#"["a", (unknown), (unknown), null]"#);
    }

    #[test]
    fn a_set_takes_over_its_elements_marks() {
        let set = Value::set(Type::String, vec![Value::from("a").with_mark(crate::Mark::Sensitive)]);
        assert_eq!(set.marks.len(), 1);
        assert!(set.at(0).unwrap().marks.is_empty());
    }
}
