use landform_cty::{Mark, Safety, Type, Value, is_possible};

use super::{Body, Function, Kind, Parameter, Problem};

const V: Parameter = Parameter::nullable("v", Kind::Dynamic);
const VALUE: Parameter = Parameter::nullable("value", Kind::Dynamic);

const fn careful(parameters: &'static [Parameter], run: fn(&[Value]) -> Result<Value, Problem>) -> Function {
    Function { parameters, rest: None, body: Body::Careful(run) }
}

static TOSTRING: Function = careful(&[V], |args| convert(&args[0], &Type::String));
static TONUMBER: Function = careful(&[V], |args| convert(&args[0], &Type::Number));
static TOBOOL: Function = careful(&[V], |args| convert(&args[0], &Type::Bool));
static TOLIST: Function = careful(&[V], |args| convert(&args[0], &Type::list(Type::Dynamic)));
static TOSET: Function = careful(&[V], |args| convert(&args[0], &Type::set(Type::Dynamic)));
static TOMAP: Function = careful(&[V], |args| convert(&args[0], &Type::map(Type::Dynamic)));
static SENSITIVE: Function = careful(&[VALUE], |args| Ok(args[0].clone().with_mark(Mark::Sensitive)));
static NONSENSITIVE: Function = careful(&[VALUE], |args| {
    let mut value = args[0].clone();
    value.marks.remove(&Mark::Sensitive);
    Ok(value)
});

pub(super) fn find(name: &str) -> Option<&'static Function> {
    Some(match name {
        "tostring" => &TOSTRING,
        "tonumber" => &TONUMBER,
        "tobool" => &TOBOOL,
        "tolist" => &TOLIST,
        "toset" => &TOSET,
        "tomap" => &TOMAP,
        "sensitive" => &SENSITIVE,
        "nonsensitive" => &NONSENSITIVE,
        _ => return None,
    })
}

fn convert(value: &Value, wanted: &Type) -> Result<Value, Problem> {
    let plainly =
        || format!("cannot convert {} to {}", value.ty.friendly_name(), wanted.friendly_name_for_constraint());
    if !is_possible(&value.ty, wanted, Safety::Unsafe) {
        return Err(Problem::Argument(0, plainly()));
    }
    value.convert(wanted).map_err(|_| {
        let message = match (value.as_str(), wanted) {
            _ if value.contains_mark(Mark::Ephemeral) => {
                plainly().replacen("cannot convert", "cannot convert this ephemeral", 1)
            }
            _ if value.contains_mark(Mark::Sensitive) => {
                plainly().replacen("cannot convert", "cannot convert this sensitive", 1)
            }
            (Some(text), Type::Bool) => {
                format!("cannot convert {text:?} to bool; only the strings \"true\" or \"false\" are allowed")
            }
            (Some(text), Type::Number) => {
                format!("cannot convert {text:?} to number; given string must be a decimal representation of a number")
            }
            _ => plainly(),
        };
        Problem::Argument(0, message)
    })
}
