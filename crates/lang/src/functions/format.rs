use landform_cty::{Number, Refinement, Type, Value, normalize, safe_known_prefix};

use super::{Body, Function, Kind, Parameter, Problem, all_marks, text};

static FORMAT: Function = Function {
    parameters: &[Parameter::new("format", Kind::String)],
    rest: Some(Parameter::nullable("args", Kind::Dynamic)),
    body: Body::Careful(format),
};

pub(super) fn find(name: &str) -> Option<&'static Function> {
    (name == "format").then_some(&FORMAT)
}

fn format(args: &[Value]) -> Result<Value, Problem> {
    let marks = all_marks(args);
    let bare: Vec<Value> = args.iter().map(|value| value.clone().unmark_deep().0).collect();
    if !bare[0].is_known() {
        return Ok(Value::unknown_not_null(Type::String).with_marks(&marks));
    }
    let pattern = text(&bare[0]);
    if !bare[1..].iter().all(Value::is_wholly_known) {
        // What stands before the first verb will be there whatever the arguments are.
        let literal = normalize(pattern.split('%').next().unwrap_or_default());
        let prefix = safe_known_prefix(&literal);
        let string_prefix = (!prefix.is_empty()).then(|| prefix.to_owned());
        let refinement = Refinement { string_prefix, ..Refinement::not_null() };
        return Ok(Value::unknown_refined(Type::String, refinement).with_marks(&marks));
    }
    let mut out = String::new();
    let mut next = 1;
    let mut rest = pattern;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let verb = Verb::read(&rest[at..])?;
        rest = &rest[at + verb.length..];
        if verb.letter == '%' {
            out.push('%');
            continue;
        }
        let Some(value) = bare.get(next) else {
            return Err(Problem::Argument(
                0,
                format!(
                    "not enough arguments for {:?} at {}: need index {} but have {} total",
                    verb.text,
                    pattern.len() - rest.len() - verb.length,
                    next,
                    bare.len() - 1
                ),
            ));
        };
        verb.write(value, next, &mut out)?;
        next += 1;
    }
    out.push_str(rest);
    if next < bare.len() {
        return Err(Problem::Argument(next, "too many arguments; no verbs in format string".into()));
    }
    Ok(Value::string(out).with_marks(&marks))
}

/// One `%` with what belongs to it.
struct Verb<'a> {
    text: &'a str,
    length: usize,
    minus: bool,
    zero: bool,
    width: Option<usize>,
    letter: char,
}

impl<'a> Verb<'a> {
    fn read(rest: &'a str) -> Result<Verb<'a>, Problem> {
        let flags_end = rest[1..].find(|c| !"-0".contains(c)).map_or(rest.len(), |at| at + 1);
        let width_end = rest[flags_end..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |at| at + flags_end);
        let letter = rest[width_end..].chars().next();
        let unsupported = || Problem::Unsupported(format!("the format {:?}", rest.chars().take(8).collect::<String>()));
        let letter = letter.filter(|letter| "%sdqtv".contains(*letter)).ok_or_else(unsupported)?;
        let width = rest[flags_end..width_end].parse().ok();
        let flags = &rest[1..flags_end];
        // Widths of text count characters as people see them, and a few combinations are odd: only integers have them.
        let plain = width_end == 1;
        if (letter != 'd' && !plain) || width.is_some_and(|width: usize| width > 1024) {
            return Err(unsupported());
        }
        Ok(Verb {
            text: &rest[..width_end + 1],
            length: width_end + 1,
            minus: flags.contains('-'),
            zero: flags.contains('0'),
            width,
            letter,
        })
    }

    fn write(&self, value: &Value, index: usize, out: &mut String) -> Result<(), Problem> {
        let unsuitable =
            |message: &str| Problem::Argument(index, format!("unsupported value for {:?}: {message}", self.text));
        if value.is_null() && self.letter != 'v' {
            return Err(unsuitable("null value cannot be formatted"));
        }
        let convert = |ty: Type| value.convert(&ty).map_err(|error| unsuitable(&error.to_string()));
        match self.letter {
            's' => out.push_str(text(&convert(Type::String)?)),
            't' => out.push_str(if convert(Type::Bool)?.as_bool() == Some(true) { "true" } else { "false" }),
            'd' => {
                let number = convert(Type::Number)?;
                let number = number.as_number().filter(|number| number.is_integer());
                out.push_str(&self.pad(number.ok_or_else(|| unsuitable("an integer is required"))?));
            }
            'q' => {
                let text = convert(Type::String)?;
                let json = text.to_plain_json().map_err(|error| unsuitable(&error.to_string()))?;
                if json.to_string().contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
                    return Err(Problem::Unsupported("quoting of this text".into()));
                }
                out.push_str(&json.to_string());
            }
            _ => match value.as_number() {
                // Go changes to an exponent for the others.
                Some(number) if is_short(number) => out.push_str(&number.to_string()),
                Some(_) => return Err(Problem::Unsupported("%v of this number".into())),
                None if value.ty.is_primitive() && !value.is_null() => out.push_str(text(&convert(Type::String)?)),
                None => return Err(Problem::Unsupported(format!("%v of {}", value.ty.friendly_name()))),
            },
        }
        Ok(())
    }

    fn pad(&self, number: &Number) -> String {
        let text = number.to_string();
        let width = self.width.unwrap_or(0);
        match (self.minus, self.zero, text.strip_prefix('-')) {
            (true, _, _) => format!("{text:<width$}"),
            (false, true, Some(digits)) => format!("-{digits:0>width$}", width = width.saturating_sub(1)),
            (false, true, None) => format!("{text:0>width$}"),
            (false, false, _) => format!("{text:>width$}"),
        }
    }
}

fn is_short(number: &Number) -> bool {
    let limit = Number::from(1_000_000);
    let small = Number::parse("0.001").expect("a number");
    let size = if number.is_negative() { number.negate() } else { number.clone() };
    size.is_zero() || (size < limit && size > small)
}
