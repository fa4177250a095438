//! What must hold for all types and values: encodings lose nothing and conversions agree with themselves.

use landform_cty::{Number, Refinement, Type, Value};
use proptest::prelude::*;

fn types() -> impl Strategy<Value = Type> {
    let leaf = prop_oneof![Just(Type::Bool), Just(Type::Number), Just(Type::String), Just(Type::Dynamic)];
    leaf.prop_recursive(3, 12, 3, |inner| {
        // A collection of elements of any type only exists as a constraint, so elements are concrete.
        let concrete = inner.clone().prop_filter("open element type", |ty| !ty.has_dynamic());
        prop_oneof![
            concrete.clone().prop_map(Type::list),
            concrete.clone().prop_map(Type::set),
            concrete.prop_map(Type::map),
            prop::collection::vec(inner.clone(), 0..3).prop_map(Type::tuple),
            prop::collection::btree_map("[a-z]{1,3}", inner, 0..3).prop_map(Type::object),
        ]
    })
}

fn numbers() -> impl Strategy<Value = Number> {
    prop_oneof![
        any::<i64>().prop_map(Number::from),
        any::<u64>().prop_map(Number::from),
        "-?[0-9]{1,40}(\\.[0-9]{1,40})?(e-?[0-9]{1,2})?".prop_map(|text| Number::parse(&text).unwrap()),
    ]
}

fn refinements() -> impl Strategy<Value = Refinement> {
    prop::bool::ANY.prop_map(|certain| if certain { Refinement::not_null() } else { Refinement::default() })
}

/// Values of a type; `unknowns` says whether unknown ones are among them.
fn values(ty: Type, unknowns: bool) -> BoxedStrategy<Value> {
    let null = Just(Value::null(ty.clone()));
    let unknown = {
        let ty = ty.clone();
        refinements().prop_map(move |refinement| Value::unknown_refined(ty.clone(), refinement))
    };
    let known: BoxedStrategy<Value> = match &ty {
        Type::Dynamic => prop_oneof![
            any::<bool>().prop_map(Value::bool),
            prop::collection::vec(".{0,3}".prop_map(Value::string), 0..3).prop_map(Value::tuple),
        ]
        .boxed(),
        Type::Bool => any::<bool>().prop_map(Value::bool).boxed(),
        Type::Number => numbers().prop_map(Value::number).boxed(),
        Type::String => ".{0,8}".prop_map(Value::string).boxed(),
        Type::List(element) => {
            let element = (**element).clone();
            let elements = prop::collection::vec(values(element.clone(), unknowns), 0..3);
            elements.prop_map(move |elements| Value::list(element.clone(), elements)).boxed()
        }
        Type::Set(element) => {
            let element = (**element).clone();
            let elements = prop::collection::vec(values(element.clone(), unknowns), 0..4);
            elements.prop_map(move |elements| Value::set(element.clone(), elements)).boxed()
        }
        Type::Map(element) => {
            let element = (**element).clone();
            let elements = prop::collection::btree_map("[a-z]{1,3}", values(element.clone(), unknowns), 0..3);
            elements.prop_map(move |elements| Value::map(element.clone(), elements)).boxed()
        }
        Type::Tuple(types) => {
            types.iter().map(|ty| values(ty.clone(), unknowns)).collect::<Vec<_>>().prop_map(Value::tuple).boxed()
        }
        Type::Object { attributes, .. } => {
            let names: Vec<String> = attributes.keys().cloned().collect();
            let parts: Vec<_> = attributes.values().map(|ty| values(ty.clone(), unknowns)).collect();
            parts.prop_map(move |parts| Value::object(names.iter().cloned().zip(parts))).boxed()
        }
    };
    if unknowns {
        prop_oneof![6 => known, 1 => null, 1 => unknown].boxed()
    } else {
        prop_oneof![6 => known, 1 => null].boxed()
    }
}

fn typed_values(unknowns: bool) -> impl Strategy<Value = (Type, Value)> {
    types().prop_flat_map(move |ty| values(ty.clone(), unknowns).prop_map(move |value| (ty.clone(), value)))
}

proptest! {
    #[test]
    fn msgpack_loses_nothing((ty, value) in typed_values(true)) {
        let bytes = value.to_msgpack(&ty).unwrap();
        let decoded = Value::from_msgpack(&bytes, &ty).unwrap();
        prop_assert_eq!(&decoded, &value);
        prop_assert_eq!(decoded.to_msgpack(&ty).unwrap(), bytes);
    }

    #[test]
    fn json_loses_nothing_of_what_is_known((ty, value) in typed_values(false)) {
        let text = value.to_json(&ty).unwrap().to_string();
        prop_assert_eq!(Value::from_json(&serde_json::from_str(&text).unwrap(), &ty).unwrap(), value);
    }

    #[test]
    fn types_survive_json(ty in types()) {
        prop_assert_eq!(Type::from_json(&ty.to_json()).unwrap(), ty);
    }

    #[test]
    fn decoding_rubbish_is_an_error_and_no_crash(bytes in prop::collection::vec(any::<u8>(), 0..64), ty in types()) {
        let _ = Value::from_msgpack(&bytes, &ty);
    }

    #[test]
    fn converting_to_its_own_type_changes_nothing((_, value) in typed_values(true)) {
        prop_assert_eq!(value.convert(&value.ty).unwrap(), value);
    }

    #[test]
    fn converting_twice_is_converting_once((_, value) in typed_values(true), wanted in types()) {
        if let Ok(once) = value.convert(&wanted) {
            prop_assert_eq!(once.convert(&wanted).unwrap(), once);
        }
    }

    #[test]
    fn a_converted_value_has_the_wanted_type((_, value) in typed_values(true), wanted in types()) {
        if let Ok(converted) = value.convert(&wanted) && !wanted.has_dynamic() {
            prop_assert_eq!(converted.ty, wanted);
        }
    }

    #[test]
    fn equality_of_known_values_is_certain_and_reflexive((_, value) in typed_values(false)) {
        prop_assert_eq!(value.equals(&value).as_bool(), Some(true));
    }
}
