//! The data keys of one tenant: the newest seals, every one opens what it has sealed, and the first one hashes for ever, so
//! that equal values are recognised whenever they come.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use landform_base::seal::{Context, DataKey, key_number};

use crate::error::StoreError;

/// When a data key gets a successor. Nonces are random, so one key must not seal more than 2^32 values.
#[derive(Clone, Debug)]
pub struct KeyLimits {
    /// After so many values.
    pub uses: u64,
    /// So many may go uncounted if a process dies.
    pub uncounted: u64,
    /// So long a successor is only known, and seals nothing yet.
    pub ahead: Duration,
    /// After so long a process looks for successors that others have made. Shorter than `ahead`, so that nobody meets a
    /// key that it has not heard of.
    pub look_again: Duration,
}

impl Default for KeyLimits {
    fn default() -> KeyLimits {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        KeyLimits { uses: 1 << 30, uncounted: 1 << 16, ahead: minutes(10), look_again: minutes(1) }
    }
}

#[derive(Debug)]
pub(crate) struct Ring {
    /// Never empty.
    keys: BTreeMap<u32, DataKey>,
    current: u32,
    /// What was sealed since it was last written down.
    uncounted: Arc<AtomicU64>,
    read: Instant,
}

impl Ring {
    /// `None` without a key that may be used.
    pub(crate) fn new(keys: Vec<(DataKey, bool)>, uncounted: Arc<AtomicU64>) -> Option<Ring> {
        let current = keys.iter().filter(|(_, usable)| *usable).map(|(key, _)| key.number()).max()?;
        let keys = keys.into_iter().map(|(key, _)| (key.number(), key)).collect();
        Some(Ring { keys, current, uncounted, read: Instant::now() })
    }

    pub(crate) fn seal(&self, context: &Context, plain: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.uncounted.fetch_add(1, Ordering::Relaxed);
        Ok(self.keys[&self.current].seal(context, plain)?)
    }

    pub(crate) fn open(&self, context: &Context, sealed: &[u8]) -> Result<Vec<u8>, StoreError> {
        let number = key_number(sealed)?;
        let key = self.keys.get(&number);
        let key = key.ok_or_else(|| StoreError::Corrupt(format!("there is no data key with the number {number}")))?;
        Ok(key.open(context, sealed)?)
    }

    pub(crate) fn hash(&self, context: &Context, value: &[u8]) -> [u8; 32] {
        let (_, first) = self.keys.first_key_value().expect("never empty");
        first.hash(context, value)
    }

    pub(crate) fn is_old(&self, limits: &KeyLimits) -> bool {
        self.read.elapsed() >= limits.look_again
    }

    /// What is to be written down now, if it is worth that.
    pub(crate) fn take_uncounted(&self, limits: &KeyLimits) -> Option<u64> {
        let enough = self.uncounted.load(Ordering::Relaxed) >= limits.uncounted;
        enough.then(|| self.uncounted.swap(0, Ordering::Relaxed)).filter(|count| *count > 0)
    }

    pub(crate) fn give_back(&self, count: u64) {
        self.uncounted.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn counter(&self) -> Arc<AtomicU64> {
        self.uncounted.clone()
    }

    pub(crate) fn current(&self) -> u32 {
        self.current
    }

    /// The number of the one that comes next, unless there is one that waits.
    pub(crate) fn successor(&self) -> Option<u32> {
        let newest = *self.keys.last_key_value().expect("never empty").0;
        (newest == self.current).then_some(newest + 1)
    }
}
