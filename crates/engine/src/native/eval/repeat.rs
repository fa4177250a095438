//! How many instances `count` and `for_each` make.

use std::collections::BTreeMap;

use landform_cty::{Mark, Number, Type, Value};
use landform_lang::{Blame, Expr, Repetition, described};

use super::scope::At;
use super::values::Keys;
use crate::native::config::range;
use crate::native::object::Outcome;
use crate::{Diagnostic, Seen};

/// More instances than this are a mistake, and each costs memory in a process that serves others too.
const MAX_INSTANCES: u64 = 100_000;

/// What is repeated: its address, if a plan can leave it out, and whether a tuple will do, as it does for an import.
#[derive(Clone, Copy)]
pub struct Whose<'a>(pub Option<&'a str>, pub bool);

pub fn keys(repetition: &Repetition, scope: &At<'_>, whose: Whose<'_>) -> Outcome<Keys> {
    match repetition {
        Repetition::Once => Ok(Keys::Once),
        Repetition::Count(expr) => count(expr, scope, whose).map(Keys::Count),
        Repetition::ForEach(expr) => for_each(expr, scope, whose).map(Keys::Each),
        Repetition::Enabled(expr) => enabled(expr, scope).map(|on| if on { Keys::Once } else { Keys::Off }),
    }
}

/// The instances before any value is known.
pub fn any_keys(repetition: &Repetition) -> Keys {
    match repetition {
        Repetition::Once | Repetition::Enabled(_) => Keys::Once,
        Repetition::Count(_) => Keys::AnyCount,
        Repetition::ForEach(_) => Keys::AnyEach,
    }
}

/// What is wrong with a repetition whatever the inputs are.
pub fn check(repetition: &Repetition, scope: &At<'_>, whose: Whose<'_>) -> Outcome<()> {
    match repetition {
        Repetition::Once | Repetition::Enabled(_) => Ok(()),
        Repetition::Count(expr) => {
            let value = counted(expr, scope)?;
            value.as_number().map_or(Ok(()), |number| whole(number, expr, scope).map(drop))
        }
        Repetition::ForEach(expr) => {
            let value = repeated(expr, scope, whose)?;
            if value.is_wholly_known() { pairs(&value, expr, scope).map(drop) } else { Ok(()) }
        }
    }
}

fn invalid(summary: &str, detail: &str, expr: &Expr, scope: &At<'_>) -> Vec<Diagnostic> {
    because(Blame::Neither, summary, detail, expr, scope)
}

fn because(blame: Blame, summary: &str, detail: &str, expr: &Expr, scope: &At<'_>) -> Vec<Diagnostic> {
    let seen = Box::new(Seen { values: described(expr, scope, blame), ..Seen::default() });
    vec![Diagnostic { range: Some(range(expr.range())), seen, ..Diagnostic::error(summary, detail) }]
}

/// A bool that a plan must know.
fn enabled(expr: &Expr, scope: &At<'_>) -> Outcome<bool> {
    let wrong = |detail: &str| invalid("Invalid enabled argument", detail, expr, scope);
    // OpenTofu takes it for the cause of a secret, too.
    let not_known_yet = |detail: &str| because(Blame::Unknown, "Invalid enabled argument", detail, expr, scope);
    let unsuitable = |why: &str| wrong(&format!("The given \"enabled\" argument value is unsuitable: {why}."));
    let value = scope.evaluate(expr)?;
    let mut found = Vec::new();
    if value.has_mark(Mark::Sensitive) {
        found.extend(not_known_yet(
            "Sensitive values, or values derived from sensitive values, cannot be used in \"enabled\" arguments. If used, the \
             sensitive value would be exposed by whether an instance is present.",
        ));
    }
    if value.has_mark(Mark::Ephemeral) {
        found.extend(unsuitable("the given value is ephemeral"));
    }
    if value.is_null() {
        found.extend(unsuitable("the given value is null"));
    }
    if !value.is_known() {
        found.extend(not_known_yet(
            "The given \"enabled\" argument value is derived from a value that won't be known until the apply phase, so \
             OpenTofu cannot determine whether an instance of this object is declared or not.",
        ));
    }
    if !found.is_empty() {
        return Err(found);
    }
    let value = value.convert(&Type::Bool).map_err(|error| unsuitable(&error.to_string()))?;
    Ok(value.as_bool().unwrap_or_default())
}

fn count(expr: &Expr, scope: &At<'_>, whose: Whose<'_>) -> Outcome<u64> {
    let value = counted(expr, scope)?;
    let Some(number) = value.as_number() else {
        let detail = format!(
            "The \"count\" value depends on resource attributes that cannot be determined until apply, so OpenTofu cannot \
             predict how many instances will be created.\n\nTo work around this, use the planning option -exclude={} to first \
             apply without this object, and then apply normally to converge.",
            as_argument(whose.0.unwrap_or_default())
        );
        // Nothing is said of the values in the expression.
        let problem = Diagnostic::error("Invalid count argument", detail);
        return Err(vec![Diagnostic { range: Some(range(expr.range())), ..problem }]);
    };
    whole(number, expr, scope)
}

/// An address as it is given to a program by a shell.
fn as_argument(address: &str) -> String {
    if address.is_empty() || address.contains([' ', '\n', '\t']) {
        return format!("'{}'", address.replace('\'', "'\\''"));
    }
    let special = |character: char| "|&;<>(){}[]$`\\\"'*?!#~=%".contains(character);
    let written = |character: char| [special(character).then_some('\\'), Some(character)].into_iter().flatten();
    address.chars().flat_map(written).collect()
}

/// A number, which may be unknown.
fn counted(expr: &Expr, scope: &At<'_>) -> Outcome<Value> {
    let invalid = |detail: &str| invalid("Invalid count argument", detail, expr, scope);
    let value = scope.evaluate(expr)?;
    if value.contains_mark(Mark::Ephemeral) {
        let detail = "Ephemeral values, or values derived from ephemeral values, cannot be used as count arguments. If \
                      used, the ephemeral value could be exposed as a resource instance key.";
        return Err(invalid(detail));
    }
    let value = value.unmark_deep().0;
    let value = value.convert(&Type::Number).map_err(|error| {
        let mut problems = invalid(&format!("Invalid expression value: {error}."));
        problems.iter_mut().for_each(|problem| problem.summary = "Incorrect value type".to_owned());
        problems
    })?;
    if value.is_null() {
        return Err(invalid("The given \"count\" argument value is null. An integer is required."));
    }
    Ok(value)
}

fn whole(number: &Number, expr: &Expr, scope: &At<'_>) -> Outcome<u64> {
    let invalid = |detail: &str| invalid("Invalid count argument", detail, expr, scope);
    match number.to_string().parse::<u64>() {
        Ok(count) if count <= MAX_INSTANCES => Ok(count),
        Ok(_) => Err(invalid("The given \"count\" argument value is too large.")),
        Err(_) if number.is_integer() && number.is_negative() => {
            Err(invalid("The given \"count\" argument value is unsuitable: must be greater than or equal to zero."))
        }
        Err(_) => Err(invalid(
            "The given \"count\" argument value is unsuitable: value must be a whole number, between -9223372036854775808 and \
             9223372036854775807.",
        )),
    }
}

fn for_each(expr: &Expr, scope: &At<'_>, whose: Whose<'_>) -> Outcome<BTreeMap<String, Value>> {
    let value = repeated(expr, scope, whose).map_err(|found| not_known_either(found, expr, scope, whose))?;
    let is_set = matches!(value.ty, Type::Set(_));
    if !value.is_known() || (is_set && !value.is_wholly_known()) {
        let (what, instead) = match &value.ty {
            Type::Set(_) => ("set includes values derived from", VALUES),
            Type::Dynamic => return Err(because(Blame::Unknown, UNSUITABLE, &not_known(whose), expr, scope)),
            Type::Tuple(_) => ("tuple includes values derived from", VALUES),
            _ => ("map includes keys derived from", KEYS),
        };
        let detail = format!(
            "The \"for_each\" {what} resource attributes that cannot be determined until apply, and so OpenTofu cannot \
             determine the full set of keys that will identify the instances of this resource.\n\n{instead}\n\n{}",
            exclude(whose)
        );
        return Err(because(Blame::Unknown, UNSUITABLE, &detail, expr, scope));
    }
    pairs(&value, expr, scope)
}

const UNSUITABLE: &str = "Invalid for_each argument";
const VALUES: &str = "When working with unknown values in for_each, it's better to use a map value where the keys are defined \
                      statically in your configuration and where only the values contain apply-time results.";
const KEYS: &str = "When working with unknown values in for_each, it's better to define the map keys statically in your \
                    configuration and place apply-time results only in the map values.";

fn exclude(whose: Whose<'_>) -> String {
    match whose {
        Whose(None, _) => {
            "Alternatively, you could use the -target option to first apply only the resources that for_each \
                         depends on, and then apply normally to converge."
                .to_owned()
        }
        Whose(Some(address), _) => format!(
            "Alternatively, you could use the planning option -exclude={} to first apply without this object, and then apply \
             normally to converge.",
            as_argument(address)
        ),
    }
}

fn not_known(whose: Whose<'_>) -> String {
    format!(
        "The \"for_each\" value includes keys or set values from resource attributes that cannot be determined until apply, \
         and so OpenTofu cannot determine what will identify the instances of this resource.\n\n{KEYS}\n\n{}",
        exclude(whose)
    )
}

/// What cannot be evaluated has no known keys, and OpenTofu says that, too.
fn not_known_either(mut found: Vec<Diagnostic>, expr: &Expr, scope: &At<'_>, whose: Whose<'_>) -> Vec<Diagnostic> {
    let evaluated = |one: &Diagnostic| one.summary != UNSUITABLE && !one.summary.starts_with("Reference to undeclared");
    if !expr.is_object() && found.iter().all(evaluated) {
        found.extend(because(Blame::Unknown, UNSUITABLE, &not_known(whose), expr, scope));
    }
    found
}

/// A map or a set, which may be unknown.
fn repeated(expr: &Expr, scope: &At<'_>, whose: Whose<'_>) -> Outcome<Value> {
    let invalid = |detail: &str| invalid("Invalid for_each argument", detail, expr, scope);
    let value = scope.evaluate(expr)?;
    for (mark, kind) in [(Mark::Sensitive, "sensitive"), (Mark::Ephemeral, "ephemeral")] {
        if value.has_mark(mark) {
            let first = if mark == Mark::Sensitive { "Sensitive" } else { "Ephemeral" };
            let detail = format!(
                "{first} values, or values derived from {kind} values, cannot be used as for_each arguments. If used, the \
                 {kind} value could be exposed as a resource instance key."
            );
            return Err(because(Blame::Confidential, UNSUITABLE, &detail, expr, scope));
        }
    }
    if value.is_null() {
        return Err(invalid(
            "The given \"for_each\" argument value is unsuitable: the given \"for_each\" argument value is null.",
        ));
    }
    let suitable = match &value.ty {
        Type::Map(_) | Type::Object { .. } | Type::Dynamic => true,
        Type::Tuple(_) => whose.1,
        Type::Set(element) if !matches!(**element, Type::String | Type::Dynamic) => {
            return Err(invalid(&format!(
                "The given \"for_each\" argument value is unsuitable: \"for_each\" supports sets of strings, but you have \
                 provided a set containing type {}.",
                element.friendly_name()
            )));
        }
        Type::Set(_) => true,
        _ => false,
    };
    if !suitable {
        return Err(invalid(&format!(
            "The given \"for_each\" argument value is unsuitable: the \"for_each\" argument must be a {}, and you have \
             provided a value of type {}.",
            if whose.1 { "map, set of strings, or a tuple" } else { "map, or set of strings" },
            value.ty.friendly_name()
        )));
    }
    Ok(value)
}

fn pairs(value: &Value, expr: &Expr, scope: &At<'_>) -> Outcome<BTreeMap<String, Value>> {
    let invalid = |detail: &str| invalid("Invalid for_each argument", detail, expr, scope);
    let pairs: BTreeMap<String, Value> = match (value.as_sequence(), value.as_mapping()) {
        (_, Some(fields)) => fields.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        (Some(elements), _) if matches!(value.ty, Type::Tuple(_)) => {
            elements.iter().enumerate().map(|(index, element)| (index.to_string(), element.clone())).collect()
        }
        (Some(elements), _) => {
            let mut pairs = BTreeMap::new();
            for element in elements {
                if element.is_null() {
                    return Err(invalid(
                        "The given \"for_each\" argument value is unsuitable: \"for_each\" sets must not contain null \
                         values.",
                    ));
                }
                let Some(key) = element.as_str() else {
                    return Err(invalid("The given \"for_each\" argument value is unsuitable: a string is required."));
                };
                pairs.insert(key.to_owned(), element.clone());
            }
            pairs
        }
        _ => BTreeMap::new(),
    };
    if pairs.len() as u64 > MAX_INSTANCES {
        return Err(invalid("The given \"for_each\" argument value is too large."));
    }
    Ok(pairs)
}
