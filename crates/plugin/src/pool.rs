use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use landform_protocol::wire::Version;
use landform_protocol::{Provider, ProviderSchema};
use tokio::sync::{OnceCell, Semaphore};

use crate::binary::Binary;
use crate::launch::{Launch, StartError, Surroundings};
use crate::lease::{Leased, Terms};
use crate::process::Process;
use crate::schemas::Schemas;
use crate::warm::{Key, Warm, WarmLimits, WarmProcesses};

#[derive(Clone, Debug)]
pub struct Limits {
    /// Processes handed out at one time. Over it, [`Pool::acquire`] refuses: waiting could be for oneself.
    pub in_use: usize,
    /// Blank processes kept ahead of need, one a binary; the least recently wanted makes room. 0 keeps none.
    pub spares: usize,
    pub start_timeout: Duration,
    /// For processes that several runs share.
    pub warm: WarmLimits,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { in_use: 64, spares: 8, start_timeout: Duration::from_secs(60), warm: WarmLimits::default() }
    }
}

/// Hands out provider processes and keeps a spare ahead of need: each to one user, each blank, never taken back, since
/// whoever had it may have configured it; or, where [`Terms`] allow it, one to all users of the same configuration.
#[derive(Clone, Debug)]
pub struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limits: Limits,
    schemas: Arc<Schemas>,
    register: Option<PathBuf>,
    in_use: Arc<Semaphore>,
    /// In the order of last use, the latest last.
    spares: Mutex<Vec<Spare>>,
    warm: WarmProcesses,
    /// A sweep of the warm processes is going to happen.
    sweeping: AtomicBool,
}

#[derive(Debug)]
struct Spare {
    binary: Binary,
    /// None while it is being started.
    process: Option<Process>,
}

impl Pool {
    /// `register`: see [`Launch::register`].
    pub fn new(limits: Limits, schemas: Schemas, register: Option<PathBuf>) -> Pool {
        let in_use = Arc::new(Semaphore::new(limits.in_use));
        let (schemas, spares, warm) = (Arc::new(schemas), Mutex::default(), WarmProcesses::default());
        Pool {
            shared: Arc::new(Shared {
                limits,
                schemas,
                register,
                in_use,
                spares,
                warm,
                sweeping: AtomicBool::new(false),
            }),
        }
    }

    /// Processes that somebody works with; spares do not count.
    pub fn in_use(&self) -> usize {
        self.shared.limits.in_use - self.shared.in_use.available_permits()
    }

    /// A provider for one run, on the terms that hold for it.
    pub async fn lease(
        &self,
        binary: &Binary,
        surroundings: &Surroundings,
        terms: Terms,
    ) -> Result<Leased, StartError> {
        let own = if terms.shared { None } else { Some(self.acquire(binary, surroundings).await?) };
        Ok(Leased::new(self.clone(), binary.clone(), surroundings.clone(), terms, own))
    }

    /// A process that counts as shared, not as handed out.
    pub(crate) async fn start(&self, binary: &Binary, surroundings: &Surroundings) -> Result<Process, StartError> {
        let neutral = *surroundings == Surroundings::default();
        if neutral && let Some(spare) = self.shared.take(binary) {
            return Ok(spare);
        }
        self.shared.start(binary, surroundings.clone()).await
    }

    pub(crate) fn warm_slot(&self, key: &Key) -> Arc<OnceCell<Arc<Warm>>> {
        self.sweep_later();
        self.shared.warm.slot(key, &self.shared.limits.warm)
    }

    pub(crate) fn gate(&self, key: &Key, concurrency: usize) -> Arc<Semaphore> {
        self.shared.warm.gate(key, concurrency)
    }

    /// The schema of a binary whose processes need not be asked for it.
    pub(crate) fn known_schema(&self, binary: &Binary) -> Option<Arc<ProviderSchema>> {
        let known = Version::ALL.into_iter().find_map(|version| self.shared.schemas.get(&binary.sha256, version));
        known.map(|loaded| loaded.schema.clone()).filter(|schema| schema.capabilities.get_provider_schema_optional)
    }

    /// Sees to it that shared processes end when nobody uses them, also if nobody ever comes back.
    fn sweep_later(&self) {
        if self.shared.sweeping.swap(true, Ordering::Relaxed) {
            return;
        }
        let shared = Arc::downgrade(&self.shared);
        let idle = self.shared.limits.warm.idle;
        tokio::spawn(async move {
            tokio::time::sleep(idle + Duration::from_secs(1)).await;
            if let Some(shared) = shared.upgrade() {
                shared.sweeping.store(false, Ordering::Relaxed);
                shared.warm.sweep(&shared.limits.warm);
                if !shared.warm.is_empty() {
                    Pool { shared }.sweep_later();
                }
            }
        });
    }

    /// A blank process, at once if there is a spare. Surroundings are fixed when a process starts and those of a spare
    /// are neutral, so whoever needs others waits for a start. Its place is free again when the process is dropped.
    pub async fn acquire(&self, binary: &Binary, surroundings: &Surroundings) -> Result<Process, StartError> {
        let neutral = *surroundings == Surroundings::default();
        let limit = self.shared.limits.in_use;
        let place = self.shared.in_use.clone().try_acquire_owned().map_err(|_| StartError::TooMany { limit })?;
        let spare = if neutral { self.shared.take(binary) } else { None };
        let mut process = match spare {
            Some(process) => process,
            None => self.shared.start(binary, surroundings.clone()).await?,
        };
        if neutral {
            self.warm(binary);
        }
        process.hold(place);
        Ok(process)
    }

    /// Sees to it, in the background, that there is a spare of this binary.
    pub fn warm(&self, binary: &Binary) {
        if !self.shared.reserve(binary) {
            return;
        }
        let (shared, binary) = (self.shared.clone(), binary.clone());
        tokio::spawn(async move {
            let process = shared.start(&binary, Surroundings::default()).await;
            if let Ok(process) = &process {
                // Where the provider insists on this call, it is made now, ahead of need. A failure comes back to
                // whoever uses the process.
                let _ = process.schema().await;
            }
            if let Err(error) = &process {
                tracing::warn!(%error, "no spare could be started");
            }
            shared.place(&binary, process.ok());
        });
    }

    /// Ends all spares, and all shared processes that nobody uses.
    pub fn clear(&self) {
        self.shared.spares().clear();
        self.shared.warm.clear();
    }
}

impl Shared {
    fn spares(&self) -> std::sync::MutexGuard<'_, Vec<Spare>> {
        self.spares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn start(&self, binary: &Binary, surroundings: Surroundings) -> Result<Process, StartError> {
        let launch = Launch {
            surroundings,
            timeout: self.limits.start_timeout,
            register: self.register.clone(),
            ..Launch::new(&binary.path)
        };
        Process::start(binary.clone(), launch, self.schemas.clone()).await
    }

    /// A spare that has died meanwhile is none.
    fn take(&self, binary: &Binary) -> Option<Process> {
        let mut spares = self.spares();
        let at = spares.iter().position(|spare| spare.binary.sha256 == binary.sha256 && spare.process.is_some())?;
        spares.remove(at).process.filter(Process::is_alive)
    }

    /// Whether a spare should now be started; if so, its place is taken.
    fn reserve(&self, binary: &Binary) -> bool {
        let mut spares = self.spares();
        if self.limits.spares == 0 {
            return false;
        }
        if let Some(at) = spares.iter().position(|spare| spare.binary.sha256 == binary.sha256) {
            let spare = spares.remove(at);
            let good = spare.process.as_ref().is_none_or(Process::is_alive);
            spares.push(if good { spare } else { Spare { binary: binary.clone(), process: None } });
            return !good;
        }
        while spares.len() >= self.limits.spares {
            spares.remove(0);
        }
        spares.push(Spare { binary: binary.clone(), process: None });
        true
    }

    /// The place may have been given away meanwhile; then the process is not needed any more.
    fn place(&self, binary: &Binary, process: Option<Process>) {
        let mut spares = self.spares();
        let at = spares.iter().position(|spare| spare.binary.sha256 == binary.sha256 && spare.process.is_none());
        match (at, process) {
            (Some(at), Some(process)) => spares[at].process = Some(process),
            (Some(at), None) => drop(spares.remove(at)),
            (None, _) => {}
        }
    }
}
