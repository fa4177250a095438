//! Comma-separated values as Go's reader takes them: strict about quotes, and empty lines do not count.

use std::collections::BTreeSet;

use landform_cty::{Type, Value, quote_as_go};

use super::call::Call;
use super::{Function, Kind, Outcome, Parameter, Problem};

pub(super) static FUNCTIONS: &[Function] = &[Function::new(
    "csvdecode",
    &[Parameter::new("str", Kind::String)],
    |args| match args[0].as_str() {
        None => Ok(Type::Dynamic),
        Some(text) => Ok(Type::list(row_type(&header(text)?))),
    },
    decode,
)];

fn header(text: &str) -> Result<Vec<String>, Problem> {
    let mut reader = Reader::new(text);
    let names = reader.record()?.ok_or_else(|| Problem::Call("missing header line".into()))?;
    let mut seen = BTreeSet::new();
    match names.iter().find(|name| !seen.insert((*name).clone())) {
        Some(name) => Err(Problem::Call(format!("duplicate column name {}", quote_as_go(name)))),
        None => Ok(names),
    }
}

fn row_type(names: &[String]) -> Type {
    Type::object(names.iter().map(|name| (landform_cty::normalize(name), Type::String)))
}

fn decode(call: &mut Call<'_>) -> Outcome {
    let names = header(call.text(0))?;
    let mut reader = Reader::new(call.text(0));
    reader.record()?;
    let mut rows = Vec::new();
    while let Some(fields) = reader.record()? {
        if fields.len() != names.len() {
            return Err(reader.fail(reader.record_line, "wrong number of fields"));
        }
        let row = names.iter().zip(fields).map(|(name, field)| (landform_cty::normalize(name), Value::string(field)));
        rows.push(Value::object(row));
    }
    Ok(Value::list(row_type(&names), rows))
}

struct Reader<'a> {
    lines: std::str::SplitInclusive<'a, char>,
    line: usize,
    /// Where the record began that was read last.
    record_line: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Reader<'a> {
        Reader { lines: text.split_inclusive('\n'), line: 0, record_line: 0 }
    }

    /// The next line; its end is `\n` whatever it was.
    fn next_line(&mut self) -> Option<String> {
        let line = self.lines.next()?;
        self.line += 1;
        Some(match line.strip_suffix("\r\n") {
            Some(content) => format!("{content}\n"),
            None => line.strip_suffix('\r').unwrap_or(line).to_owned(),
        })
    }

    fn fail(&self, line: usize, reason: &str) -> Problem {
        Problem::Call(format!("CSV parse error on line {line}: {reason}"))
    }

    fn record(&mut self) -> Result<Option<Vec<String>>, Problem> {
        let mut line = loop {
            match self.next_line() {
                None => return Ok(None),
                Some(line) if line == "\n" || line.is_empty() => {}
                Some(line) => break line,
            }
        };
        self.record_line = self.line;
        let mut fields = Vec::new();
        loop {
            let Some(quoted) = line.strip_prefix('"') else {
                let (field, rest) = match line.split_once(',') {
                    Some((field, rest)) => (field, Some(rest.to_owned())),
                    None => (line.strip_suffix('\n').unwrap_or(&line), None),
                };
                if field.contains('"') {
                    return Err(self.fail(self.line, "bare \" in non-quoted-field"));
                }
                fields.push(field.to_owned());
                match rest {
                    Some(rest) => line = rest,
                    None => return Ok(Some(fields)),
                }
                continue;
            };
            let (field, rest) = self.quoted_field(quoted.to_owned())?;
            fields.push(field);
            match rest {
                Some(rest) => line = rest,
                None => return Ok(Some(fields)),
            }
        }
    }

    /// The field, and what follows its comma.
    fn quoted_field(&mut self, mut line: String) -> Result<(String, Option<String>), Problem> {
        const UNBALANCED: &str = "extraneous or missing \" in quoted-field";
        let mut field = String::new();
        loop {
            let Some((before, after)) = line.split_once('"') else {
                field.push_str(&line);
                line = self.next_line().ok_or_else(|| self.fail(self.line, UNBALANCED))?;
                continue;
            };
            field.push_str(before);
            match after.chars().next() {
                Some('"') => {
                    field.push('"');
                    line = after[1..].to_owned();
                }
                Some(',') => return Ok((field, Some(after[1..].to_owned()))),
                None | Some('\n') => return Ok((field, None)),
                Some(_) => return Err(self.fail(self.line, UNBALANCED)),
            }
        }
    }
}
