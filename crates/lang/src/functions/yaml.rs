use std::collections::BTreeMap;

use landform_cty::{Data, Number, Type, Value, normalize};
use saphyr_parser::{Event, Parser, ScalarStyle};

use super::call::Call;
use super::{Function, Kind, Outcome, Parameter, Problem, a_string};

/// Deeper documents are not read.
const MAX_DEPTH: usize = 100;

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new("yamlencode", &[Parameter::new("value", Kind::Any).or_null().or_untyped()], a_string, |call| {
        let value = &call.args[0];
        if !value.is_wholly_known() {
            return Ok(Value::unknown(Type::String));
        }
        if has_byte_order_mark(value) {
            return Err(Problem::Unsupported("text that begins with a byte order mark".into()));
        }
        Ok(Value::string(super::yaml_emitter::write(value)))
    })
    .may_be_null(),
    Function::new("yamldecode", &[Parameter::new("src", Kind::String)], |_| Ok(Type::Dynamic), decode).may_be_null(),
];

fn has_byte_order_mark(value: &Value) -> bool {
    let mut found = false;
    value.walk(&mut |_, part| {
        found |= part.as_str().is_some_and(|text| text.starts_with('\u{feff}'));
        found |= part.as_mapping().is_some_and(|elements| elements.keys().any(|key| key.starts_with('\u{feff}')));
        !found
    });
    found
}

fn decode(call: &mut Call<'_>) -> Outcome {
    let text = call.text(0);
    // Two things that this parser takes otherwise than libyaml.
    if text.lines().any(|line| line.trim_start_matches(' ').starts_with('\t')) {
        return Err(Problem::Unsupported("a tab before the text of a line".into()));
    }
    let mut reader =
        Reader { events: Parser::new_from_str(text), anchors: BTreeMap::new(), ends_in_line: text.ends_with('\n') };
    reader.next()?;
    match reader.next()? {
        Event::DocumentStart(_) => {}
        _ => return Err(Problem::Call("missing start of document".into())),
    }
    let first = reader.next()?;
    let value = reader.value(first, 0)?;
    match (reader.next()?, reader.next()?) {
        (Event::DocumentEnd, Event::StreamEnd) => Ok(value),
        _ => Err(Problem::Call("unexpected extra content after value".into())),
    }
}

struct Reader<'a> {
    events: Parser<'a, saphyr_parser::StrInput<'a>>,
    anchors: BTreeMap<usize, Value>,
    ends_in_line: bool,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Event<'a>, Problem> {
        match self.events.next() {
            Some(Ok((event, _))) => Ok(event),
            Some(Err(error)) => Err(Problem::Call(error.to_string())),
            None => Err(Problem::Call("expecting value but found end of stream".into())),
        }
    }

    fn value(&mut self, event: Event<'a>, depth: usize) -> Outcome {
        if depth > MAX_DEPTH {
            return Err(Problem::Unsupported("a document nested this deeply".into()));
        }
        let (value, anchor) = match event {
            Event::Alias(id) => {
                let value = self.anchors.get(&id).cloned();
                return value.ok_or_else(|| Problem::Call("reference to undefined anchor".into()));
            }
            Event::Scalar(_, _, _, Some(_)) | Event::SequenceStart(_, Some(_)) | Event::MappingStart(_, Some(_)) => {
                return Err(Problem::Unsupported("a tag".into()));
            }
            Event::Scalar(_, ScalarStyle::Literal | ScalarStyle::Folded, ..) if !self.ends_in_line => {
                return Err(Problem::Unsupported("text of several lines where the last has no end".into()));
            }
            Event::Scalar(text, style, anchor, None) => (scalar(&text, style)?, anchor),
            Event::SequenceStart(anchor, None) => {
                let mut elements = Vec::new();
                loop {
                    match self.next()? {
                        Event::SequenceEnd => break,
                        event => elements.push(self.value(event, depth + 1)?),
                    }
                }
                (Value::tuple(elements), anchor)
            }
            Event::MappingStart(anchor, None) => (self.mapping(depth)?, anchor),
            _ => return Err(Problem::Call("unexpected end".into())),
        };
        if anchor > 0 {
            self.anchors.insert(anchor, value.clone());
        }
        Ok(value)
    }

    fn mapping(&mut self, depth: usize) -> Outcome {
        let mut entries: BTreeMap<String, Value> = BTreeMap::new();
        loop {
            let key = match self.next()? {
                Event::MappingEnd => return Ok(Value::object(entries)),
                Event::Scalar(text, _, _, None) if text == "<<" => {
                    let event = self.next()?;
                    let merged = self.value(event, depth + 1)?;
                    merge(&merged, &mut entries)?;
                    continue;
                }
                Event::Scalar(text, style, _, None) => scalar(&text, style)?,
                Event::Scalar(_, _, _, Some(_)) => return Err(Problem::Unsupported("a tag".into())),
                _ => return Err(Problem::Call("only strings are allowed as mapping keys".into())),
            };
            let key = key.convert(&Type::String).ok();
            let Some(key) = key.as_ref().and_then(Value::as_str) else {
                return Err(Problem::Call("mapping key cannot be null".into()));
            };
            let event = self.next()?;
            let value = self.value(event, depth + 1)?;
            entries.insert(normalize(key), value);
        }
    }
}

/// What is merged in takes the place of what stands before it, in the order of the text.
fn merge(merged: &Value, entries: &mut BTreeMap<String, Value>) -> Result<(), Problem> {
    let mut add = |value: &Value| match value.as_mapping() {
        Some(elements) => {
            entries.extend(elements.iter().map(|(key, value)| (key.clone(), value.clone())));
            Ok(())
        }
        None => Err(Problem::Call(format!("cannot merge {} into mapping", value.ty.friendly_name()))),
    };
    match &merged.data {
        Data::Sequence(elements) => elements.iter().try_for_each(add),
        _ => add(merged),
    }
}

fn scalar(text: &str, style: ScalarStyle) -> Outcome {
    if style != ScalarStyle::Plain {
        return Ok(Value::string(text));
    }
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Ok(Value::bool(true));
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Ok(Value::bool(false));
        }
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::null(Type::Dynamic)),
        _ => {}
    }
    let lower = text.to_ascii_lowercase();
    match lower.trim_start_matches(['+', '-']) {
        ".inf" => return Err(Problem::Unsupported("an infinite number".into())),
        ".nan" => return Err(Problem::Call("floating point NaN is not supported".into())),
        _ => {}
    }
    if let Some(date) = date(text)? {
        return Ok(Value::string(date));
    }
    Ok(number(text).map_or_else(|| Value::string(text), Value::number))
}

/// A date becomes the timestamp of its first moment.
fn date(text: &str) -> Result<Option<String>, Problem> {
    let mut parts = text.splitn(3, '-');
    let (Some(year), Some(month), Some(day)) = (parts.next(), parts.next(), parts.next()) else { return Ok(None) };
    let digits =
        |text: &str, most: usize| (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if year.len() != 4 || !digits(year, 4) || !digits(month, 2) {
        return Ok(None);
    }
    if day.contains(['T', 't', ' ']) {
        return Err(Problem::Unsupported("a timestamp".into()));
    }
    if !digits(day, 2) {
        return Ok(None);
    }
    let written = format!("{year}-{month:0>2}-{day:0>2}T00:00:00Z");
    Ok(super::dates::is_valid(&written).then_some(written))
}

fn number(text: &str) -> Option<Number> {
    if !text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '.')) {
        return None;
    }
    for (prefix, base) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let plain = !digits.starts_with(['+', '-']) && digits.len() <= 15;
            return plain.then(|| Number::parse_integer(digits, base)).flatten();
        }
    }
    Number::parse(text).ok()
}
