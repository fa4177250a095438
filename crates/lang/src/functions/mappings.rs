//! Maps and objects.

use std::collections::BTreeMap;

use landform_cty::{Marks, Type, Value, quote_as_go};

use super::call::Call;
use super::{Function, Kind, Outcome, Parameter, Problem, shown};

const DEFAULT: Parameter = Parameter::new("default", Kind::Any).or_null().or_unknown().or_untyped().or_marked();

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new("keys", &[Parameter::new("inputMap", Kind::Any).or_unknown().or_marked()], keys_type, keys).shallow(),
    Function::new("values", &[Parameter::new("mapping", Kind::Any).or_marked()], values_type, values),
    Function::new(
        "lookup",
        &[Parameter::new("inputMap", Kind::Any).or_marked(), Parameter::new("key", Kind::String).or_marked()],
        lookup_type,
        lookup,
    )
    .and(DEFAULT)
    .may_be_null()
    .shallow(),
    Function::new("merge", &[], merged_type, merge)
        .and(Parameter::new("maps", Kind::Any).or_null().or_untyped().or_marked()),
    Function::new(
        "zipmap",
        &[Parameter::new("keys", Kind::Strings).or_marked(), Parameter::new("values", Kind::Any).or_marked()],
        zipped_type,
        zip_map,
    ),
    Function::new("transpose", &[Parameter::new("values", Kind::MapOfStrings)], |_| Ok(transposed_type()), transpose),
];

fn keys_type(args: &[Value]) -> Result<Type, Problem> {
    match &args[0].ty {
        Type::Map(_) => Ok(Type::list(Type::String)),
        Type::Object { attributes, .. } => Ok(Type::tuple(attributes.keys().map(|_| Type::String))),
        _ => Err(Problem::Argument(0, "must have map or object type".into())),
    }
}

fn keys(call: &mut Call<'_>) -> Outcome {
    let mapping = &call.args[0];
    let keys = match (&mapping.ty, mapping.as_mapping()) {
        (Type::Object { attributes, .. }, _) => Value::tuple(attributes.keys().map(Value::string).collect()),
        (_, Some(elements)) => Value::list(Type::String, elements.keys().map(Value::string).collect()),
        (_, None) => Value::unknown(call.ty.clone()),
    };
    Ok(keys.with_marks(&mapping.marks))
}

fn values_type(args: &[Value]) -> Result<Type, Problem> {
    match &args[0].ty {
        Type::Map(element) => Ok(Type::list((**element).clone())),
        Type::Object { attributes, .. } => Ok(Type::tuple(attributes.values().cloned())),
        _ => Err(Problem::Call("values() requires a map as the first argument".into())),
    }
}

fn values(call: &mut Call<'_>) -> Outcome {
    let mapping = &call.args[0];
    let elements = mapping.as_mapping().map(|elements| elements.values().cloned().collect()).unwrap_or_default();
    let values = match &mapping.ty {
        Type::Map(element) => Value::list((**element).clone(), elements),
        _ => Value::tuple(elements),
    };
    Ok(values.with_marks(&mapping.marks))
}

fn lookup_type(args: &[Value]) -> Result<Type, Problem> {
    if args.len() > 3 {
        return Err(Problem::Call(format!("lookup() takes two or three arguments, got {}", args.len())));
    }
    match &args[0].ty {
        Type::Object { attributes, .. } => {
            let Some(name) = args[1].as_str() else { return Ok(Type::Dynamic) };
            match (attributes.get(name), args.get(2)) {
                (Some(ty), _) => Ok(ty.clone()),
                (None, Some(fallback)) => Ok(fallback.ty.clone()),
                (None, None) => {
                    let message = format!("the given object has no attribute {}", quote_as_go(name));
                    Err(Problem::Argument(0, message))
                }
            }
        }
        Type::Map(element) => match args.get(2).map(|fallback| fallback.convert(element)) {
            Some(Err(_)) => {
                Err(Problem::Argument(2, "the default value must have the same type as the map elements".into()))
            }
            _ => Ok((**element).clone()),
        },
        _ => Err(Problem::Argument(0, "lookup() requires a map as the first argument".into())),
    }
}

fn lookup(call: &mut Call<'_>) -> Outcome {
    let mapping = &call.args[0];
    let key = call.text(1);
    let found = match (mapping.get(key), call.args.get(2)) {
        (Some(part), _) => part.clone(),
        (None, Some(fallback)) => fallback.convert(&call.ty).map_err(|error| Problem::Call(error.to_string()))?,
        (None, None) => {
            let key = shown(&quote_as_go(key), &call.args[1].marks);
            return Err(Problem::Call(format!("lookup failed to find key {key}")));
        }
    };
    Ok(found.with_marks(&mapping.marks).with_marks(&call.args[1].marks))
}

fn merged_type(args: &[Value]) -> Result<Type, Problem> {
    let mut attributes = BTreeMap::new();
    let mut known = true;
    let mut types = Vec::new();
    for argument in args {
        match &argument.ty {
            Type::Dynamic => return Ok(Type::Dynamic),
            // A null object counts as one without attributes.
            Type::Object { .. } if argument.is_null() => types.push(Type::object::<String>([])),
            Type::Object { attributes: own, .. } => {
                attributes.extend(own.iter().map(|(name, ty)| (name.clone(), ty.clone())));
                types.push(argument.ty.clone());
            }
            Type::Map(element) => {
                match argument.as_mapping() {
                    Some(own) => attributes.extend(own.keys().map(|name| (name.clone(), (**element).clone()))),
                    None => known &= argument.is_null(),
                }
                types.push(argument.ty.clone());
            }
            other => {
                let name = quote_as_go(&other.friendly_name());
                return Err(Problem::Call(format!("arguments must be maps or objects, got {name}")));
            }
        }
    }
    match types.first() {
        Some(first) if types.iter().all(|ty| ty == first) => Ok(first.clone()),
        _ if known => Ok(Type::object(attributes)),
        _ => Ok(Type::Dynamic),
    }
}

fn merge(call: &mut Call<'_>) -> Outcome {
    let mut marks = Marks::new();
    let mut merged = BTreeMap::new();
    // Behind a null without a type OpenTofu does not look at types, and then fails on what is no map.
    if call.args.iter().any(|argument| !argument.is_null() && argument.as_mapping().is_none()) {
        return Err(Problem::Unsupported("an argument that is not a map".into()));
    }
    for argument in call.args.iter().filter(|argument| !argument.is_null()) {
        marks.extend(&argument.marks);
        let elements = argument.as_mapping().into_iter().flatten();
        merged.extend(elements.map(|(key, value)| (key.clone(), value.clone())));
    }
    let result = match &call.ty {
        Type::Map(element) => Value::map((**element).clone(), merged),
        _ => Value::object(merged),
    };
    Ok(result.with_marks(&marks))
}

fn zipped_type(args: &[Value]) -> Result<Type, Problem> {
    match &args[1].ty {
        Type::List(element) => Ok(Type::map((**element).clone())),
        Type::Tuple(_) if !args[0].is_wholly_known() => Ok(Type::Dynamic),
        Type::Tuple(types) => {
            let keys = args[0].as_sequence().unwrap_or_default();
            check_lengths(keys.len(), types.len())?;
            let mut attributes = BTreeMap::new();
            for (index, (key, ty)) in keys.iter().zip(types.iter()).enumerate() {
                let Some(key) = key.as_str() else {
                    return Err(Problem::Call(format!("keys list has null value at index {index}")));
                };
                attributes.insert(key.to_owned(), ty.clone());
            }
            Ok(Type::object(attributes))
        }
        _ => Err(Problem::Call("values argument must be a list or tuple value".into())),
    }
}

fn check_lengths(keys: usize, values: usize) -> Result<(), Problem> {
    if keys == values {
        return Ok(());
    }
    Err(Problem::Call(format!("number of keys ({keys}) does not match number of values ({values})")))
}

fn zip_map(call: &mut Call<'_>) -> Outcome {
    let mut marks: Marks = call.args.iter().flat_map(|argument| argument.marks.clone()).collect();
    if !call.args[0].is_wholly_known() {
        return Ok(Value::unknown(call.ty.clone()).with_marks(&marks));
    }
    let (keys, values) = (call.elements(0), call.elements(1));
    check_lengths(keys.len(), values.len())?;
    let mut zipped = BTreeMap::new();
    for (key, value) in keys.iter().zip(values) {
        marks.extend(&key.marks);
        let Some(key) = key.as_str() else {
            // OpenTofu panics here and reports its own mistake.
            return Err(Problem::Unsupported("a null key".into()));
        };
        zipped.insert(key.to_owned(), value.clone());
    }
    let result = match &call.ty {
        Type::Map(element) => Value::map((**element).clone(), zipped),
        _ => Value::object(zipped),
    };
    Ok(result.with_marks(&marks))
}

fn transposed_type() -> Type {
    Type::map(Type::list(Type::String))
}

fn transpose(call: &mut Call<'_>) -> Outcome {
    if !call.args[0].is_wholly_known() {
        return Ok(Value::unknown(transposed_type()));
    }
    let mut transposed: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (key, list) in call.args[0].as_mapping().into_iter().flatten() {
        let place = quote_as_go(key);
        let Some(elements) = list.as_sequence() else {
            return Err(Problem::Argument(0, format!("cannot use null list for [{place}]")));
        };
        for (index, element) in elements.iter().enumerate() {
            let Some(text) = element.as_str() else {
                return Err(Problem::Argument(0, format!("cannot use null string for [{place}][{index}]")));
            };
            transposed.entry(text.to_owned()).or_default().push(key.clone());
        }
    }
    let lists = transposed.into_iter().map(|(key, mut names)| {
        names.sort();
        (key, Value::list(Type::String, names.iter().map(Value::string).collect()))
    });
    Ok(Value::map(Type::list(Type::String), lists))
}
