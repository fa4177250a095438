//! How many instances `count` and `for_each` make.

use std::collections::BTreeMap;

use landform_cty::{Mark, Number, Type, Value};
use landform_lang::{Expr, Repetition, described};

use super::scope::At;
use super::values::Keys;
use crate::native::config::range;
use crate::native::object::Outcome;
use crate::{Diagnostic, Seen};

/// More instances than this are a mistake, and each costs memory in a process that serves others too.
const MAX_INSTANCES: u64 = 100_000;

pub fn keys(repetition: &Repetition, scope: &At<'_>) -> Outcome<Keys> {
    match repetition {
        Repetition::Once => Ok(Keys::Once),
        Repetition::Count(expr) => count(expr, scope).map(Keys::Count),
        Repetition::ForEach(expr) => for_each(expr, scope).map(Keys::Each),
        Repetition::Enabled(expr) => flag(expr, scope, "enabled").map(|on| if on { Keys::Once } else { Keys::Off }),
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
pub fn check(repetition: &Repetition, scope: &At<'_>) -> Outcome<()> {
    match repetition {
        Repetition::Once | Repetition::Enabled(_) => Ok(()),
        Repetition::Count(expr) => {
            let value = counted(expr, scope)?;
            value.as_number().map_or(Ok(()), |number| whole(number, expr, scope).map(drop))
        }
        Repetition::ForEach(expr) => {
            let value = repeated(expr, scope)?;
            if value.is_wholly_known() { pairs(&value, expr, scope).map(drop) } else { Ok(()) }
        }
    }
}

fn invalid(summary: &str, detail: &str, expr: &Expr, scope: &At<'_>) -> Vec<Diagnostic> {
    let seen = Box::new(Seen { values: described(expr, scope), ..Seen::default() });
    vec![Diagnostic { range: Some(range(expr.range())), seen, ..Diagnostic::error(summary, detail) }]
}

/// A bool that a plan must know: `enabled` and `prevent_destroy`.
pub fn flag(expr: &Expr, scope: &At<'_>, name: &str) -> Outcome<bool> {
    let summary =
        if name == "enabled" { "Invalid enabled argument".to_owned() } else { format!("Invalid value for {name}") };
    let wrong = |detail: String| invalid(&summary, &detail, expr, scope);
    let value = scope.evaluate(expr)?;
    if value.contains_mark(Mark::Sensitive) || value.contains_mark(Mark::Ephemeral) {
        return Err(wrong(format!(
            "Sensitive and ephemeral values cannot be used for {name}: they would be disclosed."
        )));
    }
    let value =
        value.convert(&Type::Bool).map_err(|error| wrong(format!("The value of {name} is unsuitable: {error}.")))?;
    if value.is_null() {
        return Err(wrong(format!("The value of {name} must not be null.")));
    }
    value.as_bool().ok_or_else(|| wrong(format!("The value of {name} cannot be determined until apply.")))
}

fn count(expr: &Expr, scope: &At<'_>) -> Outcome<u64> {
    let value = counted(expr, scope)?;
    let Some(number) = value.as_number() else {
        let detail = "The \"count\" value depends on resource attributes that cannot be determined until apply, so \
                      OpenTofu cannot predict how many instances will be created. To work around this, use the -target \
                      argument to first apply only the resources that the count depends on.";
        return Err(invalid("Invalid count argument", detail, expr, scope));
    };
    whole(number, expr, scope)
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
        Err(_) => {
            Err(invalid("The given \"count\" argument value is unsuitable: it must be a whole number, zero or more."))
        }
    }
}

fn for_each(expr: &Expr, scope: &At<'_>) -> Outcome<BTreeMap<String, Value>> {
    let value = repeated(expr, scope).map_err(|found| not_known_either(found, expr, scope))?;
    let is_set = matches!(value.ty, Type::Set(_));
    if !value.is_known() || (is_set && !value.is_wholly_known()) {
        let what = if is_set { "set includes values derived from" } else { "map includes keys derived from" };
        let detail = format!(
            "The \"for_each\" {what} resource attributes that cannot be determined until apply, and so OpenTofu cannot \
             determine the full set of keys that will identify the instances of this resource."
        );
        return Err(invalid("Invalid for_each argument", &detail, expr, scope));
    }
    pairs(&value, expr, scope)
}

/// What cannot be evaluated has no known keys, and OpenTofu says that, too.
fn not_known_either(mut found: Vec<Diagnostic>, expr: &Expr, scope: &At<'_>) -> Vec<Diagnostic> {
    let summary = "Invalid for_each argument";
    let evaluated = |one: &Diagnostic| one.summary != summary && !one.summary.starts_with("Reference to undeclared");
    if !expr.is_object() && found.iter().all(evaluated) {
        let detail = "The \"for_each\" value includes keys or set values from resource attributes that cannot be determined \
                      until apply, and so OpenTofu cannot determine what will identify the instances of this resource.";
        found.extend(invalid(summary, detail, expr, scope));
    }
    found
}

/// A map or a set, which may be unknown.
fn repeated(expr: &Expr, scope: &At<'_>) -> Outcome<Value> {
    let invalid = |detail: &str| invalid("Invalid for_each argument", detail, expr, scope);
    let value = scope.evaluate(expr)?;
    if value.has_mark(Mark::Sensitive) || value.has_mark(Mark::Ephemeral) {
        return Err(invalid(
            "Sensitive values, or values derived from sensitive values, cannot be used as for_each arguments. If used, the \
             sensitive value could be exposed as a resource instance key.",
        ));
    }
    if value.is_null() {
        return Err(invalid(
            "The given \"for_each\" argument value is unsuitable: the given \"for_each\" argument value is null. A map, or \
             set of strings is allowed.",
        ));
    }
    if !matches!(value.ty, Type::Set(_) | Type::Map(_) | Type::Object { .. } | Type::Dynamic) {
        return Err(invalid(&format!(
            "The given \"for_each\" argument value is unsuitable: the \"for_each\" argument must be a map, or set of \
             strings, and you have provided a value of type {}.",
            value.ty.friendly_name()
        )));
    }
    Ok(value)
}

fn pairs(value: &Value, expr: &Expr, scope: &At<'_>) -> Outcome<BTreeMap<String, Value>> {
    let invalid = |detail: &str| invalid("Invalid for_each argument", detail, expr, scope);
    let pairs: BTreeMap<String, Value> = match (value.as_sequence(), value.as_mapping()) {
        (_, Some(fields)) => fields.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
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
                    return Err(invalid(&format!(
                        "The given \"for_each\" argument value is unsuitable: \"for_each\" supports maps and sets of \
                         strings, but you have provided a set containing type {}.",
                        element.ty.friendly_name()
                    )));
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
