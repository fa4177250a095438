use landform_cty::{Refinement, Type, Value};

use super::{Body, Function, Kind, Parameter, Problem, all_marks, text};

static JSONENCODE: Function =
    Function { parameters: &[Parameter::nullable("val", Kind::Dynamic)], rest: None, body: Body::Careful(json_encode) };
static JSONDECODE: Function =
    Function { parameters: &[Parameter::new("str", Kind::String)], rest: None, body: Body::Careful(json_decode) };

pub(super) fn find(name: &str) -> Option<&'static Function> {
    Some(match name {
        "jsonencode" => &JSONENCODE,
        "jsondecode" => &JSONDECODE,
        _ => return None,
    })
}

fn json_encode(args: &[Value]) -> Result<Value, Problem> {
    let marks = all_marks(args);
    let value = args[0].clone().unmark_deep().0;
    if !value.is_wholly_known() {
        // The first character already tells what kind of value it will be, unless it may be a null.
        let prefix = match &value.ty {
            _ if !value.is_definitely_not_null() => None,
            Type::String => Some("\""),
            Type::Object { .. } | Type::Map(_) => Some("{"),
            Type::Tuple(_) | Type::List(_) | Type::Set(_) => Some("["),
            _ => None,
        };
        let refinement = Refinement { string_prefix: prefix.map(str::to_owned), ..Refinement::not_null() };
        return Ok(Value::unknown_refined(Type::String, refinement).with_marks(&marks));
    }
    let json = value.to_plain_json().map_err(|error| Problem::Call(error.to_string()))?;
    // Go's encoder escapes what could harm inside HTML; these characters occur inside strings only.
    let escaped = json
        .to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029");
    Ok(Value::string(escaped).with_marks(&marks))
}

fn json_decode(args: &[Value]) -> Result<Value, Problem> {
    let marks = all_marks(args);
    if !args[0].is_known() {
        return Ok(Value::unknown(Type::Dynamic).with_marks(&marks));
    }
    let json: serde_json::Value =
        serde_json::from_str(text(&args[0])).map_err(|error| Problem::Argument(0, error.to_string()))?;
    let value = Value::from_plain_json(&json).map_err(|error| Problem::Argument(0, error.to_string()))?;
    Ok(value.with_marks(&marks))
}
