use landform_cty::{Data, Mark, Safety, Type, Value, is_possible, quote_as_go};

use super::{Function, Kind, Outcome, Parameter, Problem, a_bool};

const V: Parameter = Parameter::new("v", Kind::Any).or_null().or_marked().or_untyped();
const VALUE: Parameter = Parameter::new("value", Kind::Any).or_null().or_unknown().or_marked().or_untyped();

macro_rules! conversion {
    ($name:literal, $wanted:expr) => {
        Function::new($name, &[V], |args| check(&args[0], &$wanted), |call| convert(&call.args[0], &$wanted))
            .may_be_null()
    };
}

pub(super) static FUNCTIONS: &[Function] = &[
    conversion!("tostring", Type::String),
    conversion!("tonumber", Type::Number),
    conversion!("tobool", Type::Bool),
    conversion!("tolist", Type::list(Type::Dynamic)),
    conversion!("toset", Type::set(Type::Dynamic)),
    conversion!("tomap", Type::map(Type::Dynamic)),
    Function::new("sensitive", &[VALUE], same_type, |call| Ok(call.args[0].clone().with_mark(Mark::Sensitive)))
        .may_be_null()
        .shallow(),
    Function::new("nonsensitive", &[VALUE], same_type, |call| {
        let mut value = call.args[0].clone();
        value.marks.remove(&Mark::Sensitive);
        Ok(value)
    })
    .may_be_null()
    .shallow(),
    Function::new("issensitive", &[VALUE], a_bool, |call| {
        let value = &call.args[0];
        Ok(if value.is_known() { Value::bool(value.has_mark(Mark::Sensitive)) } else { Value::unknown(Type::Bool) })
    })
    .shallow(),
    Function::new("ephemeralasnull", &[VALUE], same_type, |call| Ok(without_ephemeral(call.args[0].clone())))
        .may_be_null(),
];

fn same_type(args: &[Value]) -> Result<Type, Problem> {
    Ok(args[0].ty.clone())
}

fn check(value: &Value, wanted: &Type) -> Result<Type, Problem> {
    if value.ty != *wanted && !is_possible(&value.ty, wanted, Safety::Unsafe) {
        return Err(Problem::Argument(0, plainly(value, wanted)));
    }
    Ok(wanted.clone())
}

fn plainly(value: &Value, wanted: &Type) -> String {
    format!("cannot convert {} to {}", value.ty.friendly_name(), wanted.friendly_name_for_constraint())
}

fn convert(value: &Value, wanted: &Type) -> Outcome {
    value.convert(wanted).map_err(|_| {
        let secret =
            |kind: &str| plainly(value, wanted).replacen("cannot convert", &format!("cannot convert this {kind}"), 1);
        let message = match (value.as_str(), wanted) {
            _ if value.contains_mark(Mark::Ephemeral) => secret("ephemeral"),
            _ if value.contains_mark(Mark::Sensitive) => secret("sensitive"),
            (Some(text), Type::Bool) => format!(
                "cannot convert {} to bool; only the strings \"true\" or \"false\" are allowed",
                quote_as_go(text)
            ),
            (Some(text), Type::Number) => format!(
                "cannot convert {} to number; given string must be a decimal representation of a number",
                quote_as_go(text)
            ),
            _ => plainly(value, wanted),
        };
        Problem::Argument(0, message)
    })
}

/// Every ephemeral part becomes null.
fn without_ephemeral(value: Value) -> Value {
    value.transform(&mut |_, mut part| {
        let ephemeral = part.marks.remove(&Mark::Ephemeral);
        let marks = part.marks.clone();
        match &part.data {
            Data::Unknown(_) => Value::unknown(part.ty).with_marks(&marks),
            _ if ephemeral => Value::null(part.ty).with_marks(&marks),
            _ => part,
        }
    })
}
