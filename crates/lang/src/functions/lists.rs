//! Lists and tuples made from others.

use landform_cty::{Data, Marks, Refinement, Safety, Type, Value, unify};

use super::call::{Call, integer};
use super::{Function, Kind, Outcome, Parameter, Problem, strings_list};

const LIST: Parameter = Parameter::new("list", Kind::Any).or_marked();
const INDEX: Parameter = Parameter::new("index", Kind::Number);

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new("element", &[LIST, INDEX], element_type, element).may_be_null().shallow(),
    Function::new("concat", &[], concat_type, concat).and(Parameter::new("seqs", Kind::Any).or_marked()),
    Function::new("reverse", &[LIST], reversed_type, reverse),
    Function::new(
        "slice",
        &[LIST, Parameter::new("start_index", Kind::Number), Parameter::new("end_index", Kind::Number)],
        slice_type,
        slice,
    ),
    Function::new("sort", &[Parameter::new("list", Kind::Strings).or_unknown()], strings_list, sort),
    Function::new("flatten", &[LIST], flat_type, flatten),
    Function::new("distinct", &[Parameter::new("list", Kind::List)], |args| Ok(args[0].ty.clone()), distinct),
    Function::new(
        "chunklist",
        &[Parameter::new("list", Kind::List).or_marked(), Parameter::new("size", Kind::Number).or_marked()],
        |args| Ok(Type::list(args[0].ty.clone())),
        chunk_list,
    ),
    Function::new("compact", &[Parameter::new("list", Kind::Strings)], strings_list, |call| {
        if !call.args[0].is_wholly_known() {
            return Ok(Value::unknown(Type::list(Type::String)));
        }
        let kept = call.elements(0).iter().filter(|element| element.as_str().is_some_and(|text| !text.is_empty()));
        Ok(Value::list(Type::String, kept.cloned().collect()))
    }),
];

const EMPTY: &str = "cannot use element function with an empty list";

fn element_type(args: &[Value]) -> Result<Type, Problem> {
    match &args[0].ty {
        Type::List(element) => Ok((**element).clone()),
        Type::Tuple(_) if !args[1].is_known() => Ok(Type::Dynamic),
        Type::Tuple(types) => {
            let index = element_index(&args[1])?;
            if types.is_empty() {
                return Err(Problem::Call(EMPTY.into()));
            }
            Ok(types[index.rem_euclid(types.len() as i64) as usize].clone())
        }
        other => Err(Problem::Call(format!("cannot read elements from {}", other.friendly_name()))),
    }
}

fn element_index(index: &Value) -> Result<i64, Problem> {
    integer(index).map_err(|message| Problem::Call(format!("invalid index: {message}")))
}

fn element(call: &mut Call<'_>) -> Outcome {
    let index = element_index(&call.args[1])?;
    let elements = call.elements(0);
    if elements.is_empty() {
        return Err(Problem::Call(EMPTY.into()));
    }
    let position = index.rem_euclid(elements.len() as i64) as usize;
    Ok(elements[position].clone().with_marks(&call.args[0].marks))
}

fn concat_type(args: &[Value]) -> Result<Type, Problem> {
    if args.is_empty() {
        return Err(Problem::Call("at least one argument is required".into()));
    }
    if args.iter().all(|argument| matches!(argument.ty, Type::List(_))) {
        let types: Vec<Type> = args.iter().map(|argument| argument.ty.clone()).collect();
        if let Some(common) = unify(&types, Safety::Unsafe) {
            return Ok(common.into_type());
        }
    }
    let mut types = Vec::new();
    for (index, argument) in args.iter().enumerate() {
        match (&argument.ty, argument.as_sequence()) {
            (Type::Tuple(parts), _) => types.extend(parts.iter().cloned()),
            (Type::List(element), Some(elements)) => types.extend(vec![(**element).clone(); elements.len()]),
            (Type::List(_), None) => return Ok(Type::Dynamic),
            (other, _) => {
                let message = format!("all arguments must be lists or tuples; got {}", other.friendly_name());
                return Err(Problem::Argument(index, message));
            }
        }
    }
    Ok(Type::tuple(types))
}

fn concat(call: &mut Call<'_>) -> Outcome {
    let mut elements = Vec::new();
    let mut marks = Marks::new();
    for (index, argument) in call.args.iter().enumerate() {
        let argument = match &call.ty {
            Type::List(_) => argument.convert(&call.ty).map_err(|error| Problem::Argument(index, error.to_string()))?,
            _ => argument.clone(),
        };
        marks.extend(&argument.marks);
        elements.extend(argument.as_sequence().unwrap_or_default().iter().cloned());
    }
    Ok(sequence(&call.ty, elements).with_marks(&marks))
}

/// A list or a tuple, whichever the type is.
fn sequence(ty: &Type, elements: Vec<Value>) -> Value {
    match ty {
        Type::List(element) => Value::list((**element).clone(), elements),
        _ => Value::tuple(elements),
    }
}

fn reversed_type(args: &[Value]) -> Result<Type, Problem> {
    match &args[0].ty {
        Type::Tuple(types) => Ok(Type::tuple(types.iter().rev().cloned())),
        Type::List(element) | Type::Set(element) => Ok(Type::list((**element).clone())),
        other => {
            let message = format!("can only reverse list or tuple values, not {}", other.friendly_name());
            Err(Problem::Argument(0, message))
        }
    }
}

fn reverse(call: &mut Call<'_>) -> Outcome {
    let elements = call.elements(0).iter().rev().cloned().collect();
    Ok(sequence(&call.ty, elements).with_marks(&call.args[0].marks))
}

/// The bounds of a slice; `None` as long as they are not known.
fn slice_bounds(args: &[Value]) -> Result<Option<(usize, usize)>, Problem> {
    let length = match &args[0].ty {
        Type::Tuple(types) => Some(types.len()),
        _ => args[0].known_length(),
    };
    let bound = |index: usize, which: &str| {
        if !args[index].is_known() {
            return Ok(None);
        }
        let fail = |message: String| Err(Problem::Argument(index, message));
        let position = match integer(&args[index]) {
            Ok(position) => position,
            Err(message) => return fail(format!("invalid {which} index: {message}")),
        };
        let Ok(position) = usize::try_from(position) else {
            return fail(format!("{which} index must not be less than zero"));
        };
        if length.is_some_and(|length| position > length) {
            return fail(format!("{which} index must not be greater than the length of the list"));
        }
        Ok(Some(position))
    };
    let (start, end) = (bound(1, "start")?, bound(2, "end")?);
    let Some((start, end)) = start.zip(end) else { return Ok(None) };
    if start > end {
        return Err(Problem::Argument(1, "start index must not be greater than end index".into()));
    }
    Ok(Some((start, end)))
}

fn slice_type(args: &[Value]) -> Result<Type, Problem> {
    match &args[0].ty {
        Type::Set(_) => Err(Problem::Argument(
            0,
            "cannot slice a set, because its elements do not have indices; explicitly convert to a list if the \
             ordering of the result is not important"
                .into(),
        )),
        ty @ Type::List(_) => {
            slice_bounds(args)?;
            Ok(ty.clone())
        }
        Type::Tuple(types) => Ok(match slice_bounds(args)? {
            Some((start, end)) => Type::tuple(types[start..end].iter().cloned()),
            None => Type::Dynamic,
        }),
        _ => Err(Problem::Argument(0, "must be a list or tuple value".into())),
    }
}

fn slice(call: &mut Call<'_>) -> Outcome {
    let Some((start, end)) = slice_bounds(&call.args)? else { return Ok(Value::unknown(call.ty.clone())) };
    let elements = call.elements(0)[start..end].to_vec();
    Ok(sequence(&call.ty, elements).with_marks(&call.args[0].marks))
}

fn sort(call: &mut Call<'_>) -> Outcome {
    let list = &call.args[0];
    if !list.is_wholly_known() {
        let mut refinement = Refinement::not_null();
        match &list.data {
            Data::Unknown(known) => {
                (refinement.length_min, refinement.length_max) = (known.length_min, known.length_max)
            }
            _ => {
                let length = list.known_length().map(|length| length as u64);
                (refinement.length_min, refinement.length_max) = (length, length);
            }
        }
        return Ok(Value::unknown_refined(Type::list(Type::String), refinement));
    }
    let mut elements = call.elements(0).to_vec();
    if let Some(position) = elements.iter().position(Value::is_null) {
        return Err(Problem::Call(format!("given list element {position} is null; a null string cannot be sorted")));
    }
    elements.sort_by(|left, right| left.as_str().cmp(&right.as_str()));
    Ok(Value::list(Type::String, elements))
}

fn flat_type(args: &[Value]) -> Result<Type, Problem> {
    if !args[0].is_wholly_known() {
        return Ok(Type::Dynamic);
    }
    if !matches!(args[0].ty, Type::List(_) | Type::Set(_) | Type::Tuple(_)) {
        return Err(Problem::Call("can only flatten lists, sets and tuples".into()));
    }
    let mut flat = Flat { elements: Vec::new(), marks: Marks::new(), known: true };
    flat.add(&args[0]);
    Ok(if flat.known { Type::tuple(flat.elements.iter().map(|element| element.ty.clone())) } else { Type::Dynamic })
}

fn flatten(call: &mut Call<'_>) -> Outcome {
    let mut flat = Flat { elements: Vec::new(), marks: Marks::new(), known: true };
    match call.args[0].as_mapping() {
        // With something unknown in it OpenTofu has not looked at the type, and takes a map for a list.
        Some(elements) => {
            flat.marks.extend(&call.args[0].marks);
            elements.values().for_each(|element| flat.add_element(element));
        }
        None => flat.add(&call.args[0]),
    }
    let result = if flat.known { Value::tuple(flat.elements) } else { Value::unknown(call.ty.clone()) };
    Ok(result.with_marks(&flat.marks))
}

struct Flat {
    elements: Vec<Value>,
    marks: Marks,
    known: bool,
}

impl Flat {
    fn add(&mut self, list: &Value) {
        self.marks.extend(&list.marks);
        if list.known_length().is_none() {
            self.known = false;
            return;
        }
        list.as_sequence().unwrap_or_default().iter().for_each(|element| self.add_element(element));
    }

    fn add_element(&mut self, element: &Value) {
        self.known &= element.is_known() || element.ty != Type::Dynamic;
        match element.ty {
            Type::List(_) | Type::Set(_) | Type::Tuple(_) if !element.is_null() => self.add(element),
            _ => self.elements.push(element.clone()),
        }
    }
}

fn distinct(call: &mut Call<'_>) -> Outcome {
    if !call.args[0].is_wholly_known() {
        return Ok(Value::unknown(call.ty.clone()));
    }
    let mut kept: Vec<Value> = Vec::new();
    for element in call.args[0].as_sequence().unwrap_or_default() {
        call.budget.spend_steps(kept.len() as u64)?;
        if !kept.iter().any(|other| other.equals(element).as_bool() == Some(true)) {
            kept.push(element.clone());
        }
    }
    Ok(sequence(&call.ty, kept))
}

fn chunk_list(call: &mut Call<'_>) -> Outcome {
    let (list, mut marks) = call.args[0].clone().unmark();
    let (size, size_marks) = call.args[1].clone().unmark();
    marks.extend(size_marks);
    let size = integer(&size).map_err(|message| Problem::Call(format!("invalid size: {message}")))?;
    let Ok(size) = usize::try_from(size) else {
        return Err(Problem::Call("the size argument must be positive".into()));
    };
    let elements = list.as_sequence().unwrap_or_default();
    let chunks = match size {
        _ if elements.is_empty() => Vec::new(),
        0 => vec![list.clone()],
        _ => elements.chunks(size).map(|chunk| sequence(&list.ty, chunk.to_vec())).collect(),
    };
    Ok(Value::list(list.ty.clone(), chunks).with_marks(&marks))
}
