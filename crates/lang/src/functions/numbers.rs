use landform_cty::{Number, Type, Value};

use super::call::{Call, integer};
use super::{Function, Kind, Outcome, Parameter, Problem, a_number, shown};

const NUM: Parameter = Parameter::new("num", Kind::Number);
const NUMBERS: Parameter = Parameter::new("numbers", Kind::Number).or_untyped();

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new("abs", &[NUM.or_untyped().or_marked()], a_number, |call| {
        let number = call.number(0);
        let size = if number.is_signed() { number.negate() } else { number };
        Ok(Value::number(size).with_marks(&call.args[0].marks))
    }),
    Function::new("floor", &[NUM], a_number, |call| Ok(Value::number(call.number(0).floor()))),
    Function::new("ceil", &[NUM], a_number, |call| Ok(Value::number(call.number(0).ceil()))),
    Function::new("signum", &[NUM], a_number, |call| {
        Ok(Value::number(call.integer(0).map_err(Problem::Call)?.signum()))
    }),
    Function::new("min", &[], a_number, |call| select(call, |next, best| next < best)).and(NUMBERS),
    Function::new("max", &[], a_number, |call| select(call, |next, best| next > best)).and(NUMBERS),
    Function::new("log", &[NUM, Parameter::new("base", Kind::Number)], a_number, |call| {
        finite(logarithm(call.float(0)?) / logarithm(call.float(1)?))
    }),
    Function::new("pow", &[NUM, Parameter::new("power", Kind::Number)], a_number, |call| {
        finite(power(call.float(0)?, call.float(1)?)?)
    }),
    Function::new(
        "parseint",
        &[Parameter::new("number", Kind::Any).or_marked(), Parameter::new("base", Kind::Number).or_marked()],
        |args| match &args[0].ty {
            Type::String => Ok(Type::Number),
            other => {
                let message = format!("first argument must be a string, not {}", other.friendly_name());
                Err(Problem::Argument(0, message))
            }
        },
        parse_integer,
    ),
    Function::new("range", &[], |_| Ok(Type::list(Type::Number)), range).and(Parameter::new("params", Kind::Number)),
];

/// The first of the best.
fn select(call: &mut Call<'_>, is_better: fn(&Number, &Number) -> bool) -> Outcome {
    let numbers = (0..call.args.len()).map(|index| call.number(index));
    let best = numbers.reduce(|best, next| if is_better(&next, &best) { next } else { best });
    best.map(Value::number).ok_or_else(|| Problem::Call("must pass at least one number".into()))
}

fn finite(float: f64) -> Outcome {
    Number::from_f64(float).map(Value::number).ok_or_else(|| Problem::Unsupported("an infinite result".into()))
}

/// The natural logarithm as Go computes it, to the last bit: FreeBSD's method, without fused operations.
#[allow(clippy::excessive_precision, reason = "the constants of the method, as they are published")]
fn logarithm(x: f64) -> f64 {
    const LN2_HIGH: f64 = 6.93147180369123816490e-01;
    const LN2_LOW: f64 = 1.90821492927058770002e-10;
    const L: [f64; 7] = [
        6.666666666666735130e-01,
        3.999999999940941908e-01,
        2.857142874366239149e-01,
        2.222219843214978396e-01,
        1.818357216161805012e-01,
        1.531383769920937332e-01,
        1.479819860511658591e-01,
    ];
    if x.is_nan() || x == f64::INFINITY {
        return x;
    }
    if x < 0.0 {
        return f64::NAN;
    }
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    let (mut fraction, mut exponent) = split_float(x);
    if fraction < std::f64::consts::FRAC_1_SQRT_2 {
        fraction *= 2.0;
        exponent -= 1;
    }
    let f = fraction - 1.0;
    let k = f64::from(exponent);
    let s = f / (2.0 + f);
    let s2 = s * s;
    let s4 = s2 * s2;
    let t1 = s2 * (L[0] + s4 * (L[2] + s4 * (L[4] + s4 * L[6])));
    let t2 = s4 * (L[1] + s4 * (L[3] + s4 * L[5]));
    let r = t1 + t2;
    let half_square = 0.5 * f * f;
    k * LN2_HIGH - ((half_square - (s * (half_square + r) + k * LN2_LOW)) - f)
}

/// A fraction of at least one half and below one, and a power of two. Not for zero, infinity and not-a-number.
fn split_float(x: f64) -> (f64, i32) {
    let subnormal = x.abs() < f64::MIN_POSITIVE;
    let scaled = if subnormal { x * (1u64 << 52) as f64 } else { x };
    let bits = scaled.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i32 - 1022 - if subnormal { 52 } else { 0 };
    (f64::from_bits((bits & !(0x7ff << 52)) | (1022 << 52)), exponent)
}

/// Go's power: by squaring, on fractions and powers of two apart. What it makes of a power that is not whole depends on
/// its exponential function.
fn power(x: f64, y: f64) -> Result<f64, Problem> {
    if y == 0.0 || x == 1.0 {
        return Ok(1.0);
    }
    if y == 1.0 {
        return Ok(x);
    }
    if x == 0.0 {
        let odd = y.fract() == 0.0 && y.abs() < 9.007_199_254_740_992e15 && y % 2.0 != 0.0;
        let zero = if odd { x } else { 0.0 };
        return Ok(if y < 0.0 { 1.0 / zero } else { zero });
    }
    if y == 0.5 {
        return Ok(x.sqrt());
    }
    if y == -0.5 {
        return Ok(1.0 / x.sqrt());
    }
    if y.fract() != 0.0 || y.abs() >= 9.0e18 {
        if x < 0.0 && y.fract() != 0.0 {
            return Ok(f64::NAN);
        }
        return Err(Problem::Unsupported("a power that is not a whole number".into()));
    }
    let (mut base, mut base_exponent) = split_float(x);
    let mut result = 1.0f64;
    let mut exponent: i64 = 0;
    let mut left = y.abs() as i64;
    while left != 0 {
        // Beyond every float already; the sign of the exponent tells to which side.
        if !(-(1 << 12)..=1 << 12).contains(&base_exponent) {
            exponent += i64::from(base_exponent);
            break;
        }
        if left & 1 == 1 {
            result *= base;
            exponent += i64::from(base_exponent);
        }
        base *= base;
        base_exponent <<= 1;
        if base < 0.5 {
            base += base;
            base_exponent -= 1;
        }
        left >>= 1;
    }
    if y < 0.0 {
        result = 1.0 / result;
        exponent = -exponent;
    }
    Ok(scale(result, exponent))
}

/// `fraction * 2^exponent`, rounded once.
fn scale(fraction: f64, exponent: i64) -> f64 {
    if exponent > 1100 {
        return fraction * f64::INFINITY;
    }
    if exponent < -1200 {
        return fraction * 0.0;
    }
    let exponent = exponent as i32;
    if exponent >= -1000 {
        let half = exponent / 2;
        return fraction * 2f64.powi(half) * 2f64.powi(exponent - half);
    }
    // Exact until the last step, which makes the number subnormal.
    fraction * 2f64.powi(-1000) * 2f64.powi(exponent + 1000)
}

fn parse_integer(call: &mut Call<'_>) -> Outcome {
    let (number, number_marks) = call.args[0].clone().unmark();
    let (base, base_marks) = call.args[1].clone().unmark();
    let base = integer(&base).map_err(|message| Problem::Argument(1, message))?;
    if !(2..=62).contains(&base) {
        return Err(Problem::Argument(1, "base must be a whole number between 2 and 62 inclusive".into()));
    }
    let text = number.as_str().unwrap_or_default();
    let Some(parsed) = Number::parse_integer(text, base as u32) else {
        let number = shown(&landform_cty::quote_as_go(text), &number_marks);
        let base = shown(&base.to_string(), &base_marks);
        return Err(Problem::Argument(0, format!("cannot parse {number} as a base {base} integer")));
    };
    Ok(Value::number(parsed).with_marks(&number_marks).with_marks(&base_marks))
}

fn range(call: &mut Call<'_>) -> Outcome {
    let numbers: Vec<Number> = (0..call.args.len()).map(|index| call.number(index)).collect();
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
