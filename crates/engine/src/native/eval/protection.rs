//! `prevent_destroy`: whether an object must not go.

use landform_cty::{Mark, Type};
use landform_lang::{Blame, Budget, Expr, NoReferences, Reference, described, evaluate, references};

use super::scope::At;
use super::{Each, Eval};
use crate::native::config::{ResourceConfig, range};
use crate::native::object::{Outcome, at};
use crate::{Address, Diagnostic, Seen};

const WRONG: &str = "Invalid value for prevent_destroy";

impl Eval<'_> {
    /// Whether what is planned for an object may be done. Its own key is no help: the object may be out of the
    /// configuration. What can never be right is found whatever is planned; the rest where the object is to go.
    pub fn check_protection(&self, resource: &ResourceConfig, address: &Address, goes: bool) -> Outcome<()> {
        let block = self.config.block(resource);
        let Some(expr) = &block.lifecycle.prevent_destroy else { return Ok(()) };
        let instances =
            |named: &Reference| matches!(named, Reference::CountIndex | Reference::EachKey | Reference::EachValue);
        let own: Vec<Diagnostic> = references(expr).iter().filter(|one| instances(one)).map(own_data(expr)).collect();
        if !own.is_empty() {
            return Err(own);
        }
        let values = self.values();
        let scope = self.at(&values, resource.module, &address.module, &Each::Once);
        let protects = protects(expr, &scope, address)?;
        let wrong = |detail: String, blame: Blame| {
            Err(vec![invalid(expr, &scope, format!("Resource instance {address} has {detail}"), blame)])
        };
        let exclude = format!("    -exclude={:?}", address.resource());
        match protects {
            _ if !goes => Ok(()),
            Some(false) => Ok(()),
            Some(true) => {
                let detail = format!(
                    "Resource instance {address} has prevent_destroy set, but the plan calls for it to be destroyed.\n\nTo \
                     proceed, either disable prevent_destroy for this resource or exclude instances of this resource from \
                     this round using:\n{exclude}"
                );
                let problem = Diagnostic::error("Resource instance cannot be destroyed", detail);
                Err(vec![at(address, Diagnostic { range: Some(range(block.range.clone())), ..problem })])
            }
            None if scope.evaluate(expr)?.is_null() => wrong(
                "prevent_destroy set to null. When making a dynamic decision to allow destroy, use false instead."
                    .to_owned(),
                Blame::Neither,
            ),
            None => {
                let detail = format!(
                    "a prevent_destroy argument but its value will not be known until the apply step, so OpenTofu can't \
                     predict whether destroying this is acceptable.\n\nTo proceed, exclude instances of this resource from \
                     this round using:\n{exclude}"
                );
                wrong(detail, Blame::Unknown)
            }
        }
    }

    /// What is wrong with a `prevent_destroy` that is a constant.
    pub fn check_constant_protection(&self, resource: &ResourceConfig) -> Outcome<()> {
        let Some(expr) = &self.config.block(resource).lifecycle.prevent_destroy else { return Ok(()) };
        let Ok(value) = evaluate(expr, &NoReferences, &mut Budget::default()) else { return Ok(()) };
        let Err(error) = value.convert(&Type::Bool) else { return Ok(()) };
        let detail = unsuitable(&resource.address, &error.to_string());
        Err(vec![Diagnostic { range: Some(range(expr.range())), ..Diagnostic::error(WRONG, detail) }])
    }
}

fn unsuitable(address: &str, why: &str) -> String {
    format!("Resource instance {address} has an invalid value for its prevent_destroy argument: {why}.")
}

fn own_data(expr: &Expr) -> impl Fn(&Reference) -> Diagnostic {
    let place = range(expr.range());
    move |named| {
        let detail = format!(
            "A prevent_destroy argument cannot refer to {named}, because OpenTofu needs to evaluate this argument for \
             instances that have already been removed from the configuration and so whose per-instance data is no longer \
             available."
        );
        let problem = Diagnostic::error("Invalid reference in prevent_destroy", detail);
        Diagnostic { range: Some(place.clone()), ..problem }
    }
}

fn invalid(expr: &Expr, scope: &At<'_>, detail: String, blame: Blame) -> Diagnostic {
    let seen = Box::new(Seen { values: described(expr, scope, blame), ..Seen::default() });
    Diagnostic { range: Some(range(expr.range())), seen, ..Diagnostic::error(WRONG, detail) }
}

/// `None`: null, or not known yet.
fn protects(expr: &Expr, scope: &At<'_>, address: &Address) -> Outcome<Option<bool>> {
    let value = scope.evaluate(expr)?;
    let value = value.convert(&Type::Bool).map_err(|error| {
        vec![invalid(expr, scope, unsuitable(&address.to_string(), &error.to_string()), Blame::Neither)]
    })?;
    let (value, marks) = value.unmark();
    let mut found = Vec::new();
    if marks.contains(&Mark::Sensitive) {
        found.push((
            "a sensitive value for its prevent_destroy argument, which is invalid because it would cause OpenTofu to \
             disclose the sensitive value by whether deletion is blocked.\n\nIf you know this value is not sensitive in \
             practice, consider using the nonsensitive function to declare that.",
            Blame::Confidential,
        ));
    }
    if marks.contains(&Mark::Ephemeral) {
        found.push((
            "an ephemeral value for its prevent_destroy argument, which is invalid because the decision for whether it's \
             okay to destroy instances of this resource instance must stay consistent between plan and apply.",
            Blame::Neither,
        ));
    }
    if found.is_empty() {
        return Ok(value.as_bool());
    }
    let wrong = |(why, blame)| invalid(expr, scope, format!("Resource instance {address} has {why}"), blame);
    Err(found.into_iter().map(wrong).collect())
}
