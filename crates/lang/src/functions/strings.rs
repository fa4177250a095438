use landform_cty::{Data, Refinement, Type, Value};
use unicode_segmentation::UnicodeSegmentation;

use super::{Body, Function, Kind, Parameter, Problem, text};

const STR: Parameter = Parameter::new("str", Kind::String);

const fn string_function(parameters: &'static [Parameter], run: fn(&[Value]) -> Result<Value, Problem>) -> Function {
    Function { parameters, rest: None, body: Body::Plain { returns: || Type::String, run } }
}

static UPPER: Function = string_function(&[STR], |args| change_case(text(&args[0]), |c| c.to_uppercase().collect()));
static LOWER: Function = string_function(&[STR], |args| change_case(text(&args[0]), |c| c.to_lowercase().collect()));
static TRIMSPACE: Function = string_function(&[STR], |args| Ok(Value::string(text(&args[0]).trim())));
static TRIMPREFIX: Function = string_function(&[STR, Parameter::new("prefix", Kind::String)], |args| {
    let whole = text(&args[0]);
    Ok(Value::string(whole.strip_prefix(text(&args[1])).unwrap_or(whole)))
});
static TRIMSUFFIX: Function = string_function(&[STR, Parameter::new("suffix", Kind::String)], |args| {
    let whole = text(&args[0]);
    Ok(Value::string(whole.strip_suffix(text(&args[1])).unwrap_or(whole)))
});
static CHOMP: Function =
    string_function(&[STR], |args| Ok(Value::string(text(&args[0]).trim_end_matches(['\r', '\n']))));
static REPLACE: Function =
    string_function(&[STR, Parameter::new("substr", Kind::String), Parameter::new("replace", Kind::String)], |args| {
        let (whole, part, by) = (text(&args[0]), text(&args[1]), text(&args[2]));
        if part.len() > 1 && part.starts_with('/') && part.ends_with('/') {
            return Err(Problem::Unsupported("regular expression".into()));
        }
        if whole.len().saturating_mul(by.len()) > 64 << 20 {
            return Err(Problem::Call("the result would be too long".into()));
        }
        Ok(Value::string(whole.replace(part, by)))
    });
static JOIN: Function = Function {
    parameters: &[Parameter::new("separator", Kind::String)],
    rest: Some(Parameter::new("lists", Kind::StringList)),
    body: Body::Plain { returns: || Type::String, run: join },
};
static SPLIT: Function = Function {
    parameters: &[Parameter::new("separator", Kind::String), STR],
    rest: None,
    body: Body::Plain { returns: || Type::list(Type::String), run: split },
};
static STRCONTAINS: Function = Function {
    parameters: &[STR, Parameter::new("substr", Kind::String)],
    rest: None,
    body: Body::Plain { returns: || Type::Bool, run: |args| Ok(Value::bool(text(&args[0]).contains(text(&args[1])))) },
};
static ENDSWITH: Function = Function {
    parameters: &[STR, Parameter::new("suffix", Kind::String)],
    rest: None,
    body: Body::Plain { returns: || Type::Bool, run: |args| Ok(Value::bool(text(&args[0]).ends_with(text(&args[1])))) },
};
static STARTSWITH: Function = Function {
    parameters: &[STR, Parameter::new("prefix", Kind::String)],
    rest: None,
    body: Body::Careful(starts_with),
};

pub(super) fn find(name: &str) -> Option<&'static Function> {
    Some(match name {
        "upper" => &UPPER,
        "lower" => &LOWER,
        "trimspace" => &TRIMSPACE,
        "trimprefix" => &TRIMPREFIX,
        "trimsuffix" => &TRIMSUFFIX,
        "chomp" => &CHOMP,
        "replace" => &REPLACE,
        "join" => &JOIN,
        "split" => &SPLIT,
        "strcontains" => &STRCONTAINS,
        "startswith" => &STARTSWITH,
        "endswith" => &ENDSWITH,
        _ => return None,
    })
}

/// Go maps character by character; where Rust would make several of one, the two may differ.
fn change_case(text: &str, change: fn(char) -> String) -> Result<Value, Problem> {
    let mut changed = String::with_capacity(text.len());
    for character in text.chars() {
        let mapped = change(character);
        if mapped.chars().count() != 1 {
            return Err(Problem::Unsupported("a letter whose other case is more than one letter".into()));
        }
        changed.push_str(&mapped);
    }
    Ok(Value::string(changed))
}

fn join(args: &[Value]) -> Result<Value, Problem> {
    let lists = &args[1..];
    if lists.is_empty() {
        return Err(Problem::Call("at least one list is required".into()));
    }
    if !lists.iter().all(Value::is_wholly_known) {
        return Ok(Value::unknown_not_null(Type::String));
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
    Ok(Value::string(items.join(text(&args[0]))))
}

fn split(args: &[Value]) -> Result<Value, Problem> {
    let (separator, whole) = (text(&args[0]), text(&args[1]));
    let parts: Vec<Value> = if separator.is_empty() {
        whole.chars().map(|character| Value::string(character.to_string())).collect()
    } else {
        whole.split(separator).map(Value::string).collect()
    };
    Ok(Value::list(Type::String, parts))
}

/// A known beginning of an unknown string may be enough to decide.
fn starts_with(args: &[Value]) -> Result<Value, Problem> {
    let (whole, mut marks) = args[0].clone().unmark();
    let (prefix, prefix_marks) = args[1].clone().unmark();
    marks.extend(prefix_marks);
    let result = match (&whole.data, prefix.as_str()) {
        (_, None) => None,
        (Data::Unknown(_), Some("")) => Some(true),
        (Data::Unknown(refinement), Some(prefix)) => {
            let known = refinement.string_prefix.as_deref().unwrap_or_default();
            if !known.is_empty() && known.starts_with(prefix) {
                Some(true)
            } else if !known.is_empty() && known.len() >= prefix.len() {
                Some(false)
            } else {
                None
            }
        }
        (_, Some(prefix)) => Some(text(&whole).starts_with(prefix)),
    };
    Ok(result.map_or_else(|| Value::unknown_not_null(Type::Bool), Value::bool).with_marks(&marks))
}

/// How many characters, as people see them, a string has or will at least have.
pub(super) fn length(value: &Value) -> Value {
    match &value.data {
        Data::Unknown(refinement) => {
            let known = refinement.string_prefix.as_deref().unwrap_or_default().graphemes(true).count();
            let number_min = Some((known.into(), true));
            Value::unknown_refined(Type::Number, Refinement { number_min, ..Refinement::not_null() })
        }
        _ => Value::number(text(value).graphemes(true).count()),
    }
}
