//! Conditions that must hold, and what became of them.

use std::collections::BTreeMap;

use landform_cty::{Mark, Type, Value};
use landform_lang::{Blame, Validation, described, sides_of_equality};
use serde::{Deserialize, Serialize};

use super::scope::At;
use crate::native::config::range;
use crate::native::object::Outcome;
use crate::native::show::difference;
use crate::{Diagnostic, Seen, Severity};

/// What a condition is about, in the words of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Var,
    Resource,
    Output,
    Check,
}

/// In the order in which several results are summed up: the worst one counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    #[default]
    Pass,
    Unknown,
    Fail,
    Error,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    pub status: Status,
    pub failures: Vec<String>,
}

/// The results for all instances of something; nothing until it is known which there are. An instance has no result until
/// its conditions are looked at.
pub type Objects = Option<BTreeMap<String, Option<Checked>>>;

/// The results of all conditions, by what they are about, as the configuration names it.
#[derive(Clone, Debug, Default)]
pub struct Checks(pub BTreeMap<(Kind, String), Objects>);

impl Checks {
    /// The same objects, before any of their conditions is looked at.
    pub fn not_looked_at(&self) -> Checks {
        let objects = |objects: &Objects| {
            objects.as_ref().map(|objects| objects.keys().map(|object| (object.clone(), None)).collect())
        };
        Checks(self.0.iter().map(|(about, known)| (about.clone(), objects(known))).collect())
    }

    /// Something in the configuration has conditions.
    pub fn declare(&mut self, kind: Kind, config: String) {
        self.0.entry((kind, config)).or_default();
    }

    /// It is known which instances there are, even if there is none.
    pub fn expand(&mut self, kind: Kind, config: String, instances: impl IntoIterator<Item = String>) {
        if let Some(objects) = self.0.get_mut(&(kind, config)) {
            let objects = objects.get_or_insert_default();
            for instance in instances {
                objects.entry(instance).or_default();
            }
        }
    }

    /// Several conditions of one object are one result.
    pub fn record(&mut self, kind: Kind, config: String, object: String, checked: Checked) {
        let objects = self.0.entry((kind, config)).or_default().get_or_insert_default();
        let known = objects.entry(object).or_default().get_or_insert_default();
        known.status = known.status.max(checked.status);
        known.failures.extend(checked.failures);
    }

    /// Whether it is known already that a condition of this object does not hold.
    pub fn failed(&self, kind: Kind, config: &str, object: &str) -> bool {
        let objects = self.0.get(&(kind, config.to_owned())).and_then(Option::as_ref);
        let checked = objects.and_then(|objects| objects.get(object)).and_then(Option::as_ref);
        checked.is_some_and(|checked| checked.status >= Status::Fail)
    }

    pub fn status(objects: &Objects) -> Status {
        match objects {
            None => Status::Unknown,
            Some(objects) => objects.values().map(status).max().unwrap_or_default(),
        }
    }
}

/// The status of one object.
pub fn status(checked: &Option<Checked>) -> Status {
    checked.as_ref().map_or(Status::Unknown, |checked| checked.status)
}

/// Several diagnostics in one text, as OpenTofu writes it where a check is to say why it failed.
pub fn as_one_text(found: &[Diagnostic]) -> String {
    let text = |diagnostic: &Diagnostic| match diagnostic.detail.as_str() {
        "" => diagnostic.summary.clone(),
        detail => format!("{}: {detail}", diagnostic.summary),
    };
    match found {
        [one] => text(one),
        several => {
            let lines: String = several.iter().map(|one| format!("\n- {}", text(one))).collect();
            format!("{} problems:\n{lines}", several.len())
        }
    }
}

/// What is said where a condition does not hold.
pub fn summary(kind: Kind, post: bool) -> &'static str {
    match kind {
        Kind::Var => "Invalid value for variable",
        Kind::Resource if post => "Resource postcondition failed",
        Kind::Resource => "Resource precondition failed",
        Kind::Output => "Module output value precondition failed",
        Kind::Check => "Check block assertion failed",
    }
}

/// How bad it is that a condition does not hold. A check only warns; and where nothing is to be made or changed, so do the
/// conditions of objects and outputs.
pub fn severity(kind: Kind, lenient: bool) -> Severity {
    match kind {
        Kind::Check => Severity::Warning,
        Kind::Resource | Kind::Output if lenient => Severity::Warning,
        _ => Severity::Error,
    }
}

/// Evaluates conditions, with this to say where one does not hold.
pub fn evaluate_conditions(
    conditions: &[Validation],
    kind: Kind,
    (post, failed): (bool, Severity),
    scope: &At<'_>,
) -> (Checked, Vec<Diagnostic>) {
    let mut checked = Checked::default();
    let mut found = Vec::new();
    for condition in conditions {
        // What is wrong with the check itself is a mistake, however little it matters whether it holds.
        let unsuitable = if kind == Kind::Var { Vec::new() } else { unsuitable_message(condition, scope) };
        let wrong = unsuitable.iter().any(Diagnostic::is_error);
        found.extend(unsuitable);
        if wrong {
            checked.status = Status::Error;
            found.extend(evaluate_condition(condition, kind, scope).err().unwrap_or_default());
            continue;
        }
        match evaluate_condition(condition, kind, scope) {
            Ok(None) => {
                checked.status = checked.status.max(Status::Unknown);
                if kind == Kind::Check {
                    let detail = "The condition could not be evaluated at this time, a result will be known when this \
                                  plan is applied.";
                    found.push(Diagnostic {
                        severity: Severity::Warning,
                        range: Some(range(condition.condition.range())),
                        seen: seen(condition, scope),
                        ..Diagnostic::error("Check block assertion known after apply", detail)
                    });
                }
            }
            Ok(Some(Ok(()))) => {}
            Ok(Some(Err(message))) => {
                checked.status = checked.status.max(Status::Fail);
                let detail = match kind {
                    Kind::Var => {
                        format!("{message}\n\nThis was checked by the validation rule at {}.", condition.range)
                    }
                    _ if message.is_empty() => {
                        "This check failed, but has an invalid error message as described in the \
                                                other accompanying messages."
                            .to_owned()
                    }
                    _ => message.clone(),
                };
                checked.failures.extend(Some(message).filter(|message| !message.is_empty()));
                found.push(Diagnostic {
                    severity: failed,
                    range: Some(range(condition.condition.range())),
                    seen: seen(condition, scope),
                    ..Diagnostic::error(summary(kind, post), detail)
                });
            }
            Err(diagnostics) => {
                checked.status = Status::Error;
                found.extend(diagnostics);
            }
        }
    }
    (checked, found)
}

/// With what it does not hold.
fn seen(condition: &Validation, scope: &At<'_>) -> Box<Seen> {
    // What is ephemeral is kept nowhere, and said nowhere.
    let lasts = |(one, other): &(Value, Value)| ![one, other].iter().any(|side| side.contains_mark(Mark::Ephemeral));
    let sides = sides_of_equality(&condition.condition, scope).filter(lasts);
    // Of what is not known yet there is none.
    let known = |(one, other): &(Value, Value)| one.is_wholly_known() && other.is_wholly_known();
    let difference = sides.filter(known).map(|(one, other)| difference(&one, &other));
    Box::new(Seen { values: described(&condition.condition, scope, Blame::Neither), difference, ..Seen::default() })
}

/// `None`: not known yet. `Err` inside: what to say.
fn evaluate_condition(condition: &Validation, kind: Kind, scope: &At<'_>) -> Outcome<Option<Result<(), String>>> {
    let invalid = |detail: String| {
        let place = Some(range(condition.condition.range()));
        let summary = if kind == Kind::Var { "Invalid variable validation result" } else { "Invalid condition result" };
        vec![Diagnostic { range: place, seen: seen(condition, scope), ..Diagnostic::error(summary, detail) }]
    };
    let what = if kind == Kind::Var { "validation condition" } else { "condition" };
    let value = scope.evaluate(&condition.condition)?;
    if value.is_null() {
        return Err(invalid("Condition expression must return either true or false, not null.".into()));
    }
    let value =
        value.convert(&Type::Bool).map_err(|error| invalid(format!("Invalid {what} result value: {error}.")))?;
    match value.as_bool() {
        None => Ok(None),
        Some(true) => Ok(Some(Ok(()))),
        Some(false) => Ok(Some(Err(message(condition, kind, scope)))),
    }
}

/// What is wrong with what is to be said, whether or not the condition holds.
fn unsuitable_message(condition: &Validation, scope: &At<'_>) -> Vec<Diagnostic> {
    let expr = &condition.error_message;
    let place = Some(range(expr.range()));
    let invalid = |detail: String| {
        let problem =
            Diagnostic::error("Invalid error message", format!("Unsuitable value for error message: {detail}."));
        vec![Diagnostic { range: place.clone(), ..problem }]
    };
    let text = match scope.evaluate(expr) {
        Ok(value) => match value.convert(&Type::String) {
            Ok(text) => text,
            Err(error) => return invalid(error.to_string()),
        },
        Err(found) => return found,
    };
    let secret = if !text.is_known() {
        return Vec::new();
    } else if text.is_null() {
        return invalid("must not be null".to_owned());
    } else if text.has_mark(Mark::Sensitive) {
        "sensitive"
    } else if text.has_mark(Mark::Ephemeral) {
        "ephemeral"
    } else {
        return Vec::new();
    };
    let mut detail = format!(
        "The error expression used to explain this condition refers to {secret} values, so OpenTofu will not display the \
         resulting message."
    );
    if secret == "sensitive" {
        detail.push_str(
            "\n\nYou can correct this by removing references to sensitive values, or by carefully using the nonsensitive() \
             function if the expression will not reveal the sensitive data.",
        );
    }
    let problem = Diagnostic::error(format!("Error message refers to {secret} values"), detail);
    let seen = Box::new(Seen { values: described(expr, scope, Blame::Neither), ..Seen::default() });
    vec![Diagnostic { severity: Severity::Warning, range: place, seen, ..problem }]
}

/// Nothing if there is nothing that may be said, or not yet; a variable has words for that.
fn message(condition: &Validation, kind: Kind, scope: &At<'_>) -> String {
    let text = scope.evaluate(&condition.error_message).ok().and_then(|value: Value| value.convert(&Type::String).ok());
    let secret = |text: &Value| text.contains_mark(Mark::Sensitive) || text.contains_mark(Mark::Ephemeral);
    match (text, kind) {
        (Some(text), Kind::Var) if secret(&text) => {
            "The error message included a sensitive value, so it will not be displayed.".to_owned()
        }
        (Some(text), _) if secret(&text) => String::new(),
        (Some(text), kind) => match (text.as_str(), kind) {
            (Some(""), Kind::Var) => "Failed to evaluate condition error message.".to_owned(),
            (Some(text), _) => text.trim().to_owned(),
            (None, Kind::Var) => "Unable to evaluate this condition's error message.".to_owned(),
            (None, _) => String::new(),
        },
        (None, _) => "Unable to evaluate this condition's error message.".to_owned(),
    }
}
