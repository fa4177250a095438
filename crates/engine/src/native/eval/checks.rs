//! Conditions that must hold, and what became of them.

use std::collections::BTreeMap;

use landform_cty::{Mark, Type, Value};
use landform_lang::{Budget, Validation, evaluate};
use serde::{Deserialize, Serialize};

use super::scope::At;
use crate::native::config::{range, translate};
use crate::native::object::Outcome;
use crate::{Diagnostic, Severity};

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

/// Evaluates conditions. A check only warns; anything else that does not hold is an error.
pub fn evaluate_conditions(
    conditions: &[Validation],
    kind: Kind,
    post: bool,
    scope: &At<'_>,
) -> (Checked, Vec<Diagnostic>) {
    let mut checked = Checked::default();
    let mut found = Vec::new();
    for condition in conditions {
        match evaluate_condition(condition, scope) {
            Ok(None) => {
                checked.status = checked.status.max(Status::Unknown);
                if kind == Kind::Check {
                    let detail = "The condition could not be evaluated at this time, a result will be known when this \
                                  plan is applied.";
                    found.push(Diagnostic {
                        severity: Severity::Warning,
                        range: Some(range(condition.condition.range())),
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
                    _ => message.clone(),
                };
                checked.failures.push(message);
                let severity = if kind == Kind::Check { Severity::Warning } else { Severity::Error };
                found.push(Diagnostic {
                    severity,
                    range: Some(range(condition.condition.range())),
                    ..Diagnostic::error(summary(kind, post), detail)
                });
            }
            Err(diagnostics) => {
                checked.status = Status::Error;
                let severity = if kind == Kind::Check { Severity::Warning } else { Severity::Error };
                found.extend(diagnostics.into_iter().map(|diagnostic| Diagnostic { severity, ..diagnostic }));
            }
        }
    }
    (checked, found)
}

/// `None`: not known yet. `Err` inside: what to say.
fn evaluate_condition(condition: &Validation, scope: &At<'_>) -> Outcome<Option<Result<(), String>>> {
    let invalid = |detail: String| {
        let place = Some(range(condition.condition.range()));
        vec![Diagnostic { range: place, ..Diagnostic::error("Invalid condition result", detail) }]
    };
    let value = evaluate(&condition.condition, scope, &mut Budget::default()).map_err(translate)?;
    if value.is_null() {
        return Err(invalid("Condition expression must return either true or false, not null.".into()));
    }
    let value =
        value.convert(&Type::Bool).map_err(|error| invalid(format!("Invalid condition result value: {error}.")))?;
    match value.as_bool() {
        None => Ok(None),
        Some(true) => Ok(Some(Ok(()))),
        Some(false) => Ok(Some(Err(message(condition, scope)))),
    }
}

fn message(condition: &Validation, scope: &At<'_>) -> String {
    let text = evaluate(&condition.error_message, scope, &mut Budget::default())
        .ok()
        .and_then(|value: Value| value.convert(&Type::String).ok());
    match text {
        Some(text) if text.contains_mark(Mark::Sensitive) || text.contains_mark(Mark::Ephemeral) => {
            "The error message included a sensitive value, so it will not be displayed.".to_owned()
        }
        Some(text) => text.as_str().unwrap_or("Unable to evaluate this condition's error message.").trim().to_owned(),
        None => "Unable to evaluate this condition's error message.".to_owned(),
    }
}
