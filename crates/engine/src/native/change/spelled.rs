//! Values as Go writes them: OpenTofu's messages about faults of providers have them in this form.

use landform_cty::{Data, Type, Value};

/// `cty.StringVal("x")`.
pub fn spelled(value: &Value) -> String {
    let each = |values: Vec<String>| values.join(", ");
    match &value.data {
        _ if value.is_null() => format!("cty.NullVal({})", spelled_type(&value.ty)),
        Data::Unknown(_) if value.ty == Type::Dynamic => "cty.DynamicVal".to_owned(),
        Data::Unknown(_) => format!("cty.UnknownVal({})", spelled_type(&value.ty)),
        Data::Bool(true) => "cty.True".to_owned(),
        Data::Bool(false) => "cty.False".to_owned(),
        Data::Number(number) => match number.to_i64() {
            Some(whole) => format!("cty.NumberIntVal({whole})"),
            None => match number.to_string() {
                text if text.contains('.') && text.len() <= 17 => format!("cty.NumberFloatVal({text})"),
                text => format!("cty.MustParseNumberVal({text:?})"),
            },
        },
        Data::String(text) => format!("cty.StringVal({})", crate::native::quoted(text)),
        _ => {
            let (kind, empty) = match &value.ty {
                Type::List(element) => ("List", Some(element)),
                Type::Set(element) => ("Set", Some(element)),
                Type::Map(element) => ("Map", Some(element)),
                Type::Tuple(_) => ("Tuple", None),
                _ => ("Object", None),
            };
            match (value.as_sequence(), value.as_mapping()) {
                (Some([]), _) if kind == "Tuple" => "cty.EmptyTupleVal".to_owned(),
                (_, Some(fields)) if fields.is_empty() && kind == "Object" => "cty.EmptyObjectVal".to_owned(),
                (Some(elements), _) if !elements.is_empty() => {
                    let elements = each(elements.iter().map(spelled).collect());
                    format!("cty.{kind}Val([]cty.Value{{{elements}}})")
                }
                (_, Some(fields)) if !fields.is_empty() => {
                    let field = |(name, value): (&String, &Value)| {
                        format!("{}:{}", crate::native::quoted(name), spelled(value))
                    };
                    format!("cty.{kind}Val(map[string]cty.Value{{{}}})", each(fields.iter().map(field).collect()))
                }
                _ => format!("cty.{kind}ValEmpty({})", empty.map(|element| spelled_type(element)).unwrap_or_default()),
            }
        }
    }
}

fn spelled_type(ty: &Type) -> String {
    match ty {
        Type::Dynamic => "cty.DynamicPseudoType".to_owned(),
        Type::Bool => "cty.Bool".to_owned(),
        Type::Number => "cty.Number".to_owned(),
        Type::String => "cty.String".to_owned(),
        Type::List(element) => format!("cty.List({})", spelled_type(element)),
        Type::Set(element) => format!("cty.Set({})", spelled_type(element)),
        Type::Map(element) => format!("cty.Map({})", spelled_type(element)),
        Type::Tuple(types) if types.is_empty() => "cty.EmptyTuple".to_owned(),
        Type::Tuple(types) => {
            format!("cty.Tuple([]cty.Type{{{}}})", types.iter().map(spelled_type).collect::<Vec<_>>().join(", "))
        }
        Type::Object { attributes, .. } if attributes.is_empty() => "cty.EmptyObject".to_owned(),
        Type::Object { attributes, .. } => {
            let field = |(name, ty): (&String, &Type)| format!("{name:?}:{}", spelled_type(ty));
            format!(
                "cty.Object(map[string]cty.Type{{{}}})",
                attributes.iter().map(field).collect::<Vec<_>>().join(", ")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_spelled_as_in_go() {
        let list = Value::tuple(vec![Value::string("a"), Value::bool(true)]);
        assert_eq!(spelled(&list), "cty.TupleVal([]cty.Value{cty.StringVal(\"a\"), cty.True})");
        assert_eq!(spelled(&Value::null(Type::list(Type::String))), "cty.NullVal(cty.List(cty.String))");
        assert_eq!(spelled(&Value::unknown(Type::Number)), "cty.UnknownVal(cty.Number)");
    }
}
