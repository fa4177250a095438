use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use landform_cty::Value;
use landform_protocol::{CallError, Diagnostics, Provider as _, Severity};
use sha2::{Digest, Sha256};
use tokio::sync::{OnceCell, Semaphore};

use crate::launch::Surroundings;
use crate::process::Process;

/// When a process that several runs share is not used for further ones.
#[derive(Clone, Debug)]
pub struct WarmLimits {
    /// Shared processes kept; the least recently wanted makes room. Who uses it keeps it to the end.
    pub number: usize,
    pub calls: u64,
    pub age: Duration,
    /// Without anybody who uses it.
    pub idle: Duration,
    pub resident_bytes: u64,
}

impl Default for WarmLimits {
    fn default() -> WarmLimits {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        WarmLimits { number: 16, calls: 50_000, age: minutes(60), idle: minutes(5), resident_bytes: 1 << 30 }
    }
}

/// What a process is known by: its binary, its surroundings and its configuration, if it has one. A hash, since the last
/// two hold secrets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key([u8; 32]);

impl Key {
    /// `configuration`: None for a process that is never configured.
    pub fn new(sha256: &str, surroundings: &Surroundings, configuration: Option<&[u8]>) -> Key {
        let mut hasher = Sha256::new();
        // Each part with its length, so that no two lists of parts read the same.
        let mut part = |bytes: &[u8]| {
            hasher.update((bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        part(sha256.as_bytes());
        part(surroundings.folder.as_deref().map_or(b"", |path| path.as_os_str().as_encoded_bytes()));
        part(&(surroundings.environment.len() as u64).to_le_bytes());
        for (name, value) in &surroundings.environment {
            part(name.as_bytes());
            part(value.as_bytes());
        }
        match configuration {
            Some(configuration) => part(configuration),
            None => part(b"never configured"),
        }
        part(&[configuration.is_some().into()]);
        Key(hasher.finalize().into())
    }
}

/// A process that serves several runs at a time.
pub(crate) struct Warm {
    pub process: Process,
    /// What it said when it was configured: every run is told, as if the process were its own.
    pub said: Diagnostics,
    /// Provider configurations that it found valid, and what it made of them.
    prepared: Mutex<HashMap<Key, (Value, Diagnostics)>>,
    born: Instant,
    pub calls: AtomicU64,
}

/// Configurations hold secrets.
impl fmt::Debug for Warm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Warm").field("process", &self.process).finish_non_exhaustive()
    }
}

/// More configurations than this are not kept in mind for one process.
const PREPARED: usize = 256;

impl Warm {
    pub fn new(process: Process, said: Diagnostics) -> Warm {
        Warm { process, said, prepared: Mutex::default(), born: Instant::now(), calls: AtomicU64::new(0) }
    }

    /// What the process makes of a provider's configuration. A plan asks twice, for a large provider each time takes a
    /// tenth of a second, and the answer depends on nothing but the question and the process, so it is kept with that.
    /// Nothing is kept of what was refused: the reason may go away.
    pub async fn prepare(&self, key: Key, config: Value) -> Result<(Value, Diagnostics), CallError> {
        let prepared = || self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = prepared().get(&key) {
            return Ok(answer.clone());
        }
        let answer = self.process.validate_provider_config(config).await?;
        if !Warm::is_refused(&answer.1) {
            let mut prepared = prepared();
            if prepared.len() >= PREPARED {
                prepared.clear();
            }
            prepared.insert(key, answer.clone());
        }
        Ok(answer)
    }

    pub fn is_refused(said: &Diagnostics) -> bool {
        said.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    fn is_fit(&self, limits: &WarmLimits) -> bool {
        self.process.is_alive()
            && self.calls.load(Ordering::Relaxed) < limits.calls
            && self.born.elapsed() < limits.age
            && self.process.resident_bytes() < limits.resident_bytes
    }
}

type Slot = Arc<OnceCell<Arc<Warm>>>;

/// The shared processes by key.
#[derive(Debug, Default)]
pub(crate) struct WarmProcesses {
    slots: Mutex<HashMap<Key, (Slot, Instant)>>,
    gates: Mutex<HashMap<Key, Weak<Semaphore>>>,
}

impl WarmProcesses {
    /// The process with this key if it is still fit for use, or the place for a new one.
    pub fn slot(&self, key: &Key, limits: &WarmLimits) -> Slot {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        // Idle processes hold credentials for nobody, so every look sweeps.
        slots.retain(|_, (slot, used)| match slot.get() {
            Some(warm) => warm.is_fit(limits) && (Arc::strong_count(warm) > 1 || used.elapsed() < limits.idle),
            None => Arc::strong_count(slot) > 1,
        });
        if !slots.contains_key(key) && slots.len() >= limits.number.max(1) {
            let oldest = slots.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone());
            oldest.map(|key| slots.remove(&key));
        }
        let (slot, used) = slots.entry(key.clone()).or_insert_with(|| (Slot::default(), Instant::now()));
        *used = Instant::now();
        slot.clone()
    }

    /// Ends what nobody has used for a while.
    pub fn sweep(&self, limits: &WarmLimits) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.retain(|_, (slot, used)| {
            slot.get().is_none_or(|warm| Arc::strong_count(warm) > 1 || used.elapsed() < limits.idle)
        });
    }

    pub fn is_empty(&self) -> bool {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    pub fn clear(&self) {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// One for all processes with this key, whether shared or not.
    pub fn gate(&self, key: &Key, concurrency: usize) -> Arc<Semaphore> {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        gates.retain(|_, gate| gate.strong_count() > 0);
        if let Some(gate) = gates.get(key).and_then(Weak::upgrade) {
            return gate;
        }
        let gate = Arc::new(Semaphore::new(concurrency.clamp(1, Semaphore::MAX_PERMITS)));
        gates.insert(key.clone(), Arc::downgrade(&gate));
        gate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_tells_apart_whatever_a_process_could_know() {
        let with = |name: &str, value: &str| Surroundings {
            environment: [(name.to_owned(), value.to_owned())].into(),
            folder: None,
        };
        let folder = Surroundings { folder: Some("/a".into()), ..Surroundings::default() };
        let keys = [
            Key::new("1", &Surroundings::default(), None),
            Key::new("1", &Surroundings::default(), Some(b"")),
            Key::new("1", &Surroundings::default(), Some(b"never configured")),
            Key::new("1", &Surroundings::default(), Some(b"a")),
            Key::new("2", &Surroundings::default(), Some(b"a")),
            Key::new("1", &folder, Some(b"a")),
            Key::new("1", &with("A", "BC"), Some(b"a")),
            Key::new("1", &with("AB", "C"), Some(b"a")),
        ];
        for (at, key) in keys.iter().enumerate() {
            assert!(keys.iter().skip(at + 1).all(|other| other != key), "{at}");
        }
        assert_eq!(Key::new("1", &folder, Some(b"a")), keys[5]);
    }
}
