//! `format` and `formatlist`: go-cty's own verbs around Go's ways to write numbers.

use landform_cty::{Number, Refinement, Type, Value, normalize, safe_known_prefix};
use unicode_segmentation::UnicodeSegmentation;

use super::call::Call;
use super::{Function, Kind, Outcome, Parameter, Problem, a_string, strings_list};

const FORMAT: Parameter = Parameter::new("format", Kind::String);
const ARGS: Parameter = Parameter::new("args", Kind::Any).or_null().or_unknown().or_untyped();

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new("format", &[FORMAT], a_string, format).and(ARGS),
    Function::new("formatlist", &[FORMAT], strings_list, format_list).and(ARGS),
];

/// Wider fields are not filled.
const MAX_WIDTH: usize = 1 << 20;

fn format(call: &mut Call<'_>) -> Outcome {
    let pattern = call.text(0);
    if !call.args[1..].iter().all(Value::is_wholly_known) {
        // What stands before the first verb will be there whatever the arguments are.
        let literal = match pattern.find('%') {
            Some(at) if at > 0 => normalize(&pattern[..at]),
            _ => return Ok(Value::unknown(Type::String)),
        };
        let string_prefix = Some(safe_known_prefix(&literal).to_owned());
        return Ok(Value::unknown_refined(Type::String, Refinement { string_prefix, ..Refinement::not_null() }));
    }
    Ok(Value::string(write(pattern, &call.args[1..])?))
}

fn format_list(call: &mut Call<'_>) -> Outcome {
    let (pattern, args) = (call.args[0].as_str().unwrap_or_default(), &call.args[1..]);
    if args.is_empty() {
        return Ok(Value::list(Type::String, vec![Value::string(write(pattern, args)?)]));
    }
    let is_list =
        |argument: &Value| matches!(argument.ty, Type::List(_) | Type::Set(_) | Type::Tuple(_)) && !argument.is_null();
    let mut unknown = false;
    let mut length: Option<(usize, usize)> = None;
    for (index, argument) in args.iter().enumerate() {
        if !is_list(argument) {
            unknown |= argument.ty == Type::Dynamic && !argument.is_known();
            continue;
        }
        let own = match &argument.ty {
            Type::Tuple(types) => Some(types.len()),
            _ => argument.known_length(),
        };
        unknown |= own.is_none() || !argument.is_known();
        let Some(own) = own else { continue };
        match length {
            None => length = Some((own, index)),
            Some((length, chooser)) if own != length => {
                let message = format!(
                    "argument {} has length {own}, which is inconsistent with argument {} of length {length}",
                    index + 1,
                    chooser + 1
                );
                return Err(Problem::Argument(index + 1, message));
            }
            Some(_) => {}
        }
    }
    if unknown {
        return Ok(Value::unknown(call.ty.clone()));
    }
    let length = length.map_or(1, |(length, _)| length);
    let mut results = Vec::with_capacity(length);
    for round in 0..length {
        let row: Vec<Value> = args
            .iter()
            .map(|argument| if is_list(argument) { argument.at(round) } else { Some(argument) })
            .map(|value| value.cloned().expect("lists have the same length"))
            .collect();
        if !row.iter().all(Value::is_wholly_known) {
            results.push(Value::unknown_not_null(Type::String));
            continue;
        }
        let text = write(pattern, &row).map_err(|problem| match problem {
            Problem::Call(message) | Problem::Argument(_, message) => {
                Problem::Call(format!("error on format iteration {round}: {message}"))
            }
            other => other,
        })?;
        call.budget.spend_bytes(text.len())?;
        results.push(Value::string(text));
    }
    Ok(Value::list(Type::String, results))
}

fn write(pattern: &str, args: &[Value]) -> Result<String, Problem> {
    let mut out = String::new();
    let mut next = 1;
    let mut highest = 0;
    let mut rest = pattern;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let offset = pattern.len() - rest.len();
        if rest[1..].starts_with('%') {
            out.push('%');
            rest = &rest[2..];
            continue;
        }
        let verb = Verb::read(rest, offset, next)?;
        rest = &rest[verb.text.len()..];
        highest = highest.max(verb.argument);
        next = verb.argument + 1;
        let Some(value) = args.get(verb.argument - 1) else {
            return Err(Problem::Call(format!(
                "not enough arguments for {:?} at {offset}: need index {} but have {} total",
                verb.text,
                verb.argument,
                args.len()
            )));
        };
        verb.write(value, &mut out)?;
    }
    out.push_str(rest);
    if highest < args.len() {
        let message = match highest {
            0 => "too many arguments; no verbs in format string".to_owned(),
            used => format!("too many arguments; only {used} used by format string"),
        };
        return Err(Problem::Argument(highest + 1, message));
    }
    Ok(out)
}

/// One `%` with what belongs to it.
struct Verb<'a> {
    text: &'a str,
    offset: usize,
    /// Counts from 1.
    argument: usize,
    zero: bool,
    sharp: bool,
    plus: bool,
    minus: bool,
    space: bool,
    width: Option<usize>,
    precision: Option<usize>,
    letter: char,
}

impl<'a> Verb<'a> {
    fn read(rest: &'a str, offset: usize, argument: usize) -> Result<Verb<'a>, Problem> {
        let bytes = rest.as_bytes();
        let mut at = 1;
        let number = |at: &mut usize| {
            let start = *at;
            while bytes.get(*at).is_some_and(u8::is_ascii_digit) {
                *at += 1;
            }
            rest[start..*at].parse::<usize>().unwrap_or(0)
        };
        let (mut zero, mut sharp, mut plus, mut minus, mut space) = (false, false, false, false, false);
        loop {
            match bytes.get(at) {
                Some(b'0') => zero = true,
                Some(b'#') => sharp = true,
                Some(b'+') => plus = true,
                Some(b'-') => minus = true,
                Some(b' ') => space = true,
                _ => break,
            }
            at += 1;
        }
        let width = bytes.get(at).is_some_and(|byte| (b'1'..=b'9').contains(byte)).then(|| number(&mut at));
        let precision = (bytes.get(at) == Some(&b'.')).then(|| {
            at += 1;
            number(&mut at)
        });
        let mut argument = argument;
        if bytes.get(at) == Some(&b'[') {
            at += 1;
            if !bytes.get(at).is_some_and(|byte| (b'1'..=b'9').contains(byte)) {
                return Err(unrecognized(rest, at, offset));
            }
            argument = number(&mut at);
            if bytes.get(at) != Some(&b']') {
                return Err(unrecognized(rest, at, offset));
            }
            at += 1;
        }
        let letter = match bytes.get(at) {
            Some(letter) if letter.is_ascii_alphabetic() => char::from(*letter),
            _ => return Err(unrecognized(rest, at, offset)),
        };
        if width.is_some_and(|width| width > MAX_WIDTH) || precision.is_some_and(|precision| precision > MAX_WIDTH) {
            return Err(Problem::Unsupported("a field this wide".into()));
        }
        let text = &rest[..=at];
        Ok(Verb { text, offset, argument, zero, sharp, plus, minus, space, width, precision, letter })
    }

    fn write(&self, value: &Value, out: &mut String) -> Result<(), Problem> {
        if value.is_null() && self.letter != 'v' {
            return Err(self.unsuitable("null value cannot be formatted"));
        }
        let convert = |ty: Type| value.convert(&ty).map_err(|error| self.unsuitable(&error.to_string()));
        let written = match self.letter {
            'v' => self.pad(&self.as_is(value)?),
            't' => if convert(Type::Bool)?.as_bool() == Some(true) { "true" } else { "false" }.to_owned(),
            'b' | 'd' | 'o' | 'x' | 'X' => {
                let number = convert(Type::Number)?;
                self.integer(number.as_number().expect("a known number"))?
            }
            'e' | 'E' | 'f' | 'g' | 'G' => {
                let number = convert(Type::Number)?;
                self.float(number.as_number().expect("a known number"))
            }
            's' | 'q' => {
                let text = convert(Type::String)?;
                let text = text.as_str().unwrap_or_default();
                let cut: String = match self.precision {
                    Some(precision) if precision > 0 => text.graphemes(true).take(precision).collect(),
                    _ => text.to_owned(),
                };
                self.pad(&if self.letter == 'q' { super::json::encode(&Value::string(cut))? } else { cut })
            }
            letter => {
                let message =
                    format!("unsupported format verb '{letter}' in {:?} at offset {}", self.text, self.offset);
                return Err(Problem::Call(message));
            }
        };
        out.push_str(&written);
        Ok(())
    }

    fn unsuitable(&self, message: &str) -> Problem {
        Problem::Call(format!("unsupported value for {:?} at {}: {message}", self.text, self.offset))
    }

    fn as_is(&self, value: &Value) -> Result<String, Problem> {
        match (value.as_str(), value.as_number()) {
            (Some(text), _) if !self.sharp => Ok(text.to_owned()),
            (_, Some(number)) if !self.sharp => {
                let sign = if number.is_signed() { "-" } else { "" };
                Ok(format!("{sign}{}", general(number, None, 'e')))
            }
            _ => super::json::encode(value),
        }
    }

    /// Fields of text are as wide as people see them.
    fn pad(&self, text: &str) -> String {
        let missing = self.width.unwrap_or(0).saturating_sub(text.graphemes(true).count());
        let fill = if self.zero { "0" } else { " " }.repeat(missing);
        if self.minus { format!("{text}{fill}") } else { format!("{fill}{text}") }
    }

    fn sign(&self, number: &Number) -> &'static str {
        match (number.is_signed(), self.plus, self.space) {
            (true, ..) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            _ => "",
        }
    }

    fn integer(&self, number: &Number) -> Result<String, Problem> {
        let base = match self.letter {
            'b' => 2,
            'o' => 8,
            'd' => 10,
            _ => 16,
        };
        let digits = number.to_radix(base).ok_or_else(|| self.unsuitable("an integer is required"))?;
        let digits = digits.trim_start_matches('-');
        let digits = if self.letter == 'X' { digits.to_uppercase() } else { digits.to_owned() };
        // An integer has no negative zero.
        let sign = if number.is_zero() { self.sign(&Number::from(0)) } else { self.sign(number) };
        let prefix = match self.letter {
            'b' if self.sharp => "0b",
            'o' if self.sharp => "0",
            'x' if self.sharp => "0x",
            'X' if self.sharp => "0X",
            _ => "",
        };
        let mut zeros = 0;
        if let Some(precision) = self.precision {
            if precision == 0 && digits == "0" {
                return Ok(String::new());
            }
            zeros = precision.saturating_sub(digits.len());
        }
        let length = sign.len() + prefix.len() + zeros + digits.len();
        let missing = self.width.unwrap_or(0).saturating_sub(length);
        let (mut left, mut right) = (0, 0);
        if self.minus {
            right = missing;
        } else if self.zero && self.precision.is_none() {
            zeros = missing;
        } else {
            left = missing;
        }
        let (left, zeros, right) = (" ".repeat(left), "0".repeat(zeros), " ".repeat(right));
        Ok(format!("{left}{sign}{prefix}{zeros}{digits}{right}"))
    }

    fn float(&self, number: &Number) -> String {
        let digits = match self.letter {
            'f' => number.to_fixed(self.precision.unwrap_or(6) as u32).trim_start_matches('-').to_owned(),
            'e' | 'E' => {
                let places = self.precision.unwrap_or(6);
                let (digits, exponent) = number.to_significant(Some(places as u32 + 1));
                scientific(&format!("{digits:0<width$}", width = places + 1), exponent, self.letter)
            }
            'g' => general(number, self.precision, 'e'),
            _ => general(number, self.precision, 'E'),
        };
        let sign = self.sign(number);
        let missing = self.width.unwrap_or(0).saturating_sub(sign.len() + digits.len());
        let (zeros, spaces) = ("0".repeat(missing), " ".repeat(missing));
        match (self.zero && !self.minus, self.minus) {
            (true, _) => format!("{sign}{zeros}{digits}"),
            (_, true) => format!("{sign}{digits}{spaces}"),
            _ => format!("{spaces}{sign}{digits}"),
        }
    }
}

fn unrecognized(rest: &str, at: usize, offset: usize) -> Problem {
    match rest[at..].chars().next() {
        Some(character) => {
            Problem::Call(format!("unrecognized format character {character:?} at offset {}", offset + at))
        }
        None => Problem::Call(format!("invalid format string starting at offset {}", offset + at)),
    }
}

fn scientific(digits: &str, exponent: i64, letter: char) -> String {
    let (first, more) = digits.split_at(1);
    let point = if more.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{first}{point}{more}{letter}{sign}{:02}", exponent.abs())
}

/// Go's `%g`: an exponent for the very large and the very small. Without the sign.
fn general(number: &Number, precision: Option<usize>, letter: char) -> String {
    let (digits, exponent) = number.to_significant(precision.map(|precision| precision as u32));
    let count = digits.len() as i64;
    let limit = match precision.map(|precision| precision.max(1) as i64) {
        None => 6,
        Some(precision) if precision > count && count > exponent => count,
        Some(precision) => precision,
    };
    if number.is_zero() {
        return "0".to_owned();
    }
    if exponent < -4 || exponent >= limit {
        return scientific(&digits, exponent, letter);
    }
    if exponent < 0 {
        return format!("0.{}{digits}", "0".repeat((-exponent - 1) as usize));
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        return format!("{digits:0<whole$}");
    }
    format!("{}.{}", &digits[..whole], &digits[whole..])
}
