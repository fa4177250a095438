use landform_protocol::{ApplyAnswer, Schema};

use crate::native::change::{incompatibilities, path_text};
use crate::native::object::{Bound, Object, Planned, at, bare, known_or_null};
use crate::{Action, Diagnostic};

/// The object after a create or an update, and what is to be said about it. `None`: there is nothing to save, or what is
/// saved stays as it is.
pub fn changed(
    bound: &Bound,
    schema: &Schema,
    planned: &Planned,
    prior: Option<&Object>,
    answer: ApplyAnswer,
    mut diagnostics: Vec<Diagnostic>,
) -> (Option<Object>, Vec<Diagnostic>) {
    let address = &planned.address;
    let invalid = "Provider returned invalid result object after apply";
    let mut new_state = answer.new_state;
    if !new_state.is_wholly_known() {
        new_state.walk(&mut |path, part| {
            if !part.is_known() {
                let detail = format!(
                    "After the apply operation, the provider still indicated an unknown value for {address}{}. All values must \
                     be known after apply, so this is always a bug in the provider and should be reported in the provider's own \
                     repository. OpenTofu will still save the other known object values in the state.",
                    path_text(path)
                );
                diagnostics.push(at(address, Diagnostic::error(invalid, detail)));
            }
            true
        });
        // What is known is saved; OpenTofu writes null for the rest.
        new_state = known_or_null(new_state);
    }
    let failed = |diagnostics: &[Diagnostic]| diagnostics.iter().any(Diagnostic::is_error);
    if !failed(&diagnostics) {
        let problems = incompatibilities(&schema.block, &bare(&planned.after), &new_state);
        for problem in problems {
            if answer.legacy_type_system {
                tracing::debug!(%address, problem, "tolerated: a result of a provider with the legacy type system");
            } else {
                let words = format!(
                    "When applying changes to {address}, provider {:?} produced an unexpected new value: {problem}.",
                    bound.address.to_string()
                );
                let summary = "Provider produced inconsistent result after apply";
                diagnostics.push(bound.blamed(address, summary, words));
            }
        }
    }
    if new_state.is_null() {
        if !failed(&diagnostics) {
            diagnostics.push(bound.broken(address, invalid, "returned a null object after apply"));
        }
        return (None, diagnostics);
    }
    let (_, marks) = planned.after.clone().unmark_deep_with_paths();
    let creating = planned.action != Action::Update;
    let tainted = failed(&diagnostics) && (creating || prior.is_some_and(|object| object.tainted));
    let object = Object {
        value: bound.with_marks(schema, new_state, &marks),
        private: answer.private,
        identity: bound.identity(address, answer.identity),
        tainted,
        dependencies: Vec::new(),
        create_before_destroy: false,
        // What failed is still what it was to be before.
        skip_destroy: prior.is_some_and(|object| object.skip_destroy),
    };
    (Some(object), diagnostics)
}
