//! What an engine says, in the words of `domain`.

use landform_base::redact::Redactor;
use landform_base::secret::SecretString;
use landform_domain::run::{PlanSummary, PlannedChange};
use landform_domain::{Code, Inputs, Problem};
use landform_engine::state::{State, StateOutput};
use landform_engine::{Action, Change, Diagnostic, EngineError, Output};
use landform_store::{ConnectionValues, Outputs};
use serde_json::Value;
use serde_json::value::RawValue;

const MOST_CHANGES: usize = 500;
const LONGEST_MESSAGE: usize = 4_000;

pub(crate) fn summary(changes: &[Change]) -> PlanSummary {
    let count = |wanted: &[Action]| changes.iter().filter(|change| wanted.contains(&change.action)).count() as u64;
    let change = |change: &Change| PlannedChange {
        address: match &change.deposed {
            Some(key) => format!("{} (deposed {key})", change.address),
            None => change.address.clone(),
        },
        action: action_word(change.action).to_owned(),
    };
    PlanSummary {
        creates: count(&[Action::Create, Action::ForgetThenCreate]),
        updates: count(&[Action::Update]),
        replaces: count(&[Action::Replace, Action::CreateBeforeDestroy]),
        deletes: count(&[Action::Delete]),
        forgets: count(&[Action::Forget, Action::ForgetThenCreate]),
        imports: changes.iter().filter(|change| change.importing.is_some()).count() as u64,
        changes: changes.iter().take(MOST_CHANGES).map(change).collect(),
    }
}

/// The outputs that a state holds. After a crash they may be there and nowhere else.
pub(crate) fn outputs(state: Option<&[u8]>) -> Option<Outputs> {
    let state = State::read(state?).ok()?;
    let output = |(name, output): (&String, &StateOutput)| {
        let parsed = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).ok();
        let output = Output { value: parsed(&output.value)?, ty: parsed(&output.ty)?, sensitive: output.sensitive };
        Some((name.clone(), serde_json::to_value(output).ok()?))
    };
    state.outputs.iter().map(output).collect()
}

fn action_word(action: Action) -> &'static str {
    match action {
        Action::NoOp => "no_op",
        Action::Create => "create",
        Action::Read => "read",
        Action::Update => "update",
        Action::Delete => "delete",
        Action::Replace => "replace",
        Action::CreateBeforeDestroy => "create_before_destroy",
        Action::Forget => "forget",
        Action::ForgetThenCreate => "forget_then_create",
    }
}

/// The errors among diagnostics as one bounded text.
pub(crate) fn failure(code: Code, diagnostics: &[Diagnostic], redactor: impl Fn(&str) -> String) -> Problem {
    let text = |diagnostic: &Diagnostic| match diagnostic.detail.is_empty() {
        true => diagnostic.summary.clone(),
        false => format!("{}: {}", diagnostic.summary, diagnostic.detail),
    };
    let errors: Vec<String> = diagnostics.iter().filter(|d| d.is_error()).map(text).collect();
    Problem::new(code, bounded(&redactor(&errors.join("\n"))))
}

pub(crate) fn engine_failure(code: Code, error: &EngineError, redactor: impl Fn(&str) -> String) -> Problem {
    match error {
        EngineError::Diagnostics(diagnostics) => failure(code, diagnostics, redactor),
        EngineError::Stale(_) => Problem::new(Code::PlanStale, bounded(&redactor(&error.to_string()))),
        EngineError::Unsupported(items) => {
            Problem::new(Code::EngineUnsupported, bounded(&crate::choose::explain(items).join("; ")))
        }
        other => Problem::new(code, bounded(&redactor(&other.to_string()))),
    }
}

/// Whether an engine failed at this object: it says so, or names it.
pub(crate) fn is_about(error: &EngineError, address: &str) -> bool {
    let EngineError::Diagnostics(diagnostics) = error else { return false };
    let about = |said: &Diagnostic| {
        said.address.as_deref() == Some(address) || said.summary.contains(address) || said.detail.contains(address)
    };
    diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).any(about)
}

fn bounded(text: &str) -> String {
    match text.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Knows every string within the sensitive inputs and the connections.
pub(crate) fn redactor(inputs: &Inputs, connections: &ConnectionValues) -> Redactor {
    let mut secrets: Vec<SecretString> =
        connections.environment.values().map(|value| SecretString::from(value.as_str())).collect();
    connections.variables.values().for_each(|value| collect(value, &mut secrets));
    for (_, input) in inputs.iter().filter(|(_, input)| input.sensitive) {
        collect(&input.value, &mut secrets);
    }
    Redactor::new(&secrets)
}

fn collect(value: &Value, secrets: &mut Vec<SecretString>) {
    match value {
        Value::String(text) => secrets.push(SecretString::from(text.as_str())),
        Value::Number(number) => secrets.push(SecretString::from(number.to_string())),
        Value::Array(items) => items.iter().for_each(|item| collect(item, secrets)),
        Value::Object(map) => map.values().for_each(|item| collect(item, secrets)),
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landform_domain::Input;

    #[test]
    fn a_failure_names_errors_and_hides_secrets() {
        let input = Input { value: serde_json::json!({"key": ["hunter22"]}), sensitive: true };
        let inputs = Inputs::new([("login".to_string(), input)].into()).unwrap();
        let redactor = redactor(&inputs, &ConnectionValues::default());
        let diagnostics = [Diagnostic::error("Denied", "hunter22 is wrong"), Diagnostic::error("Gone", "")];
        let problem = failure(Code::ApplyFailed, &diagnostics, |text| redactor.redact(text));
        assert_eq!(problem.message, "Denied: (redacted) is wrong\nGone");
        let long = [Diagnostic::error("x".repeat(LONGEST_MESSAGE * 2), "")];
        assert!(failure(Code::ApplyFailed, &long, str::to_owned).message.chars().count() <= LONGEST_MESSAGE + 1);
    }
}
