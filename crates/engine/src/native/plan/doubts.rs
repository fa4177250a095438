//! Updates that were interrupted: nobody knows whether they were made.
//!
//! Reading tells, but not everything: a vendor never tells a key again, and a provider then answers with what the state
//! says. So the object is read from each state that it may be in. What the answers agree on is what the vendor says;
//! where they differ, the answer was only an echo, and the plan has to write that attribute again. A plan that leaves
//! such an attribute as it is would trust the echo: it is made once more from an answer that differs there.

use landform_cty::Value;
use landform_protocol::Schema;

use super::Planner;
use crate::native::encode;
use crate::native::eval::warning;
use crate::native::object::{Bound, Object, Outcome, Planned, at, bare};
use crate::{Action, Address, Diagnostic};

impl Planner<'_> {
    /// What interrupted updates have found at this object, and were to leave.
    pub(super) fn doubts(&self, address: &Address) -> Vec<&serde_json::Value> {
        let places = [Some(address), self.moved.get(address)].into_iter().flatten();
        places.filter_map(|place| self.doubted.get(place)).flatten().collect()
    }

    /// How the object may be as well, for all that is known; `now` is how it is read from the state. An object that is not
    /// found as the state has it may be found as an update was to leave it, and is that one then.
    pub(super) async fn otherwise(
        &self,
        bound: &Bound,
        schema: &Schema,
        stored: &Object,
        address: &Address,
        now: &mut Option<Object>,
    ) -> Vec<Object> {
        let mut seen = vec![bare(&stored.value)];
        let mut others = Vec::new();
        for attributes in self.doubts(address) {
            let Some(value) = encode::laid_over(&seen[0], attributes, &schema.block.implied_type()) else { continue };
            if seen.contains(&value) {
                continue;
            }
            seen.push(value.clone());
            let (_, places) = stored.value.clone().unmark_deep_with_paths();
            let object = Object { value: bound.with_marks(schema, value, &places), ..stored.clone() };
            match bound.refresh(address, object.clone()).await {
                Ok((Some(other), _)) if now.is_none() => *now = Some(other),
                Ok((other, _)) => others.extend(other),
                // It cannot even be asked for like this, so nothing is proven.
                Err(_) => others.push(object),
            }
        }
        others
    }

    /// The plan from another prior object, if this one leaves something as it is that nobody has seen.
    pub(super) async fn sure(
        &self,
        planned: Planned,
        prior: Option<&Object>,
        others: &[Object],
        again: impl AsyncFn(&Object) -> Outcome<Planned>,
    ) -> Outcome<Planned> {
        let changes_in_place = matches!(planned.action, Action::NoOp | Action::Update);
        let Some(prior) = prior.filter(|_| changes_in_place) else { return Ok(planned) };
        let Some(assumed) = assumed_prior(prior, &planned.after, others) else { return Ok(planned) };
        let replanned = again(&assumed).await?;
        match replanned.action {
            Action::Update => Ok(Planned { assumed: true, ..replanned }),
            Action::NoOp => Ok(planned),
            _ => {
                let detail = format!(
                    "An update of {} was interrupted, and reading does not tell whether it was made. It cannot be made again \
                     in place. Look at the object; if it is not as it should be, have it replaced.",
                    planned.address
                );
                let doubt = warning(Diagnostic::error("Update in doubt", detail));
                self.session.warnings.add(vec![at(&planned.address, doubt)]);
                Ok(planned)
            }
        }
    }
}

/// The prior object with other values for whatever the plan leaves alone although it may be otherwise.
fn assumed_prior(prior: &Object, after: &Value, others: &[Object]) -> Option<Object> {
    let mut parts = prior.value.as_mapping()?.clone();
    let mut assumed = false;
    for (name, part) in &mut parts {
        let same = |value: &Value| bare(value).equals(&bare(part)).as_bool() == Some(true);
        if !after.get(name).is_some_and(same) {
            continue;
        }
        let other = others.iter().filter_map(|other| other.value.get(name)).find(|other| !same(other)).cloned();
        if let Some(other) = other {
            (*part, assumed) = (other, true);
        }
    }
    assumed.then(|| Object { value: Value::object(parts), ..prior.clone() })
}
