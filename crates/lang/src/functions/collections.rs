//! One answer from many elements.

use landform_cty::{Data, Number, Refinement, Safety, Type, Unified, Value, unify};
use unicode_segmentation::UnicodeSegmentation;

use super::call::Call;
use super::{Function, Kind, Outcome, Parameter, Problem, a_bool, a_number};

const LIST: Parameter = Parameter::new("list", Kind::Any);
const VALS: Parameter = Parameter::new("vals", Kind::Any).or_null().or_unknown().or_untyped();

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "length",
        &[Parameter::new("value", Kind::Any).or_unknown().or_untyped().or_marked()],
        |args| match args[0].ty {
            Type::Bool | Type::Number => {
                Err(Problem::Call("argument must be a string, a collection type, or a structural type".into()))
            }
            _ => Ok(Type::Number),
        },
        length,
    )
    .shallow(),
    Function::new("contains", &[LIST, Parameter::new("value", Kind::Any)], a_bool, contains),
    Function::new("index", &[LIST, Parameter::new("value", Kind::Any)], a_number, index),
    Function::new("alltrue", &[Parameter::new("list", Kind::Bools)], a_bool, all_true),
    Function::new("anytrue", &[Parameter::new("list", Kind::Bools)], a_bool, any_true),
    Function::new("one", &[LIST], one_type, one).may_be_null(),
    Function::new("sum", &[LIST], a_number, sum),
    Function::new("coalesce", &[], coalesced_type, coalesce).and(VALS),
    Function::new("coalescelist", &[], coalesced_list_type, coalesce_list).and(VALS),
    Function::new(
        "matchkeys",
        &[
            Parameter::new("values", Kind::List),
            Parameter::new("keys", Kind::List),
            Parameter::new("searchset", Kind::List),
        ],
        |args| match unify(&[args[1].ty.clone(), args[2].ty.clone()], Safety::Unsafe) {
            Some(_) => Ok(args[0].ty.clone()),
            None => Err(Problem::Call("keys and searchset must be of the same type".into())),
        },
        match_keys,
    ),
];

fn length(call: &mut Call<'_>) -> Outcome {
    let value = &call.args[0];
    let bounded = |min: u64, max: Option<u64>| {
        let refinement = Refinement {
            number_min: Some((Number::from(min), true)),
            number_max: max.map(|max| (Number::from(max), true)),
            ..Refinement::not_null()
        };
        Value::unknown_refined(Type::Number, refinement)
    };
    let length = match (&value.ty, &value.data) {
        (Type::Dynamic, _) => Value::unknown(Type::Number),
        (Type::String, Data::Unknown(refinement)) => {
            let known = refinement.string_prefix.as_deref().unwrap_or_default();
            bounded(known.graphemes(true).count() as u64, None)
        }
        (Type::String, _) => Value::number(call.text(0).graphemes(true).count()),
        (Type::Tuple(types), _) => Value::number(types.len()),
        (Type::Object { attributes, .. }, _) => Value::number(attributes.len()),
        (_, Data::Unknown(refinement)) => {
            bounded(refinement.length_min.unwrap_or(0), Some(refinement.length_max.unwrap_or(i64::MAX as u64)))
        }
        (_, Data::Sequence(elements)) if value.known_length().is_none() => bounded(1, Some(elements.len() as u64)),
        _ => Value::number(value.known_length().unwrap_or(0)),
    };
    Ok(length.with_marks(&value.marks))
}

fn contains(call: &mut Call<'_>) -> Outcome {
    let Some(elements) = call.args[0].as_sequence() else {
        return Err(Problem::Call("argument must be list, tuple, or set".into()));
    };
    let mut undecided = false;
    for element in elements {
        match call.args[1].equals(element).as_bool() {
            Some(true) => return Ok(Value::bool(true)),
            Some(false) => {}
            None => undecided = true,
        }
    }
    Ok(if undecided { Value::unknown(Type::Bool) } else { Value::bool(false) })
}

fn index(call: &mut Call<'_>) -> Outcome {
    if !matches!(call.args[0].ty, Type::List(_) | Type::Tuple(_)) {
        return Err(Problem::Call("argument must be a list or tuple".into()));
    }
    let elements = call.elements(0);
    if elements.is_empty() {
        return Err(Problem::Call("cannot search an empty list".into()));
    }
    for (position, element) in elements.iter().enumerate() {
        // A null is never the same as what is searched for, but neither may it be compared.
        if element.is_null() {
            return Err(Problem::Argument(0, "argument must not be null".into()));
        }
        match element.equals(&call.args[1]).as_bool() {
            Some(true) => return Ok(Value::number(position)),
            Some(false) => {}
            None => return Ok(Value::unknown(Type::Number)),
        }
    }
    Err(Problem::Call("item not found".into()))
}

fn all_true(call: &mut Call<'_>) -> Outcome {
    for element in call.elements(0) {
        match element.as_bool() {
            Some(true) => {}
            _ if !element.is_known() => return Ok(Value::unknown(Type::Bool)),
            _ => return Ok(Value::bool(false)),
        }
    }
    Ok(Value::bool(true))
}

fn any_true(call: &mut Call<'_>) -> Outcome {
    let elements = call.elements(0);
    if elements.iter().any(|element| element.as_bool() == Some(true)) {
        return Ok(Value::bool(true));
    }
    let undecided = elements.iter().any(|element| !element.is_known());
    Ok(if undecided { Value::unknown(Type::Bool) } else { Value::bool(false) })
}

const NOT_ONE: &str = "must be a list, set, or tuple value with either zero or one elements";

fn one_type(args: &[Value]) -> Result<Type, Problem> {
    match &args[0].ty {
        Type::List(element) | Type::Set(element) => Ok((**element).clone()),
        Type::Tuple(types) if types.len() < 2 => Ok(types.first().cloned().unwrap_or(Type::Dynamic)),
        _ => Err(Problem::Argument(0, NOT_ONE.into())),
    }
}

fn one(call: &mut Call<'_>) -> Outcome {
    let value = &call.args[0];
    match (value.known_length(), value.at(0)) {
        (None, _) => Ok(Value::unknown(call.ty.clone())),
        (Some(0), _) => Ok(Value::null(call.ty.clone())),
        (Some(1), Some(element)) => Ok(element.clone()),
        _ => Err(Problem::Argument(0, NOT_ONE.into())),
    }
}

fn sum(call: &mut Call<'_>) -> Outcome {
    let list = &call.args[0];
    let invalid = |message: &str| Problem::Argument(0, message.to_owned());
    let (sequence, mapping) = (list.as_sequence(), list.as_mapping());
    if sequence.is_none() && mapping.is_none() {
        return Err(invalid("cannot sum noniterable"));
    }
    if sequence.is_some_and(<[Value]>::is_empty) || mapping.is_some_and(|elements| elements.is_empty()) {
        return Err(invalid("cannot sum an empty list"));
    }
    let Some(elements) = sequence else {
        let message = format!("argument must be list, set, or tuple. Received {}", list.ty.friendly_name());
        return Err(Problem::Argument(0, message));
    };
    if !list.is_wholly_known() {
        return Ok(Value::unknown(Type::Number));
    }
    let mut total: Option<Number> = None;
    for element in elements {
        let number = element.convert(&Type::Number).ok();
        let Some(number) = number.as_ref().and_then(Value::as_number) else {
            return Err(invalid("argument must be list, set, or tuple of number values"));
        };
        total = Some(total.map_or_else(|| number.clone(), |total| total.add(number)));
    }
    Ok(Value::number(total.unwrap_or_else(|| Number::from(0))))
}

fn coalesced_type(args: &[Value]) -> Result<Type, Problem> {
    let types: Vec<Type> = args.iter().map(|argument| argument.ty.clone()).collect();
    match unify(&types, Safety::Unsafe) {
        Some(unified) => Ok(unified.into_type()),
        None => Err(Problem::Call("all arguments must have the same type".into())),
    }
}

fn coalesce(call: &mut Call<'_>) -> Outcome {
    let common = Unified::Common(call.ty.clone());
    for argument in &call.args {
        let value = argument.convert_unified(&common).map_err(|error| Problem::Call(error.to_string()))?;
        if !value.is_known() {
            return Ok(Value::unknown(call.ty.clone()));
        }
        if value.is_null() || (call.ty == Type::String && value.as_str() == Some("")) {
            continue;
        }
        return Ok(value);
    }
    Err(Problem::Call("no non-null, non-empty-string arguments".into()))
}

fn coalesced_list_type(args: &[Value]) -> Result<Type, Problem> {
    let Some(first) = args.first() else {
        return Err(Problem::Call("at least one argument is required".into()));
    };
    for argument in args {
        if !argument.is_known() {
            return Ok(Type::Dynamic);
        }
        if !matches!(argument.ty, Type::List(_) | Type::Tuple(_)) {
            return Err(Problem::Call("coalescelist arguments must be lists or tuples".into()));
        }
    }
    Ok(if args.iter().all(|argument| argument.ty == first.ty) { first.ty.clone() } else { Type::Dynamic })
}

fn coalesce_list(call: &mut Call<'_>) -> Outcome {
    for argument in &call.args {
        if !argument.is_known() {
            return Ok(Value::unknown(call.ty.clone()));
        }
        if argument.as_sequence().is_some_and(|elements| !elements.is_empty()) {
            return Ok(argument.clone());
        }
    }
    Err(Problem::Call("no non-null arguments".into()))
}

fn match_keys(call: &mut Call<'_>) -> Outcome {
    let element = call.ty.element().cloned().unwrap_or(Type::Dynamic);
    let none = || Ok(Value::list(element.clone(), Vec::new()));
    let (values, keys, wanted) = (&call.args[0], &call.args[1], &call.args[2]);
    if values.known_length() != keys.known_length() {
        return Err(Problem::Call("length of keys and values should be equal".into()));
    }
    let common = unify(&[keys.ty.clone(), wanted.ty.clone()], Safety::Unsafe);
    let common = common.ok_or_else(|| Problem::Call("keys and searchset must be of the same type".into()))?;
    let convert = |value: &Value| value.convert_unified(&common).map_err(|error| Problem::Call(error.to_string()));
    let (keys, wanted) = (convert(keys)?, convert(wanted)?);
    let wanted = wanted.as_sequence().unwrap_or_default();
    if wanted.is_empty() {
        return none();
    }
    if !values.is_wholly_known() || !keys.is_wholly_known() {
        return Ok(Value::unknown(call.ty.clone()));
    }
    let mut found = Vec::new();
    for (key, value) in keys.as_sequence().unwrap_or_default().iter().zip(call.elements(0)) {
        for candidate in wanted {
            match key.equals(candidate).as_bool() {
                Some(true) => {
                    found.push(value.clone());
                    break;
                }
                Some(false) => {}
                None => return none(),
            }
        }
    }
    Ok(Value::list(element, found))
}
