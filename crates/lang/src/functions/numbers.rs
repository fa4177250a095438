use landform_cty::{Number, Type, Value};

use super::{Body, Function, Kind, Parameter, Problem};

const NUM: Parameter = Parameter::new("num", Kind::Number);

const fn number_function(run: fn(&[Value]) -> Result<Value, Problem>) -> Function {
    Function { parameters: &[NUM], rest: None, body: Body::Plain { returns: || Type::Number, run } }
}

const fn selection(run: fn(&[Value]) -> Result<Value, Problem>) -> Function {
    Function {
        parameters: &[],
        rest: Some(Parameter::new("numbers", Kind::Number)),
        body: Body::Plain { returns: || Type::Number, run },
    }
}

static FLOOR: Function = number_function(|args| Ok(Value::number(number(&args[0]).floor())));
static CEIL: Function = number_function(|args| Ok(Value::number(number(&args[0]).ceil())));
static MIN: Function = selection(|args| select(args, |next, best| next < best));
static MAX: Function = selection(|args| select(args, |next, best| next > best));
static RANGE: Function = Function {
    parameters: &[],
    rest: Some(Parameter::new("params", Kind::Number)),
    body: Body::Plain { returns: || Type::list(Type::Number), run: range },
};

pub(super) fn find(name: &str) -> Option<&'static Function> {
    Some(match name {
        "floor" => &FLOOR,
        "ceil" => &CEIL,
        "min" => &MIN,
        "max" => &MAX,
        "range" => &RANGE,
        _ => return None,
    })
}

fn number(value: &Value) -> Number {
    value.as_number().cloned().unwrap_or_else(|| Number::from(0))
}

/// The first of the best.
fn select(args: &[Value], is_better: fn(&Number, &Number) -> bool) -> Result<Value, Problem> {
    let best = args.iter().map(number).reduce(|best, next| if is_better(&next, &best) { next } else { best });
    best.map(Value::number).ok_or_else(|| Problem::Call("must pass at least one number".into()))
}

fn range(args: &[Value]) -> Result<Value, Problem> {
    let numbers: Vec<Number> = args.iter().map(number).collect();
    let towards = |start: &Number, end: &Number| if end < start { Number::from(-1) } else { Number::from(1) };
    let zero = Number::from(0);
    let (start, end, step) = match numbers.as_slice() {
        [end] => (zero.clone(), end.clone(), towards(&zero, end)),
        [start, end] => (start.clone(), end.clone(), towards(start, end)),
        [start, end, step] => (start.clone(), end.clone(), step.clone()),
        _ => return Err(Problem::Call("must have one, two, or three arguments".into())),
    };
    let down = step.is_negative();
    if down && end > start {
        return Err(Problem::Argument(1, "end must be less than start when step is negative".into()));
    }
    if !down && end < start {
        return Err(Problem::Argument(1, "end must be greater than start when step is positive".into()));
    }
    let mut values = Vec::new();
    let mut next = start;
    while if down { next > end } else { next < end } {
        if values.len() >= 1024 {
            return Err(Problem::Call(
                "more than 1024 values were generated; either decrease the difference between start and end or use a \
                 smaller step"
                    .into(),
            ));
        }
        values.push(Value::number(next.clone()));
        next = next.add(&step);
    }
    Ok(Value::list(Type::Number, values))
}
