use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use landform_cty::Value;
use landform_protocol::{Diagnostics, PlanAnswer, PlanResourceChange, ValidateResourceConfig};

use crate::Address;

/// What a provider has answered while a plan was made, for the apply that follows at once.
///
/// Before an object is changed its provider validates and plans it once more, because by then all values are known. Where
/// they were known all along this is the same question as a moment ago, to the same process. It need not be asked again:
/// for small objects it was a quarter of all that a run costs.
#[derive(Clone, Default)]
pub struct Answers(Arc<Mutex<HashMap<Address, Answered>>>);

#[derive(Default)]
struct Answered {
    validated: Vec<(Value, Diagnostics)>,
    /// Several for an object that is replaced, or that may be in one of several conditions.
    planned: Vec<(PlanResourceChange, PlanAnswer)>,
}

impl Answers {
    /// A question with something unknown in it will not be asked like that again.
    pub fn keep_validation(&self, address: &Address, call: &ValidateResourceConfig, answer: &Diagnostics) {
        if call.config.is_wholly_known() {
            let kept = (call.config.clone(), answer.clone());
            self.all().entry(address.clone()).or_default().validated.push(kept);
        }
    }

    pub fn keep_plan(&self, address: &Address, call: PlanResourceChange, answer: &PlanAnswer) {
        if call.config.is_wholly_known() {
            self.all().entry(address.clone()).or_default().planned.push((call, answer.clone()));
        }
    }

    pub fn validation(&self, address: &Address, call: &ValidateResourceConfig) -> Option<Diagnostics> {
        let all = self.all();
        let (_, answer) = all.get(address)?.validated.iter().find(|(config, _)| *config == call.config)?;
        Some(answer.clone())
    }

    pub fn plan(&self, address: &Address, call: &PlanResourceChange) -> Option<PlanAnswer> {
        let all = self.all();
        let (_, answer) = all.get(address)?.planned.iter().find(|(asked, _)| asked == call)?;
        Some(answer.clone())
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Address, Answered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
