use super::*;
use crate::Mark;

fn tuple(elements: impl IntoIterator<Item = Value>) -> Value {
    Value::tuple(elements.into_iter().collect())
}

#[test]
fn primitives_convert_where_the_value_allows() {
    assert_eq!(Value::number(1).convert(&Type::String).unwrap(), Value::from("1"));
    assert_eq!(Value::from("1.50").convert(&Type::Number).unwrap().convert(&Type::String).unwrap(), Value::from("1.5"));
    assert_eq!(Value::from("true").convert(&Type::Bool).unwrap(), Value::bool(true));
    for (value, wanted, message) in [
        (Value::from("x"), Type::Number, "a number is required"),
        (Value::from("True"), Type::Bool, "a bool is required; to convert from string, use lowercase \"true\""),
        (Value::bool(true), Type::Number, "number required, but have bool"),
        (tuple([]), Type::String, "string required, but have tuple"),
        (tuple([Value::from("a"), tuple([])]), Type::list(Type::String), "element 1: string required, but have tuple"),
        (tuple([Value::from("a"), tuple([])]), Type::list(Type::Dynamic), "all list elements must have the same type"),
        (Value::object([("a", Value::from("x"))]), Type::object([("b", Type::Bool)]), "attribute \"b\" is required"),
    ] {
        assert_eq!(value.convert(&wanted).unwrap_err().to_string(), message);
    }
}

#[test]
fn any_element_type_becomes_the_common_one() {
    let mixed = tuple([Value::number(1), Value::from("a"), Value::bool(true)]);
    let list = mixed.convert(&Type::list(Type::Dynamic)).unwrap();
    assert_eq!(list.ty, Type::list(Type::String));
    assert_eq!(format!("{list:?}"), r#"["1", "a", "true"]"#);
    let map = Value::object([("a", Value::number(1)), ("b", Value::null(Type::Dynamic))]);
    assert_eq!(map.convert(&Type::map(Type::Dynamic)).unwrap().ty, Type::map(Type::Number));
}

#[test]
fn optional_attributes_become_null_and_leave_no_trace_in_the_type() {
    let Type::Object { attributes, .. } = Type::object([("a", Type::String), ("b", Type::list(Type::Number))]) else {
        unreachable!()
    };
    let wanted = Type::object_with_optional((*attributes).clone(), ["b".to_owned()].into());
    let converted = Value::object([("a", Value::number(1)), ("z", Value::bool(true))]).convert(&wanted).unwrap();
    assert_eq!(converted.ty, wanted.without_optional());
    assert_eq!(format!("{converted:?}"), r#"{"a": "1", "b": null}"#);
    let from_map = Value::map(Type::String, [("a", Value::from("x"))]).convert(&wanted).unwrap();
    assert_eq!(from_map.ty, wanted.without_optional());
}

#[test]
fn null_unknown_and_marks_go_through() {
    let wanted = Type::list(Type::String);
    assert_eq!(Value::null(Type::Dynamic).convert(&wanted).unwrap(), Value::null(wanted.clone()));
    assert_eq!(Value::unknown(Type::Dynamic).convert(&wanted).unwrap(), Value::unknown(wanted.clone()));
    let secret = tuple([Value::number(1).with_mark(Mark::Sensitive)]).convert(&wanted).unwrap();
    assert!(secret.marks.is_empty() && secret.at(0).unwrap().has_mark(Mark::Sensitive));
    let unknown = Value::unknown(Type::tuple([Type::Number, Type::Number])).convert(&wanted).unwrap();
    let Data::Unknown(refinement) = unknown.data else { panic!("it is unknown") };
    assert_eq!((refinement.length_min, refinement.length_max), (Some(2), Some(2)));
}

#[test]
fn unification_finds_the_general_type() {
    let common = |types: &[Type]| unify(types, Safety::Unsafe).map(Unified::into_type);
    assert_eq!(common(&[Type::Number, Type::String]), Some(Type::String));
    assert_eq!(common(&[Type::Number, Type::Bool]), None);
    assert_eq!(common(&[Type::Dynamic, Type::Number]), Some(Type::Number));
    let tuple = Type::tuple([Type::Number, Type::String]);
    assert_eq!(common(&[tuple.clone(), Type::tuple([Type::Bool])]), Some(Type::list(Type::String)));
    assert_eq!(common(&[tuple.clone(), Type::list(Type::Number)]), Some(Type::list(Type::String)));
    assert_eq!(
        common(&[Type::object([("a", Type::Number)]), Type::object([("b", Type::String)])]),
        Some(Type::map(Type::String))
    );
    assert_eq!(common(&[tuple, Type::object([("a", Type::Number)])]), None);
    assert_eq!(unify(&[Type::list(Type::String), Type::Dynamic], Safety::Unsafe), Some(Unified::Undecided));
}
