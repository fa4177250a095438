use landform_cty::{Data, Type, Value};
use unicode_segmentation::UnicodeSegmentation;

use super::call::Call;
use super::{Function, Kind, Outcome, Parameter, Problem, a_bool, a_string, strings_list};

const STR: Parameter = Parameter::new("str", Kind::String);
/// Some functions take a string of which not even the type is known.
const ANY_STR: Parameter = STR.or_untyped();

const fn string(name: &'static str) -> Parameter {
    Parameter::new(name, Kind::String)
}

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new("upper", &[ANY_STR], a_string, |call| Ok(Value::string(map_chars(call.text(0), upper)))),
    Function::new("lower", &[ANY_STR], a_string, |call| Ok(Value::string(map_chars(call.text(0), lower)))),
    Function::new("title", &[STR], a_string, |call| Ok(Value::string(capitalize(call.text(0))))),
    Function::new("strrev", &[ANY_STR], a_string, |call| {
        Ok(Value::string(call.text(0).graphemes(true).rev().collect::<String>()))
    }),
    Function::new("trimspace", &[STR], a_string, |call| Ok(Value::string(call.text(0).trim()))),
    Function::new("trim", &[STR, string("cutset")], a_string, |call| {
        let cutset = call.text(1);
        Ok(Value::string(call.text(0).trim_matches(|character| cutset.contains(character))))
    }),
    Function::new("trimprefix", &[STR, string("prefix")], a_string, |call| {
        let whole = call.text(0);
        Ok(Value::string(whole.strip_prefix(call.text(1)).unwrap_or(whole)))
    }),
    Function::new("trimsuffix", &[STR, string("suffix")], a_string, |call| {
        let whole = call.text(0);
        Ok(Value::string(whole.strip_suffix(call.text(1)).unwrap_or(whole)))
    }),
    Function::new("chomp", &[STR], a_string, |call| Ok(Value::string(call.text(0).trim_end_matches(['\r', '\n'])))),
    Function::new("indent", &[Parameter::new("spaces", Kind::Number), STR], a_string, indent),
    Function::new("replace", &[STR, string("substr"), string("replace")], a_string, replace),
    Function::new(
        "substr",
        &[
            ANY_STR,
            Parameter::new("offset", Kind::Number).or_untyped(),
            Parameter::new("length", Kind::Number).or_untyped(),
        ],
        a_string,
        substring,
    ),
    Function::new("join", &[string("separator")], a_string, join).and(Parameter::new("lists", Kind::Strings)),
    Function::new("split", &[string("separator"), STR], strings_list, split),
    Function::new("strcontains", &[STR, string("substr")], a_bool, |call| {
        Ok(Value::bool(call.text(0).contains(call.text(1))))
    })
    .may_be_null(),
    Function::new("endswith", &[STR, string("suffix")], a_bool, |call| {
        Ok(Value::bool(call.text(0).ends_with(call.text(1))))
    }),
    Function::new("startswith", &[STR.or_unknown(), string("prefix")], a_bool, starts_with),
];

fn map_chars(text: &str, change: fn(char) -> char) -> String {
    text.chars().map(change).collect()
}

/// Go maps one character to one character, where Unicode's full mapping may make several of one.
fn upper(character: char) -> char {
    let mut mapped = character.to_uppercase();
    match (mapped.next(), mapped.next()) {
        (Some(upper), None) => upper,
        _ => with_iota_below(character),
    }
}

fn lower(character: char) -> char {
    match character {
        'İ' => 'i',
        _ => character.to_lowercase().next().unwrap_or(character),
    }
}

/// Greek letters with an iota below have a capital that is one character; no other letter has one here.
fn with_iota_below(character: char) -> char {
    let code = character as u32;
    let capital = match code {
        0x1F80..=0x1F87 | 0x1F90..=0x1F97 | 0x1FA0..=0x1FA7 => code + 8,
        0x1FB3 | 0x1FC3 | 0x1FF3 => code + 9,
        _ => code,
    };
    char::from_u32(capital).unwrap_or(character)
}

/// A title has capitals of its own for a few letters.
fn title(character: char) -> char {
    match character {
        'Ǆ' | 'ǅ' | 'ǆ' => 'ǅ',
        'Ǉ' | 'ǈ' | 'ǉ' => 'ǈ',
        'Ǌ' | 'ǋ' | 'ǌ' => 'ǋ',
        'Ǳ' | 'ǲ' | 'ǳ' => 'ǲ',
        'ა'..='ჺ' | 'ჽ'..='ჿ' => character,
        _ => upper(character),
    }
}

fn capitalize(text: &str) -> String {
    let mut previous = ' ';
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        out.push(if separates(previous) { title(character) } else { character });
        previous = character;
    }
    out
}

fn separates(character: char) -> bool {
    match character {
        '_' => false,
        _ if character.is_ascii() => !character.is_ascii_alphanumeric(),
        _ => !character.is_alphanumeric() && character.is_whitespace(),
    }
}

fn indent(call: &mut Call<'_>) -> Outcome {
    let spaces = call.integer(0).map_err(Problem::Call)?;
    let Ok(spaces) = usize::try_from(spaces) else {
        return Err(Problem::Unsupported("a negative indentation".into()));
    };
    let lines = call.text(1).matches('\n').count();
    call.budget.spend_bytes(spaces.saturating_mul(lines))?;
    let margin = if lines == 0 { String::new() } else { " ".repeat(spaces) };
    Ok(Value::string(call.text(1).replace('\n', &format!("\n{margin}"))))
}

fn replace(call: &mut Call<'_>) -> Outcome {
    let part = call.text(1);
    if part.len() > 1 && part.starts_with('/') && part.ends_with('/') {
        return super::regex::replace_all(call);
    }
    // An empty part stands between any two characters.
    let (found, by) = (call.text(0).matches(part).count(), call.text(2).len());
    call.budget.spend_bytes(found.saturating_mul(by))?;
    Ok(Value::string(call.text(0).replace(call.text(1), call.text(2))))
}

/// Counts characters as people see them.
fn substring(call: &mut Call<'_>) -> Outcome {
    let characters: Vec<&str> = call.text(0).graphemes(true).collect();
    let mut offset = call.integer(1).map_err(Problem::Call)?;
    let length = call.integer(2).map_err(Problem::Call)?;
    if offset < 0 {
        offset = offset.saturating_add(characters.len() as i64);
    } else if length == 0 {
        return Ok(Value::string(""));
    }
    let start = usize::try_from(offset).unwrap_or(0).min(characters.len());
    let rest = &characters[start..];
    // Go's loop stops when it has counted up to the length, and zero is never counted.
    let end = if length <= 0 { rest.len() } else { rest.len().min(length as usize) };
    Ok(Value::string(rest[..end].concat()))
}

fn join(call: &mut Call<'_>) -> Outcome {
    let lists = &call.args[1..];
    if lists.is_empty() {
        return Err(Problem::Call("at least one list is required".into()));
    }
    if !lists.iter().all(Value::is_wholly_known) {
        return Ok(Value::unknown(Type::String));
    }
    let mut items = Vec::new();
    for (index, list) in lists.iter().enumerate() {
        for (position, item) in list.as_sequence().unwrap_or_default().iter().enumerate() {
            let Some(item) = item.as_str() else {
                let which = if lists.len() > 1 { format!(" of list {}", index + 1) } else { String::new() };
                let message = format!("element {position}{which} is null; cannot concatenate null values");
                return Err(Problem::Argument(index + 1, message));
            };
            items.push(item);
        }
    }
    let separator = call.text(0);
    call.budget.spend_bytes(items.len().saturating_mul(separator.len()))?;
    Ok(Value::string(items.join(call.args[0].as_str().unwrap_or_default())))
}

fn split(call: &mut Call<'_>) -> Outcome {
    let (separator, whole) = (call.text(0), call.text(1));
    let parts: Vec<Value> = if separator.is_empty() {
        whole.chars().map(|character| Value::string(character.to_string())).collect()
    } else {
        whole.split(separator).map(Value::string).collect()
    };
    Ok(Value::list(Type::String, parts))
}

/// A known beginning of an unknown string may be enough to decide.
fn starts_with(call: &mut Call<'_>) -> Outcome {
    let prefix = call.text(1);
    let Data::Unknown(refinement) = &call.args[0].data else {
        return Ok(Value::bool(call.text(0).starts_with(prefix)));
    };
    let known = refinement.string_prefix.as_deref().unwrap_or_default();
    Ok(if prefix.is_empty() || (!known.is_empty() && known.starts_with(prefix)) {
        Value::bool(true)
    } else if !known.is_empty() && known.len() >= prefix.len() {
        Value::bool(false)
    } else {
        Value::unknown(Type::Bool)
    })
}
