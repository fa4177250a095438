//! Providers inside of this program: no process, and one object for each configuration.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use landform_cty::Value;
use landform_protocol::*;
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

/// Makes a provider that is not configured yet.
pub type Maker = Arc<dyn Fn() -> Arc<dyn Provider> + Send + Sync>;

/// The providers that come with Landform, by their full source address.
///
/// A configured one is kept for further runs of the very same configuration, with its connections to the vendor: they
/// are written here, and answer from the world and not from memory.
#[derive(Clone, Default)]
pub struct BuiltIn {
    known: BTreeMap<String, Known>,
    configured: Arc<Configured>,
}

#[derive(Clone)]
struct Known {
    version: String,
    maker: Maker,
    /// One that is never configured serves all runs until they are: its schemas are made once.
    blank: Arc<OnceLock<Arc<dyn Provider>>>,
}

/// Configurations that are kept ready. Each may hold open connections to a vendor.
const MOST: usize = 256;
/// A configuration holds credentials, and without anybody who uses it for nobody.
const IDLE: Duration = Duration::from_secs(300);

type Key = [u8; 32];
type Slot = Arc<OnceCell<(Arc<dyn Provider>, Diagnostics)>>;

struct Configured {
    idle: Duration,
    slots: Mutex<HashMap<Key, (Slot, Instant)>>,
    /// A sweep is going to happen.
    sweeping: AtomicBool,
}

impl Default for Configured {
    fn default() -> Configured {
        Configured { idle: IDLE, slots: Mutex::default(), sweeping: AtomicBool::new(false) }
    }
}

impl Configured {
    fn slot(self: &Arc<Configured>, key: Key) -> Slot {
        self.sweep_later();
        let mut slots = self.swept();
        if slots.len() >= MOST && !slots.contains_key(&key) {
            let oldest = slots.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| *key);
            oldest.map(|key| slots.remove(&key));
        }
        let (slot, used) = slots.entry(key).or_insert_with(|| (Slot::default(), Instant::now()));
        *used = Instant::now();
        slot.clone()
    }

    /// What somebody has used lately. Who works with one of the others keeps it to the end.
    fn swept(&self) -> MutexGuard<'_, HashMap<Key, (Slot, Instant)>> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.retain(|_, (_, used)| used.elapsed() < self.idle);
        slots
    }

    /// Credentials that nobody uses are forgotten also if nobody ever comes back.
    fn sweep_later(self: &Arc<Configured>) {
        if self.sweeping.swap(true, Ordering::Relaxed) {
            return;
        }
        let (idle, this) = (self.idle, Arc::downgrade(self));
        tokio::spawn(async move {
            tokio::time::sleep(idle + Duration::from_millis(10)).await;
            let Some(this) = this.upgrade() else { return };
            this.sweeping.store(false, Ordering::Relaxed);
            if !this.swept().is_empty() {
                this.sweep_later();
            }
        });
    }
}

impl BuiltIn {
    /// Adds a provider.
    pub fn with(mut self, source: &str, version: &str, maker: Maker) -> BuiltIn {
        self.known.insert(source.to_owned(), Known { version: version.to_owned(), maker, blank: Arc::default() });
        self
    }

    /// The version of a provider that is inside.
    pub fn version(&self, source: &str) -> Option<&str> {
        self.known.get(source).map(|known| known.version.as_str())
    }

    /// A provider for one run.
    pub fn start(&self, source: &str) -> Option<Arc<dyn Provider>> {
        let Known { maker, blank, .. } = self.known.get(source)?;
        Some(Arc::new(ForOneRun {
            source: source.to_owned(),
            maker: maker.clone(),
            blank: blank.get_or_init(|| maker()).clone(),
            configured: OnceCell::new(),
            shared: self.configured.clone(),
        }))
    }
}

/// Until it is configured, calls go to an object that never is.
struct ForOneRun {
    source: String,
    maker: Maker,
    blank: Arc<dyn Provider>,
    configured: OnceCell<Arc<dyn Provider>>,
    shared: Arc<Configured>,
}

impl ForOneRun {
    fn now(&self) -> &dyn Provider {
        self.configured.get().map_or(&*self.blank, |provider| &**provider)
    }
}

/// What a provider said when it refused its configuration, or why it could not answer.
enum Without {
    Refused(Diagnostics),
    Answer(CallError),
}

#[async_trait]
impl Provider for ForOneRun {
    async fn schema(&self) -> Result<Arc<ProviderSchema>, CallError> {
        self.blank.schema().await
    }

    async fn validate_provider_config(&self, config: Value) -> Result<(Value, Diagnostics), CallError> {
        self.blank.validate_provider_config(config).await
    }

    async fn validate_resource_config(&self, call: ValidateResourceConfig) -> Result<Diagnostics, CallError> {
        self.now().validate_resource_config(call).await
    }

    async fn validate_data_config(&self, call: ValidateResourceConfig) -> Result<Diagnostics, CallError> {
        self.now().validate_data_config(call).await
    }

    async fn configure(&self, call: Configure) -> Result<Diagnostics, CallError> {
        let failed = |detail: String| CallError::Failed { call: "ConfigureProvider", detail };
        if self.configured.initialized() {
            return Err(failed("this provider has its configuration already, and keeps it for life".into()));
        }
        let bytes = call.config.to_msgpack(&call.config.ty).map_err(|error| failed(error.to_string()))?;
        let mut hasher = Sha256::new();
        hasher.update((self.source.len() as u64).to_le_bytes());
        hasher.update(self.source.as_bytes());
        hasher.update(bytes);
        let make = || async {
            let provider = (self.maker)();
            let said = provider.configure(call).await.map_err(Without::Answer)?;
            // What was refused is of no use to anybody.
            match said.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
                true => Err(Without::Refused(said)),
                false => Ok((provider, said)),
            }
        };
        match self.shared.slot(hasher.finalize().into()).get_or_try_init(make).await {
            Ok((provider, said)) => {
                self.configured.set(provider.clone()).ok();
                Ok(said.clone())
            }
            Err(Without::Refused(said)) => Ok(said),
            Err(Without::Answer(error)) => Err(error),
        }
    }

    async fn upgrade_resource_state(&self, call: UpgradeResourceState) -> Result<(Value, Diagnostics), CallError> {
        self.now().upgrade_resource_state(call).await
    }

    async fn upgrade_resource_identity(
        &self,
        call: UpgradeResourceIdentity,
    ) -> Result<(Identity, Diagnostics), CallError> {
        self.now().upgrade_resource_identity(call).await
    }

    async fn read_resource(&self, call: ReadResource) -> Result<ReadAnswer, CallError> {
        self.now().read_resource(call).await
    }

    async fn plan_resource_change(&self, call: PlanResourceChange) -> Result<PlanAnswer, CallError> {
        self.now().plan_resource_change(call).await
    }

    async fn apply_resource_change(&self, call: ApplyResourceChange) -> Result<ApplyAnswer, CallError> {
        self.now().apply_resource_change(call).await
    }

    async fn import_resource_state(
        &self,
        call: ImportResourceState,
    ) -> Result<(Vec<ImportedResource>, Diagnostics), CallError> {
        self.now().import_resource_state(call).await
    }

    async fn read_data_source(&self, call: ReadDataSource) -> Result<(Value, Diagnostics), CallError> {
        self.now().read_data_source(call).await
    }

    /// Others work with the same object: this run starts nothing new, and waits for its own calls.
    async fn stop(&self) -> Result<(), CallError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_nobody_uses_is_dropped_although_nobody_comes_back() {
        let configured = Arc::new(Configured { idle: Duration::from_millis(50), ..Configured::default() });
        let slot = Arc::downgrade(&configured.slot([1; 32]));
        assert!(slot.upgrade().is_some(), "it is kept for the next run");
        for _ in 0..3_000 {
            if slot.upgrade().is_none() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it is still there");
    }
}
