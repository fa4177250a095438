//! Every call that changes something: the intent before it, and what became of the object after it.

use landform_protocol::{ApplyAnswer, ApplyResourceChange, CallError, Schema};

use super::{Apply, Halt};
use crate::native::encode;
use crate::native::object::{Bound, Object, Outcome, at, translate};
use crate::state::Instance;
use crate::{Address, Diagnostic, Intent, IntentAction, IntentId, Refused, Settlement};

/// The object that a call is about.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    pub address: &'a Address,
    pub deposed: Option<&'a str>,
}

/// What became of an object.
pub enum Fate<'a> {
    Object(&'a Schema, Box<Instance>),
    Gone,
    Untouched,
}

pub struct Made {
    pub intent: IntentId,
    pub answer: ApplyAnswer,
    pub diagnostics: Vec<Diagnostic>,
}

impl Apply<'_> {
    /// Journals the intent, then makes the call. Without an answer, or without the journal, everything stops.
    pub(super) async fn make(
        &self,
        bound: &Bound,
        target: Target<'_>,
        private: &[u8],
        action: IntentAction,
        call: ApplyResourceChange,
    ) -> Outcome<Made> {
        let address = target.address;
        let ty = bound.resource(address)?.block.implied_type();
        let prior = (action == IntentAction::Update).then(|| encode::known_json(&call.prior, &ty)).flatten();
        let intent = Intent {
            address: address.to_string(),
            deposed: target.deposed.map(str::to_owned),
            action,
            type_name: address.type_name.clone(),
            provider: bound.address.clone(),
            prior,
            planned: encode::known_json(&call.planned, &ty),
            private: private.to_vec(),
        };
        let ids = self.journal.intend(vec![intent]).await.map_err(|refused| self.refused(refused))?;
        let intent = ids[0];
        match bound.provider.apply_resource_change(call).await {
            Ok(mut answer) => {
                let diagnostics = std::mem::take(&mut answer.diagnostics);
                let diagnostics = diagnostics.into_iter().map(|diagnostic| translate(address, diagnostic)).collect();
                Ok(Made { intent, answer, diagnostics })
            }
            Err(error @ CallError::Unsupported { .. }) => {
                self.settle(intent, bound, target, Fate::Untouched).await?;
                Err(vec![at(address, Diagnostic::error("Provider cannot apply", error.to_string()))])
            }
            Err(error) => {
                let detail = format!("{address}: {error}");
                self.world().halt.get_or_insert(Halt::Lost(detail));
                Err(Vec::new())
            }
        }
    }

    pub(super) async fn settle(
        &self,
        intent: IntentId,
        bound: &Bound,
        target: Target<'_>,
        fate: Fate<'_>,
    ) -> Outcome<()> {
        let Target { address, deposed } = target;
        let settlement = match fate {
            Fate::Untouched => Settlement::Untouched,
            Fate::Gone => {
                self.world().state.remove(address, deposed);
                Settlement::Gone
            }
            Fate::Object(schema, mut instance) => {
                instance.deposed = deposed.map(str::to_owned);
                // The journal alone must be able to tell that the old object is still there.
                let aside = match deposed {
                    None => {
                        let world = self.world();
                        let key = world.deposed.get(address);
                        key.and_then(|key| world.state.object(address, Some(key))).map(|(_, aside)| aside.clone())
                    }
                    Some(_) => None,
                };
                let instances: Vec<&Instance> = std::iter::once(&*instance).chain(aside.as_ref()).collect();
                let entry = encode::entry(address, &bound.address, &instances);
                match deposed {
                    None => self.put(address, bound, schema, *instance),
                    Some(_) => self.world().state.put(address, &bound.address, *instance),
                }
                Settlement::Object(entry)
            }
        };
        self.journal.settle(intent, settlement).await.map_err(|refused| self.refused(refused))
    }

    fn refused(&self, refused: Refused) -> Vec<Diagnostic> {
        self.world().halt.get_or_insert(Halt::Refused(refused));
        Vec::new()
    }

    pub(super) fn fate<'s>(&self, schema: &'s Schema, address: &Address, object: &Object) -> Outcome<Fate<'s>> {
        Ok(Fate::Object(schema, Box::new(self.instance(schema, address, object)?)))
    }

    pub(super) fn instance(&self, schema: &Schema, address: &Address, object: &Object) -> Outcome<Instance> {
        encode::instance(schema, address, object)
            .map_err(|detail| vec![at(address, Diagnostic::error("Failed to encode object in state", detail))])
    }

    pub(super) fn put(&self, address: &Address, bound: &Bound, schema: &Schema, instance: Instance) {
        if let Ok(value) = encode::stored_value(&instance, &schema.block) {
            self.eval.values_mut().set(address, value);
        }
        self.world().state.put(address, &bound.address, instance);
    }
}
