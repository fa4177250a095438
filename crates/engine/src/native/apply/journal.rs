//! Every call that changes something: the intent before it, and what became of the object after it.
//!
//! An intent is waited for: without it there is no call. What became of an object is sent off at once, and the next object
//! is begun meanwhile, so that the two reach the disk together where the journal can do that. Nothing more depends on its
//! arrival than which objects are in doubt after a crash; the apply ends when all of it has arrived.

use std::pin::Pin;
use std::task::Poll;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use landform_protocol::{ApplyAnswer, ApplyResourceChange, CallError, Schema};
use tokio::sync::mpsc::Receiver;

use super::{Apply, Halt};
use crate::native::encode;
use crate::native::object::{Bound, Object, Outcome, at, translate};
use crate::state::Instance;
use crate::{Address, Diagnostic, Intent, IntentAction, IntentId, Journal, Refused, Settlement};

/// What became of an object, on its way into the journal.
pub(super) type Settling<'a> = Pin<Box<dyn Future<Output = Result<(), Refused>> + Send + 'a>>;

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

impl<'a> Apply<'a> {
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
                let mut diagnostics: Vec<Diagnostic> =
                    diagnostics.into_iter().map(|diagnostic| translate(address, diagnostic)).collect();
                if action == IntentAction::Delete {
                    // Its configuration has nothing to do with it.
                    diagnostics.iter_mut().for_each(|diagnostic| diagnostic.seen.argument = None);
                }
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
            Fate::Untouched => {
                self.world().state.forget_if_empty(address);
                Settlement::Untouched
            }
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
        let journal: &'a dyn Journal = self.journal;
        // That nothing was done is believed only if the journal agrees, before anything else is begun.
        let waits = settlement == Settlement::Untouched;
        let mut writing = journal.settle(intent, settlement);
        let written = if waits { Poll::Ready((&mut writing).await) } else { futures::poll!(&mut writing) };
        let written = match written {
            Poll::Ready(written) => written,
            Poll::Pending => match self.settling.try_send(writing) {
                Ok(()) => return Ok(()),
                Err(full) => full.into_inner().await,
            },
        };
        written.map_err(|refused| self.refused(refused))
    }

    /// Waits for a walk, and for everything that it has sent off to the journal.
    pub(super) async fn settled<T>(&self, walk: impl Future<Output = T>, mut sent: Receiver<Settling<'a>>) -> T {
        let mut walk = std::pin::pin!(walk);
        let (mut settling, mut ended) = (FuturesUnordered::new(), None);
        loop {
            while let Ok(one) = sent.try_recv() {
                settling.push(one);
            }
            tokio::select! {
                end = &mut walk, if ended.is_none() => ended = Some(end),
                Some(one) = sent.recv(), if ended.is_none() => settling.push(one),
                Some(arrived) = settling.next() => {
                    if let Err(refused) = arrived {
                        self.refused(refused);
                    }
                }
                else => return ended.expect("nothing is left to wait for only after the walk"),
            }
        }
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
            self.eval.set_object(address, value);
        }
        self.world().state.put(address, &bound.address, instance);
    }
}
