//! Operations on sets, and the product of sets or lists.

use landform_cty::{Data, Marks, Refinement, Safety, Type, Value, unify};

use super::call::Call;
use super::{Function, Kind, Outcome, Parameter, Problem};

const fn set(name: &'static str) -> Parameter {
    Parameter::new(name, Kind::Set).or_untyped()
}

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new("setunion", &[set("first_set")], common_set, |call| {
        let sets = converted(call)?;
        let element = call.ty.element().cloned().unwrap_or(Type::Dynamic);
        Ok(Value::set(element, sets.into_iter().flatten().collect()))
    })
    .and(set("other_sets")),
    Function::new("setintersection", &[set("first_set")], common_set, |call| combine(call, true))
        .and(set("other_sets")),
    Function::new("setsubtract", &[set("a"), set("b")], common_set, |call| combine(call, false)),
    Function::new("setproduct", &[], product_type, product)
        .and(Parameter::new("sets", Kind::Any).or_unknown().or_marked()),
];

fn common_set(args: &[Value]) -> Result<Type, Problem> {
    let mut types = Vec::new();
    for argument in args {
        let Some(element) = argument.ty.element() else {
            return Err(Problem::Unsupported("a set whose type is not known yet".into()));
        };
        let open = argument.known_length() == Some(0) && *element == Type::Dynamic;
        if !open {
            types.push(element.clone());
        }
    }
    if types.is_empty() {
        return Ok(Type::set(Type::Dynamic));
    }
    match unify(&types, Safety::Unsafe) {
        Some(common) => Ok(Type::set(common.into_type())),
        None => Err(Problem::Call("given sets must all have compatible element types".into())),
    }
}

/// The elements of every argument, as elements of the result.
fn converted(call: &Call<'_>) -> Result<Vec<Vec<Value>>, Problem> {
    let convert = |(index, argument): (usize, &Value)| {
        let set = argument.convert(&call.ty).map_err(|error| Problem::Argument(index, error.to_string()))?;
        Ok(set.as_sequence().unwrap_or_default().to_vec())
    };
    call.args.iter().enumerate().map(convert).collect()
}

/// The elements of the first set that are in all the others, or in none of them.
fn combine(call: &mut Call<'_>, kept_if_present: bool) -> Outcome {
    if !call.args.iter().all(Value::is_wholly_known) {
        return Ok(Value::unknown(call.ty.clone()));
    }
    let sets = converted(call)?;
    let [first, others @ ..] = sets.as_slice() else { unreachable!("there is at least one set") };
    let total: usize = others.iter().map(Vec::len).sum();
    call.budget.spend_steps((first.len() as u64).saturating_mul(total as u64))?;
    let has = |set: &[Value], element: &Value| set.iter().any(|other| other.equals(element).as_bool() == Some(true));
    let kept = first.iter().filter(|element| others.iter().all(|other| has(other, element) == kept_if_present));
    let element = call.ty.element().cloned().unwrap_or(Type::Dynamic);
    Ok(Value::set(element, kept.cloned().collect()))
}

fn product_type(args: &[Value]) -> Result<Type, Problem> {
    if args.len() < 2 {
        return Err(Problem::Call("at least two arguments are required".into()));
    }
    let mut elements = Vec::new();
    for (index, argument) in args.iter().enumerate() {
        elements.push(match &argument.ty {
            Type::Set(element) | Type::List(element) => (**element).clone(),
            Type::Tuple(types) if types.is_empty() => Type::Dynamic,
            Type::Tuple(types) => match unify(types, Safety::Unsafe) {
                Some(common) => common.into_type(),
                None => return Err(Problem::Argument(index, "all elements must be of the same type".into())),
            },
            _ => return Err(Problem::Argument(index, "a set or a list is required".into())),
        });
    }
    let is_set = args.iter().any(|argument| matches!(argument.ty, Type::Set(_)));
    let element = Type::tuple(elements);
    Ok(if is_set { Type::set(element) } else { Type::list(element) })
}

fn product(call: &mut Call<'_>) -> Outcome {
    let marks: Marks = call.args.iter().flat_map(|argument| argument.marks.clone()).collect();
    if call.args.iter().any(|argument| argument.known_length().is_none()) {
        return Ok(product_of_unknown(call).with_marks(&marks));
    }
    let total =
        call.args.iter().try_fold(1usize, |total, argument| total.checked_mul(argument.known_length().unwrap_or(0)));
    call.budget.spend_steps(total.unwrap_or(usize::MAX).saturating_mul(call.args.len()) as u64)?;
    let element = call.ty.element().cloned().unwrap_or(Type::Dynamic);
    let Type::Tuple(types) = &element else { unreachable!("a product has tuples") };
    let mut product: Vec<Vec<Value>> = vec![Vec::new()];
    for (argument, ty) in call.args.iter().zip(types.iter()) {
        let mut longer = Vec::with_capacity(product.len() * argument.known_length().unwrap_or(0));
        let elements: Vec<Value> = argument
            .as_sequence()
            .unwrap_or_default()
            .iter()
            .map(|value| value.convert(ty).map_err(|error| Problem::Call(error.to_string())))
            .collect::<Result<_, _>>()?;
        for shorter in &product {
            longer.extend(elements.iter().map(|value| {
                let mut tuple = shorter.clone();
                tuple.push(value.clone());
                tuple
            }));
        }
        product = longer;
    }
    let tuples = product.into_iter().map(Value::tuple).collect();
    let result = match &call.ty {
        Type::Set(_) => Value::set(element, tuples),
        _ => Value::list(element, tuples),
    };
    Ok(result.with_marks(&marks))
}

fn product_of_unknown(call: &Call<'_>) -> Value {
    let mut most: u64 = 1;
    for argument in &call.args {
        let length = match (&argument.ty, &argument.data) {
            (Type::Tuple(types), _) => types.len() as u64,
            (_, Data::Unknown(refinement)) => refinement.length_max.unwrap_or(u64::MAX),
            _ => argument.as_sequence().map_or(0, <[Value]>::len) as u64,
        };
        most = if length > 1024 { u64::MAX } else { most.saturating_mul(length) };
        if most > 2048 {
            return Value::unknown(call.ty.clone());
        }
    }
    let (length_min, length_max) = if most == 0 { (Some(0), Some(0)) } else { (Some(1), Some(most)) };
    Value::unknown_refined(call.ty.clone(), Refinement { length_min, length_max, ..Refinement::not_null() })
}
