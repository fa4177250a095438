use std::collections::BTreeMap;

use landform_cty::{Data, Mark, Refinement};

use super::*;
use crate::Cause;

/// Variables by name; anything else does not exist.
#[derive(Default)]
struct Variables(BTreeMap<&'static str, Value>);

impl Scope for Variables {
    fn resolve(&self, reference: &Reference) -> Result<Value, Diagnostic> {
        match reference {
            Reference::Variable(name) => self.0.get(name.as_str()).cloned(),
            _ => None,
        }
        .ok_or_else(|| Diagnostic::new("Unknown reference", reference.to_string()))
    }
}

fn scope() -> Variables {
    Variables(BTreeMap::from([
        ("unknown", Value::unknown(Type::String)),
        ("unknown_list", Value::unknown(Type::list(Type::String))),
        ("unknown_bool", Value::unknown(Type::Bool)),
        ("dynamic", Value::unknown(Type::Dynamic)),
        ("secret", Value::from("s3cret").with_mark(Mark::Sensitive)),
        ("secret_list", Value::tuple(vec![Value::from("s3cret").with_mark(Mark::Sensitive), Value::from("b")])),
        ("null", Value::null(Type::String)),
    ]))
}

fn try_eval(text: &str) -> Result<Value, Diagnostics> {
    evaluate(&Expr::parse("test", text)?, &scope(), &mut Budget::default())
}

fn eval(text: &str) -> Value {
    try_eval(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refinement(value: &Value) -> Refinement {
    match &value.data {
        Data::Unknown(refinement) => (**refinement).clone(),
        _ => panic!("{value:?} is known"),
    }
}

#[test]
fn unknown_values_travel_and_keep_what_is_known() {
    let text = eval(r#""id-${var.unknown}-x""#);
    assert_eq!(refinement(&text).string_prefix.as_deref(), Some("id-"));
    assert_eq!(refinement(&text).nullable, Some(false));
    assert_eq!(refinement(&eval(r#""name${var.unknown}""#)).string_prefix.as_deref(), Some("nam"));
    assert_eq!(eval("var.unknown").ty, Type::String);
    assert_eq!(eval("var.unknown == null").ty, Type::Bool);
    assert!(!eval("var.unknown == null").is_known());
    assert_eq!(eval("[var.unknown, 1]").at(1), Some(&Value::number(1)));
    assert_eq!(eval("var.unknown_list[0]"), Value::unknown(Type::String));
    assert_eq!(eval("var.unknown_list[*]").ty, Type::list(Type::String));
    assert_eq!(eval("[for x in var.unknown_list: x]"), Value::unknown(Type::Dynamic));
    assert_eq!(eval("var.dynamic.anything[0]"), Value::unknown(Type::Dynamic));
    let length = refinement(&eval("length(var.unknown_list)"));
    assert_eq!(length.number_min, Some((0.into(), true)));
    assert_eq!(refinement(&eval("jsonencode({ a = var.unknown })")).string_prefix.as_deref(), Some("{"));
    assert_eq!(refinement(&eval(r#"format("web-%s", var.unknown)"#)).string_prefix.as_deref(), Some("web-"));
}

#[test]
fn logic_is_decided_by_one_side_if_it_can_be() {
    assert_eq!(eval("var.unknown_bool && false"), Value::bool(false));
    assert_eq!(eval("true || var.unknown_bool"), Value::bool(true));
    assert!(!eval("true && var.unknown_bool").is_known());
    assert_eq!(eval("true || 1 / \"x\" == 1"), Value::bool(true));
}

#[test]
fn a_conditional_has_one_type_even_while_the_condition_is_unknown() {
    assert_eq!(eval("var.unknown_bool ? 1 : \"a\"").ty, Type::String);
    let number = refinement(&eval("var.unknown_bool ? 1 : 5"));
    assert_eq!(number.number_min, Some((1.into(), true)));
    assert_eq!(number.number_max, Some((5.into(), true)));
    assert_eq!(eval("true ? 1 : \"a\""), Value::from("1"));
    assert_eq!(eval("true ? 1 : {}.nothing"), Value::number(1));
    assert_eq!(eval("false ? 1 : null"), Value::null(Type::Number));
}

#[test]
fn marks_travel_with_everything_made_from_them() {
    for text in [
        "var.secret",
        "\"x${var.secret}\"",
        "upper(var.secret)",
        "var.secret == \"a\"",
        "true ? var.secret : \"b\"",
        "length(var.secret)",
        "{ (var.secret) = 1 }",
        "jsonencode(var.secret_list)",
        "join(\",\", var.secret_list)",
        "var.secret_list[0]",
        "[for x in [1]: x if var.secret != \"\"]",
    ] {
        assert!(eval(text).has_mark(Mark::Sensitive), "{text}");
    }
    for text in
        ["var.secret_list", "var.secret_list[1]", "length(var.secret_list)", "[var.secret]", "nonsensitive(var.secret)"]
    {
        assert!(!eval(text).has_mark(Mark::Sensitive), "{text}");
    }
    assert!(eval("[var.secret]").contains_mark(Mark::Sensitive));
    assert!(eval("concat(var.secret_list, [1])").contains_mark(Mark::Sensitive));
}

#[test]
fn mistakes_say_what_and_where() {
    for (text, message) in [
        ("1 + null", "test:1,1: Operation failed: Error during operation: argument must not be null."),
        (
            "\"a${null}\"",
            "test:1,5: Invalid template interpolation value: The expression result is null. Cannot include a null value in a string template.",
        ),
        (
            "[1][1]",
            "test:1,4: Invalid index: The given key does not identify an element in this collection value: the given index is greater than or equal to the length of the collection.",
        ),
        (
            "upper(null)",
            "test:1,7: Invalid function argument: Invalid value for \"str\" parameter: argument must not be null.",
        ),
        (
            "upper()",
            "test:1,7: Not enough function arguments: Function \"upper\" expects 1 argument(s). Missing value for \"str\".",
        ),
        (
            "var.null.x",
            "test:1,9: Attempt to get attribute from null value: This value is null, so it does not have any attributes.",
        ),
        (
            "true ? [] : {}",
            "test:1,8: Inconsistent conditional result types: The true and false result expressions must have consistent types. The 'true' value is tuple, but the 'false' value is object.",
        ),
    ] {
        assert_eq!(try_eval(text).unwrap_err().to_string(), message);
    }
}

#[test]
fn what_is_not_certain_is_unsupported_and_not_wrong() {
    for text in ["base64gzip(\"a\")", "1 / 0", "pow(2, 1.5)", "timestamp()", "file(\"x\")", "a::b()", "ephemeral.a.b"] {
        assert_eq!(try_eval(text).unwrap_err().0[0].cause, Cause::Unsupported, "{text}");
    }
}

#[test]
fn budgets_end_what_grows_without_end() {
    let limited = |text: &str, mut budget: Budget| {
        evaluate(&Expr::parse("test", text).unwrap(), &scope(), &mut budget).unwrap_err().0[0].cause
    };
    let nested = format!("[for a in range(1000): {}]", "[for b in range(1000): [for c in range(1000): b]]");
    assert_eq!(limited(&nested, Budget::new(100_000, 1 << 20, 100)), Cause::Limit);
    assert_eq!(
        limited("join(\"aaaaaaaaaaaaaaaaaaaa\", [for a in range(1000): a])", Budget::new(100_000, 1000, 100)),
        Cause::Limit
    );
    assert_eq!(limited("[[[[[[[[[[1]]]]]]]]]]", Budget::new(1000, 1000, 5)), Cause::Limit);
    assert_eq!(limited(&format!("[1]{}", "[*]".repeat(5000)), Budget::default()), Cause::Limit);
}

#[test]
fn deep_input_is_refused_and_does_not_exhaust_the_stack() {
    for text in [
        "[".repeat(100_000),
        "(".repeat(100_000),
        "{a=".repeat(100_000),
        "!".repeat(100_000) + "true",
        "-".repeat(100_000) + "1",
        "true ? 1 : ".repeat(20_000) + "1",
        "1".to_owned() + &"+1".repeat(100_000),
        "\"${".repeat(50_000),
        "upper(".repeat(50_000),
        "[for a in ".repeat(50_000),
    ] {
        assert!(Expr::parse("test", &text).is_err(), "{}", &text[..20]);
    }
}

#[test]
fn references_are_found_but_not_names_that_a_for_binds() {
    let expr =
        Expr::parse("test", "[for x in local.a: \"${x.b}-${var.c}-${time_static.d.id}\" if x != count.index]").unwrap();
    let found: Vec<String> = crate::references(&expr).iter().map(ToString::to_string).collect();
    assert_eq!(found, ["local.a", "var.c", "time_static.d", "count.index"]);
}
