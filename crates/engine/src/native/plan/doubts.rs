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
use crate::native::object::{Bound, Object, Planned, at, bare};
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

    /// Of the plan from the object as it is read and the plan from an assumed one, that which is carried out.
    pub(super) fn surer(&self, planned: Planned, assumed: Planned) -> Planned {
        match assumed.action {
            Action::Update => Planned { assumed: true, ..assumed },
            Action::NoOp => planned,
            _ => {
                let detail = format!(
                    "An update of {} was interrupted, and reading does not tell whether it was made. It cannot be made again \
                     in place. Look at the object; if it is not as it should be, have it replaced.",
                    planned.address
                );
                let doubt = warning(Diagnostic::error("Update in doubt", detail));
                self.session.warnings.add(vec![at(&planned.address, doubt)]);
                planned
            }
        }
    }
}

/// The prior object with other values for whatever the plan leaves alone although it may be otherwise; `None` if that is
/// nothing.
pub(super) fn assumed_prior(prior: &Object, planned: &Planned, others: &[Object]) -> Option<Object> {
    if others.is_empty() || !matches!(planned.action, Action::NoOp | Action::Update) {
        return None;
    }
    let mut parts = prior.value.as_mapping()?.clone();
    let mut assumed = false;
    for (name, part) in &mut parts {
        let same = |value: &Value| bare(value).equals(&bare(part)).as_bool() == Some(true);
        if !planned.after.get(name).is_some_and(same) {
            continue;
        }
        let other = others.iter().filter_map(|other| other.value.get(name)).find(|other| !same(other)).cloned();
        if let Some(other) = other {
            (*part, assumed) = (other, true);
        }
    }
    assumed.then(|| Object { value: Value::object(parts), ..prior.clone() })
}
