//! Regular expressions in Go's syntax, run by Rust's engine. Both are of the same family and match alike; a pattern is
//! read here to find what the two would understand differently, and to write it as Rust means it.

use std::sync::{Mutex, PoisonError};

use landform_cty::{Type, Value, normalize};

use super::call::Call;
use super::{Function, Kind, Outcome, Parameter, Problem};

const PARAMETERS: &[Parameter] = &[Parameter::new("pattern", Kind::String), Parameter::new("string", Kind::String)];

/// Bytes that a compiled pattern may take.
const MAX_PROGRAM: usize = 1 << 20;

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "regex",
        PARAMETERS,
        |args| match args[0].as_str() {
            Some(pattern) => result_type(pattern),
            None => Ok(Type::Dynamic),
        },
        find_first,
    ),
    Function::new(
        "regexall",
        PARAMETERS,
        |args| match args[0].as_str() {
            Some(pattern) => Ok(Type::list(result_type(pattern)?)),
            None => Ok(Type::list(Type::Dynamic)),
        },
        find_all,
    ),
];

fn result_type(pattern: &str) -> Result<Type, Problem> {
    let regex = compile(pattern).map_err(|fault| match fault {
        Fault::Syntax(code, part) => Problem::Argument(0, format!("invalid regexp pattern: {code} in {part}")),
        Fault::Unsupported(what) => Problem::Unsupported(what),
    })?;
    let names: Vec<Option<&str>> = regex.capture_names().skip(1).collect();
    let named = names.iter().flatten().count();
    match (names.len() - named, named) {
        (0, 0) => Ok(Type::String),
        (_, 0) => Ok(Type::tuple(names.iter().map(|_| Type::String))),
        (0, _) => Ok(Type::object(names.iter().flatten().map(|name| (*name, Type::String)))),
        _ => {
            Err(Problem::Argument(0, "invalid regexp pattern: cannot mix both named and unnamed capture groups".into()))
        }
    }
}

fn compiled(call: &Call<'_>) -> Result<regex::Regex, Problem> {
    compile(call.text(0)).map_err(|_| Problem::Unsupported("this pattern".into()))
}

fn find_first(call: &mut Call<'_>) -> Outcome {
    let regex = compiled(call)?;
    match regex.captures(call.text(1)) {
        Some(captures) => Ok(value_of(&regex, &captures, &call.ty)),
        None => Err(Problem::Call("pattern did not match any part of the given string".into())),
    }
}

fn find_all(call: &mut Call<'_>) -> Outcome {
    let regex = compiled(call)?;
    let element = call.ty.element().cloned().unwrap_or(Type::Dynamic);
    let mut found = Vec::new();
    for captures in regex.captures_iter(call.args[1].as_str().unwrap_or_default()) {
        call.budget.spend_steps(captures.len() as u64)?;
        found.push(value_of(&regex, &captures, &element));
    }
    Ok(Value::list(element, found))
}

fn value_of(regex: &regex::Regex, captures: &regex::Captures<'_>, ty: &Type) -> Value {
    let group = |index: usize| match captures.get(index) {
        Some(part) => Value::string(part.as_str()),
        None => Value::null(Type::String),
    };
    match ty {
        Type::String => group(0),
        Type::Tuple(_) => Value::tuple((1..captures.len()).map(group).collect()),
        _ => {
            let names = regex.capture_names().enumerate().skip(1);
            Value::object(names.filter_map(|(index, name)| Some((normalize(name?), group(index)))))
        }
    }
}

/// `replace` with a pattern between slashes.
pub(super) fn replace_all(call: &mut Call<'_>) -> Outcome {
    let pattern = call.text(1);
    let regex = compile(&pattern[1..pattern.len() - 1]).map_err(|fault| match fault {
        Fault::Syntax(code, part) => Problem::Call(format!("error parsing regexp: {code}: `{part}`")),
        Fault::Unsupported(what) => Problem::Unsupported(what),
    })?;
    let (text, by) = (call.text(0), call.text(2));
    let matches = regex.find_iter(text).count();
    // Every group may be written as often as the replacement has room for it.
    call.budget.spend_bytes(matches.saturating_mul(by.len()).saturating_add(text.len().saturating_mul(by.len())))?;
    Ok(Value::string(regex.replace_all(call.text(0), call.text(2))))
}

/// The classes of Unicode that both engines have under one name.
const KNOWN_CLASSES: [&str; 26] = [
    "L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "S", "Z", "Zs", "Latin",
    "Greek", "Cyrillic", "Han", "Hiragana", "Katakana", "Arabic", "Hebrew",
];

enum Fault {
    /// Go's name for it, and the part of the pattern that it names.
    Syntax(&'static str, String),
    Unsupported(String),
}

/// Runs of one template ask for the same few patterns again and again, and to compile one takes longer than to evaluate the
/// rest of a small configuration.
fn compile(pattern: &str) -> Result<regex::Regex, Fault> {
    const KEPT: usize = 16;
    static COMPILED: Mutex<Vec<(String, regex::Regex)>> = Mutex::new(Vec::new());
    let kept = || COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, regex)) = kept().iter().find(|(of, _)| of == pattern) {
        return Ok(regex.clone());
    }
    let regex = compile_anew(pattern)?;
    let mut kept = kept();
    if kept.len() >= KEPT {
        kept.remove(0);
    }
    kept.push((pattern.to_owned(), regex.clone()));
    Ok(regex)
}

fn compile_anew(pattern: &str) -> Result<regex::Regex, Fault> {
    let mut translator =
        Translator { rest: pattern, out: String::new(), open: Vec::new(), repeatable: false, repeated: None };
    translator.run(pattern)?;
    regex::RegexBuilder::new(&translator.out)
        .size_limit(MAX_PROGRAM)
        .nest_limit(100)
        .build()
        .map_err(|_| Fault::Unsupported("this pattern".into()))
}

struct Translator<'a> {
    rest: &'a str,
    out: String,
    /// What stood at every open parenthesis.
    open: Vec<&'a str>,
    /// Whether something stands before that can be repeated.
    repeatable: bool,
    /// Where the last repetition begins, if nothing stands behind it.
    repeated: Option<&'a str>,
}

impl<'a> Translator<'a> {
    fn run(&mut self, pattern: &'a str) -> Result<(), Fault> {
        while let Some(first) = self.rest.chars().next() {
            let here = self.rest;
            match first {
                '\\' => self.escape(false)?,
                '[' => self.class()?,
                '(' => self.group()?,
                ')' => {
                    if self.open.pop().is_none() {
                        return Err(Fault::Syntax("unexpected )", pattern.to_owned()));
                    }
                    self.take(1);
                    self.after(true);
                }
                '|' | '^' => {
                    self.take(1);
                    self.after(first == '^');
                }
                '*' | '+' | '?' => self.repetition(1)?,
                '{' => match repeat_length(here)? {
                    Some(length) => self.repetition(length)?,
                    None => {
                        self.out.push_str("\\{");
                        self.rest = &here[1..];
                        self.after(true);
                    }
                },
                '}' | ']' | '&' | '~' | '#' | '-' => {
                    self.out.push('\\');
                    self.take(1);
                    self.after(true);
                }
                _ => {
                    self.take(first.len_utf8());
                    self.after(true);
                }
            }
        }
        if self.open.is_empty() { Ok(()) } else { Err(Fault::Syntax("missing closing )", pattern.to_owned())) }
    }

    fn take(&mut self, length: usize) {
        let (taken, rest) = self.rest.split_at(length);
        self.out.push_str(taken);
        self.rest = rest;
    }

    fn after(&mut self, repeatable: bool) {
        self.repeatable = repeatable;
        self.repeated = None;
    }

    fn repetition(&mut self, length: usize) -> Result<(), Fault> {
        let here = self.rest;
        let lazy = usize::from(here[length..].starts_with('?'));
        if let Some(start) = self.repeated {
            let part = &start[..start.len() - here.len() + length + lazy];
            return Err(Fault::Syntax("invalid nested repetition operator", part.to_owned()));
        }
        if !self.repeatable {
            let part = &here[..length + lazy];
            return Err(Fault::Syntax("missing argument to repetition operator", part.to_owned()));
        }
        self.take(length + lazy);
        self.repeated = Some(here);
        Ok(())
    }

    /// `(`, with what may follow it.
    fn group(&mut self) -> Result<(), Fault> {
        let here = self.rest;
        self.open.push(here);
        let Some(flags) = here.strip_prefix("(?") else {
            self.take(1);
            self.after(false);
            return Ok(());
        };
        for named in ["P<", "<"] {
            let Some(name) = flags.strip_prefix(named) else { continue };
            let Some(end) = name.find('>') else {
                return Err(Fault::Syntax("invalid named capture", here.to_owned()));
            };
            let plain = !name[..end].is_empty()
                && name[..end].chars().all(|character| character == '_' || character.is_ascii_alphanumeric());
            if !plain || name.starts_with(|character: char| character.is_ascii_digit()) {
                return Err(match plain {
                    true => Fault::Unsupported("a group name that begins with a digit".into()),
                    false => Fault::Syntax("invalid named capture", here[..2 + named.len() + end + 1].to_owned()),
                });
            }
            self.out.push_str(&format!("(?P<{}>", &name[..end]));
            self.rest = &name[end + 1..];
            self.after(false);
            return Ok(());
        }
        let length = flags.find(|character| !"imsU-".contains(character)).unwrap_or(flags.len());
        match flags[length..].chars().next() {
            Some(end @ (':' | ')')) if length > 0 || end == ':' => {
                if end == ')' {
                    self.open.pop();
                }
                self.take(2 + length + 1);
                self.after(false);
                Ok(())
            }
            Some(other) => Err(Fault::Syntax(
                "invalid or unsupported Perl syntax",
                here[..2 + length + other.len_utf8()].to_owned(),
            )),
            None => Err(Fault::Syntax("missing closing )", here.to_owned())),
        }
    }

    /// A backslash with what belongs to it. Inside of a class some stand for sets and none for places.
    fn escape(&mut self, in_class: bool) -> Result<(), Fault> {
        let here = self.rest;
        let Some(letter) = here[1..].chars().next() else {
            return Err(Fault::Syntax("trailing backslash at end of expression", String::new()));
        };
        let length = 1 + letter.len_utf8();
        let invalid = |length: usize| {
            let part = &here[..here.ceil_char_boundary(length)];
            Err(Fault::Syntax("invalid escape sequence", part.to_owned()))
        };
        // Go's classes are those of ASCII.
        let class = match letter {
            'd' => Some("0-9"),
            'D' => Some("^0-9"),
            'w' => Some("0-9A-Za-z_"),
            'W' => Some("^0-9A-Za-z_"),
            's' => Some("\\t\\n\\x0C\\r\\x20"),
            'S' => Some("^\\t\\n\\x0C\\r\\x20"),
            _ => None,
        };
        if let Some(class) = class {
            match in_class && !class.starts_with('^') {
                true => self.out.push_str(class),
                false => self.out.push_str(&format!("[{class}]")),
            }
            self.rest = &here[length..];
            self.after(true);
            return Ok(());
        }
        match letter {
            'b' | 'B' if !in_class => {
                self.out.push_str(&format!("(?-u:\\{letter})"));
                self.rest = &here[length..];
            }
            'A' | 'z' if !in_class => self.take(length),
            'a' | 'f' | 'n' | 'r' | 't' | 'v' => self.take(length),
            'Q' if !in_class => {
                let literal = &here[2..];
                let end = literal.find("\\E");
                self.out.push_str(&regex::escape(&literal[..end.unwrap_or(literal.len())]));
                self.rest = end.map_or("", |end| &literal[end + 2..]);
            }
            'x' => {
                let (code, used) = match here[2..].strip_prefix('{') {
                    Some(digits) => {
                        let Some(end) = digits.find('}') else { return invalid(3) };
                        (u32::from_str_radix(&digits[..end], 16).ok(), 4 + end)
                    }
                    None => (here.get(2..4).and_then(|digits| u32::from_str_radix(digits, 16).ok()), 4),
                };
                let Some(character) = code.and_then(char::from_u32) else { return invalid(used) };
                self.out.push_str(&format!("\\x{{{:x}}}", character as u32));
                self.rest = &here[used..];
            }
            '0'..='7' => {
                let digits = here[1..].bytes().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
                if letter != '0' && digits == 1 {
                    return invalid(2);
                }
                let code = u32::from_str_radix(&here[1..=digits], 8).expect("octal digits");
                self.out.push_str(&format!("\\x{{{code:x}}}"));
                self.rest = &here[1 + digits..];
            }
            'p' | 'P' => {
                let (name, used) = match here[2..].strip_prefix('{') {
                    Some(name) => {
                        let Some(end) = name.find('}') else {
                            return Err(Fault::Syntax("invalid character class range", here.to_owned()));
                        };
                        (&name[..end], end + 4)
                    }
                    None => (here.get(2..3).unwrap_or_default(), 3),
                };
                if !KNOWN_CLASSES.contains(&name) {
                    return Err(Fault::Unsupported(format!("the class {name:?} of Unicode")));
                }
                self.out.push_str(&format!("\\{letter}{{{name}}}"));
                self.rest = &here[used..];
            }
            _ if letter.is_ascii_punctuation() => {
                self.out.push_str(&escape_in_class(letter));
                self.rest = &here[length..];
            }
            _ => return invalid(length),
        }
        self.after(true);
        Ok(())
    }

    /// `[...]`. Nothing in it is special for Go but what it escapes and names, so all else is escaped for Rust.
    fn class(&mut self) -> Result<(), Fault> {
        let here = self.rest;
        self.take(1);
        if self.rest.starts_with('^') {
            self.take(1);
        }
        let mut first = true;
        let mut last: Option<char> = None;
        loop {
            let Some(character) = self.rest.chars().next() else {
                return Err(Fault::Syntax("missing closing ]", here.to_owned()));
            };
            match character {
                ']' if !first => break,
                '[' if self.rest.starts_with("[:") && self.rest[2..].contains(":]") => {
                    let end = self.rest[2..].find(":]").expect("just found") + 4;
                    let name = self.rest[2..end - 2].trim_start_matches('^');
                    const NAMES: [&str; 14] = [
                        "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
                        "space", "upper", "word", "xdigit",
                    ];
                    if !NAMES.contains(&name) {
                        return Err(Fault::Syntax("invalid character class range", self.rest[..end].to_owned()));
                    }
                    self.take(end);
                    last = None;
                }
                '\\' => {
                    let before = self.rest;
                    self.escape(true)?;
                    last = single_escape(&before[..before.len() - self.rest.len()]);
                }
                '-' if !first && last.is_some() && !self.rest[1..].starts_with(']') => {
                    self.take(1);
                    let low = last.take().expect("just looked");
                    let before = self.rest;
                    let high = match self.rest.chars().next() {
                        Some('\\') => {
                            self.escape(true)?;
                            single_escape(&before[..before.len() - self.rest.len()])
                        }
                        Some(character) => {
                            self.out.push_str(&escape_in_class(character));
                            self.rest = &self.rest[character.len_utf8()..];
                            Some(character)
                        }
                        None => return Err(Fault::Syntax("missing closing ]", here.to_owned())),
                    };
                    let range = format!("{low}-{}", &before[..before.len() - self.rest.len()]);
                    if high.is_none_or(|high| high < low) {
                        return Err(Fault::Syntax("invalid character class range", range));
                    }
                }
                _ => {
                    self.out.push_str(&escape_in_class(character));
                    self.rest = &self.rest[character.len_utf8()..];
                    last = Some(character);
                }
            }
            first = false;
        }
        self.take(1);
        self.after(true);
        Ok(())
    }
}

/// The character that an escape of one stands for.
fn single_escape(text: &str) -> Option<char> {
    let letter = text.chars().nth(1)?;
    match letter {
        'a' => Some('\u{7}'),
        'f' => Some('\u{c}'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'v' => Some('\u{b}'),
        'x' => {
            let digits = text[2..].trim_matches(['{', '}']);
            u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)
        }
        '0'..='7' => u32::from_str_radix(&text[1..], 8).ok().and_then(char::from_u32),
        _ if letter.is_ascii_punctuation() => Some(letter),
        _ => None,
    }
}

fn escape_in_class(character: char) -> String {
    if character.is_ascii_punctuation() && character != '_' { format!("\\{character}") } else { character.to_string() }
}

/// The length of `{n}`, `{n,}` or `{n,m}`; anything else that begins with a brace is text.
fn repeat_length(text: &str) -> Result<Option<usize>, Fault> {
    let Some(end) = text.find('}') else { return Ok(None) };
    let (min, max) = text[1..end].split_once(',').unwrap_or((&text[1..end], ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if min.is_empty() || !digits(min) || !digits(max) {
        return Ok(None);
    }
    let (low, high) = (min.parse::<u32>().unwrap_or(u32::MAX), max.parse::<u32>().unwrap_or(0));
    if low > 1000 || high > 1000 || (!max.is_empty() && high < low) {
        return Err(Fault::Syntax("invalid repeat count", text[..=end].to_owned()));
    }
    Ok(Some(end + 1))
}
