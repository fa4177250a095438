use std::collections::BTreeMap;

use landform_cty::{Data, Marks, Number, Refinement, Safety, Type, Unified, Value, unify};

use super::{Body, Function, Kind, Parameter, Problem, strings, text};

const fn careful(parameters: &'static [Parameter], run: fn(&[Value]) -> Result<Value, Problem>) -> Function {
    Function { parameters, rest: None, body: Body::Careful(run) }
}

static LENGTH: Function = careful(&[Parameter::new("value", Kind::Dynamic)], length);
static KEYS: Function = careful(&[Parameter::new("inputMap", Kind::Any)], keys);
static VALUES: Function = careful(&[Parameter::new("mapping", Kind::Any)], values);
static ELEMENT: Function =
    careful(&[Parameter::new("list", Kind::Any), Parameter::new("index", Kind::Number)], element);
static CONTAINS: Function = Function {
    parameters: &[Parameter::new("list", Kind::Any), Parameter::new("value", Kind::Any)],
    rest: None,
    body: Body::Plain { returns: || Type::Bool, run: contains },
};
static LOOKUP: Function = Function {
    parameters: &[Parameter::new("inputMap", Kind::Any), Parameter::new("key", Kind::String)],
    rest: Some(Parameter::nullable("default", Kind::Dynamic)),
    body: Body::Careful(lookup),
};
static CONCAT: Function =
    Function { parameters: &[], rest: Some(Parameter::new("seqs", Kind::Any)), body: Body::Careful(concat) };
static MERGE: Function =
    Function { parameters: &[], rest: Some(Parameter::nullable("maps", Kind::Dynamic)), body: Body::Careful(merge) };

pub(super) fn find(name: &str) -> Option<&'static Function> {
    Some(match name {
        "length" => &LENGTH,
        "keys" => &KEYS,
        "values" => &VALUES,
        "element" => &ELEMENT,
        "contains" => &CONTAINS,
        "lookup" => &LOOKUP,
        "concat" => &CONCAT,
        "merge" => &MERGE,
        _ => return None,
    })
}

fn length(args: &[Value]) -> Result<Value, Problem> {
    let (value, marks) = args[0].clone().unmark();
    let bounded = |min: u64, max: u64| {
        let refinement = Refinement {
            number_min: Some((Number::from(min), true)),
            number_max: Some((Number::from(max), true)),
            ..Refinement::not_null()
        };
        Value::unknown_refined(Type::Number, refinement)
    };
    let length = match (&value.ty, &value.data) {
        (Type::Dynamic, _) => Value::unknown_not_null(Type::Number),
        (Type::String, _) => strings::length(&value),
        (Type::Tuple(types), _) => Value::number(types.len()),
        (Type::Object { attributes, .. }, _) => Value::number(attributes.len()),
        (Type::Bool | Type::Number, _) => {
            return Err(Problem::Call("argument must be a string, a collection type, or a structural type".into()));
        }
        (_, Data::Unknown(refinement)) => {
            bounded(refinement.length_min.unwrap_or(0), refinement.length_max.unwrap_or(i64::MAX as u64))
        }
        (_, Data::Sequence(elements)) if value.known_length().is_none() => bounded(1, elements.len() as u64),
        _ => Value::number(value.known_length().unwrap_or(0)),
    };
    Ok(length.with_marks(&marks))
}

fn keys(args: &[Value]) -> Result<Value, Problem> {
    let (mapping, marks) = args[0].clone().unmark();
    let names = |names: Vec<&String>| names.into_iter().map(Value::string).collect::<Vec<_>>();
    let keys = match &mapping.ty {
        Type::Object { attributes, .. } => Value::tuple(names(attributes.keys().collect())),
        Type::Map(_) => match mapping.as_mapping() {
            Some(elements) => Value::list(Type::String, names(elements.keys().collect())),
            None => Value::unknown_not_null(Type::list(Type::String)),
        },
        _ => return Err(Problem::Argument(0, "must have map or object type".into())),
    };
    Ok(keys.with_marks(&marks))
}

fn values(args: &[Value]) -> Result<Value, Problem> {
    let (mapping, marks) = args[0].clone().unmark();
    let elements = mapping.as_mapping().map(|elements| elements.values().cloned().collect::<Vec<_>>());
    let values = match (&mapping.ty, elements) {
        (Type::Object { .. }, Some(elements)) => Value::tuple(elements),
        (Type::Object { attributes, .. }, None) => {
            Value::unknown_not_null(Type::Tuple(attributes.values().cloned().collect()))
        }
        (Type::Map(element), Some(elements)) => Value::list((**element).clone(), elements),
        (Type::Map(element), None) => Value::unknown_not_null(Type::list((**element).clone())),
        _ => return Err(Problem::Call("values() requires a map as the first argument".into())),
    };
    Ok(values.with_marks(&marks))
}

fn element(args: &[Value]) -> Result<Value, Problem> {
    let (list, mut marks) = args[0].clone().unmark();
    let (index, index_marks) = args[1].clone().unmark();
    marks.extend(index_marks);
    let types = match &list.ty {
        Type::List(_) => None,
        Type::Tuple(types) => Some(types),
        other => return Err(Problem::Call(format!("cannot read elements from {}", other.friendly_name()))),
    };
    let Some(index) = index.as_number() else {
        let ty = list.ty.element().cloned().unwrap_or(Type::Dynamic);
        return Ok(Value::unknown(ty).with_marks(&marks));
    };
    let Some(index) = index.to_i64() else {
        return Err(Problem::Call("invalid index: value must be a whole number".into()));
    };
    let length = match (types, list.as_sequence()) {
        (Some(types), _) => types.len(),
        (None, Some(elements)) => elements.len(),
        (None, None) => {
            return Ok(Value::unknown(list.ty.element().cloned().unwrap_or(Type::Dynamic)).with_marks(&marks));
        }
    };
    if length == 0 {
        return Err(Problem::Call("cannot use element function with an empty list".into()));
    }
    let position = index.rem_euclid(length as i64) as usize;
    let part = match (list.at(position), types) {
        (Some(part), _) => part.clone(),
        (None, Some(types)) => Value::unknown(types[position].clone()),
        (None, None) => unreachable!("a known list has its elements"),
    };
    Ok(part.with_marks(&marks))
}

fn contains(args: &[Value]) -> Result<Value, Problem> {
    let Some(elements) = args[0].as_sequence() else {
        return Err(Problem::Call("argument must be list, tuple, or set".into()));
    };
    let mut undecided = false;
    for element in elements {
        match args[1].equals(element).as_bool() {
            Some(true) => return Ok(Value::bool(true)),
            Some(false) => {}
            None => undecided = true,
        }
    }
    Ok(if undecided { Value::unknown_not_null(Type::Bool) } else { Value::bool(false) })
}

fn lookup(args: &[Value]) -> Result<Value, Problem> {
    if args.len() > 3 {
        return Err(Problem::Call(format!("lookup() takes two or three arguments, got {}", args.len())));
    }
    let (mapping, mut marks) = args[0].clone().unmark();
    let (key, key_marks) = args[1].clone().unmark();
    let fallback = args.get(2);
    marks.extend(key_marks);
    let unknown = |ty: Type| Ok(Value::unknown(ty).with_marks(&marks));
    match &mapping.ty {
        Type::Object { attributes, .. } => {
            let Some(name) = key.as_str() else { return unknown(Type::Dynamic) };
            match (attributes.get(name), mapping.get(name), fallback) {
                (Some(_), Some(part), _) => Ok(part.clone().with_marks(&marks)),
                (Some(ty), None, _) => unknown(ty.clone()),
                (None, _, Some(fallback)) if mapping.is_known() => Ok(fallback.clone().with_marks(&marks)),
                (None, _, Some(fallback)) => unknown(fallback.ty.clone()),
                (None, _, None) => Err(Problem::Argument(0, format!("the given object has no attribute {name:?}"))),
            }
        }
        Type::Map(element) => {
            let fallback = fallback.map(|fallback| fallback.convert(element)).transpose().map_err(|_| {
                Problem::Argument(2, "the default value must have the same type as the map elements".into())
            })?;
            let (Some(name), true) = (key.as_str(), mapping.is_known()) else { return unknown((**element).clone()) };
            match (mapping.get(name), fallback) {
                (Some(part), _) => Ok(part.clone().with_marks(&marks)),
                (None, Some(fallback)) => Ok(fallback.with_marks(&marks)),
                (None, None) if args[1].marks.is_empty() => {
                    Err(Problem::Call(format!("lookup failed to find key {:?}", text(&key))))
                }
                (None, None) => Err(Problem::Call("lookup failed to find key (sensitive value)".into())),
            }
        }
        _ => Err(Problem::Argument(0, "lookup() requires a map as the first argument".into())),
    }
}

fn concat(args: &[Value]) -> Result<Value, Problem> {
    if args.is_empty() {
        return Err(Problem::Call("at least one argument is required".into()));
    }
    for (index, argument) in args.iter().enumerate() {
        if !matches!(argument.ty, Type::List(_) | Type::Tuple(_)) {
            let message = format!("all arguments must be lists or tuples; got {}", argument.ty.friendly_name());
            return Err(Problem::Argument(index, message));
        }
    }
    let types: Vec<Type> = args.iter().map(|argument| argument.ty.clone()).collect();
    let common = if types.iter().all(|ty| matches!(ty, Type::List(_))) { unify(&types, Safety::Unsafe) } else { None };
    let marks: Marks = args.iter().flat_map(|argument| argument.marks.clone()).collect();
    if !args.iter().all(Value::is_known) {
        let ty = match common {
            Some(common) => common.into_type(),
            None if args.iter().any(|argument| !argument.is_known() && matches!(argument.ty, Type::List(_))) => {
                Type::Dynamic
            }
            None => Type::Tuple(args.iter().flat_map(element_types).collect()),
        };
        return Ok(Value::unknown_not_null(ty).with_marks(&marks));
    }
    let mut elements = Vec::new();
    for (index, argument) in args.iter().enumerate() {
        let argument = match &common {
            Some(common) => {
                argument.convert_unified(common).map_err(|error| Problem::Argument(index, error.to_string()))?
            }
            None => argument.clone(),
        };
        elements.extend(argument.as_sequence().unwrap_or_default().iter().cloned());
    }
    let result = match common {
        Some(Unified::Common(Type::List(element))) => Value::list((*element).clone(), elements),
        Some(_) => Value::unknown(Type::Dynamic),
        None => Value::tuple(elements),
    };
    Ok(result.with_marks(&marks))
}

fn element_types(value: &Value) -> Vec<Type> {
    match &value.ty {
        Type::Tuple(types) => types.to_vec(),
        Type::List(element) => vec![(**element).clone(); value.as_sequence().map_or(0, <[Value]>::len)],
        _ => Vec::new(),
    }
}

fn merge(args: &[Value]) -> Result<Value, Problem> {
    if let Some(other) =
        args.iter().find(|argument| !matches!(argument.ty, Type::Map(_) | Type::Object { .. } | Type::Dynamic))
    {
        return Err(Problem::Call(format!("arguments must be maps or objects, got {:?}", other.ty.friendly_name())));
    }
    if args.iter().any(|argument| !argument.is_known() && argument.ty == Type::Dynamic) {
        let marks: Marks = args.iter().flat_map(|argument| argument.marks.clone()).collect();
        return Ok(Value::unknown(Type::Dynamic).with_marks(&marks));
    }
    if !args.iter().all(Value::is_known) {
        return Err(Problem::Unsupported("an argument that is not known".into()));
    }
    let mut marks = Marks::new();
    let mut merged = BTreeMap::new();
    for argument in args.iter().filter(|argument| !argument.is_null()) {
        marks.extend(&argument.marks);
        let elements = argument.as_mapping().into_iter().flatten();
        merged.extend(elements.map(|(key, value)| (key.clone(), value.clone())));
    }
    // A null object counts as one without attributes.
    let types: Vec<Type> = args
        .iter()
        .map(|argument| match &argument.ty {
            Type::Object { .. } if argument.is_null() => Type::object::<String>([]),
            ty => ty.clone(),
        })
        .collect();
    let result = match types.first() {
        Some(Type::Map(element)) if types.iter().all(|ty| *ty == types[0]) => Value::map((**element).clone(), merged),
        _ => Value::object(merged),
    };
    Ok(result.with_marks(&marks))
}
