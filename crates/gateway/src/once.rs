//! Calls that must not be made twice: what a seat remembers of those that may have been carried out, or not.
//!
//! Clients send a call again when they were not told how it ended, also one that makes something. If the vendor had carried
//! out the first one, there would be two.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use axum::http::request::Parts;
use sha2::{Digest, Sha256};
use tokio::sync::{Mutex as Lane, OwnedMutexGuard};

use crate::counts::lock;

/// So many calls of a seat may be open. Beyond that none is forgotten: no other one is sent instead.
const MOST_OPEN: usize = 1_000;
/// So many calls that are all the same may be here at once.
const MOST_THE_SAME: usize = 64;

/// A call, told from every other one. Nothing can be read from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Print([u8; 32]);

impl Print {
    /// Headers are left out: they may say when a call was sent, or for which time.
    pub(crate) fn of(head: &Parts, path: &str, body: &[u8]) -> Print {
        let query = head.uri.query();
        let mut hash = Sha256::new();
        // No query is not the same as an empty one.
        hash.update([u8::from(query.is_some())]);
        for part in [head.method.as_str().as_bytes(), path.as_bytes(), query.unwrap_or_default().as_bytes(), body] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Print(hash.finalize().into())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Once(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Those that are here now. The same ones pass one after the other: a client may send a call again before anybody has
    /// noticed that it no longer waits for the first.
    here: HashMap<Print, Weak<Lane<()>>>,
    /// Sent, and nobody knows whether they were carried out.
    open: HashSet<Print>,
}

/// Why a call is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPass {
    /// The same was sent before, and nobody knows what became of it.
    Again,
    /// So many are open that this one could not be remembered.
    TooManyOpen,
    /// The same call is still under way.
    Busy,
}

/// The right to send a call. The next one that is the same waits until this is dropped.
pub(crate) struct Pass<'a> {
    once: &'a Once,
    print: Print,
    _lane: OwnedMutexGuard<()>,
}

impl Once {
    pub(crate) async fn pass(&self, print: Print, until: Instant) -> Result<Pass<'_>, NoPass> {
        let lane = self.lane(print)?;
        let Ok(lane) = tokio::time::timeout_at(until.into(), lane.lock_owned()).await else {
            return Err(NoPass::Busy);
        };
        let state = lock(&self.0);
        if state.open.contains(&print) {
            return Err(NoPass::Again);
        }
        if state.open.len() >= MOST_OPEN {
            return Err(NoPass::TooManyOpen);
        }
        drop(state);
        Ok(Pass { once: self, print, _lane: lane })
    }

    fn lane(&self, print: Print) -> Result<Arc<Lane<()>>, NoPass> {
        let here = &mut lock(&self.0).here;
        if let Some(lane) = here.get(&print).and_then(Weak::upgrade) {
            return if Arc::strong_count(&lane) > MOST_THE_SAME { Err(NoPass::Busy) } else { Ok(lane) };
        }
        here.retain(|_, lane| lane.strong_count() > 0);
        let lane = Arc::new(Lane::new(()));
        here.insert(print, Arc::downgrade(&lane));
        Ok(lane)
    }
}

impl Pass<'_> {
    /// It was sent, and nobody knows whether it was carried out.
    pub(crate) fn left_open(&self) {
        lock(&self.once.0).open.insert(self.print);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn print(number: u32) -> Print {
        let (head, ()) = axum::http::Request::post("/s/a").body(()).unwrap().into_parts();
        Print::of(&head, "/a", &number.to_be_bytes())
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(20)
    }

    #[test]
    fn a_call_is_known_by_all_its_parts() {
        let of = |method: &str, uri: &str, path: &str, body: &str| {
            let (head, ()) = axum::http::Request::builder().method(method).uri(uri).body(()).unwrap().into_parts();
            Print::of(&head, path, body.as_bytes())
        };
        let all = [
            of("POST", "/s/a", "/a", "b"),
            of("PATCH", "/s/a", "/a", "b"),
            of("POST", "/s/ab", "/ab", ""),
            of("POST", "/s/a?", "/a", "b"),
            of("POST", "/s/a?b", "/a", ""),
            of("POST", "/s/a", "/a", "c"),
        ];
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
        assert_eq!(all[0], of("POST", "/another-seat/a", "/a", "b"));
    }

    #[tokio::test]
    async fn the_same_call_waits_for_the_first_and_is_told_what_became_of_it() {
        let once = Once::default();
        let first = once.pass(print(1), soon()).await.unwrap();
        assert!(once.pass(print(2), soon()).await.is_ok(), "another one does not wait");
        assert_eq!(once.pass(print(1), soon()).await.err(), Some(NoPass::Busy));
        drop(first);
        // Its end was known: the same may well be wanted twice.
        let second = once.pass(print(1), soon()).await.unwrap();
        let long = Instant::now() + Duration::from_secs(60);
        let (third, ()) = tokio::join!(once.pass(print(1), long), async {
            tokio::task::yield_now().await;
            second.left_open();
            drop(second);
        });
        assert_eq!(third.err(), Some(NoPass::Again));
        assert_eq!(once.pass(print(1), soon()).await.err(), Some(NoPass::Again));
    }

    #[tokio::test]
    async fn what_is_remembered_is_bounded_and_nothing_is_forgotten_for_it() {
        let once = Once::default();
        let most = u32::try_from(MOST_OPEN).unwrap();
        for number in 0..most {
            once.pass(print(number), soon()).await.unwrap().left_open();
        }
        assert_eq!(once.pass(print(0), soon()).await.err(), Some(NoPass::Again));
        assert_eq!(once.pass(print(most), soon()).await.err(), Some(NoPass::TooManyOpen));
        let state = lock(&once.0);
        assert!(state.open.len() == MOST_OPEN && state.here.len() <= 2, "{} are here", state.here.len());
    }
}
