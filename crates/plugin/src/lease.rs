use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use landform_cty::Value;
use landform_protocol::wire::Method;
use landform_protocol::*;
use tokio::sync::{OnceCell, Semaphore};

use crate::binary::Binary;
use crate::launch::Surroundings;
use crate::pool::Pool;
use crate::process::Process;
use crate::warm::{Key, Warm};

/// What is known about a provider, and decides how its processes may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// A configured process may serve several runs. Only for providers of which it was shown that they answer from the
    /// world and not from memory: some read an account once for the life of the process.
    pub shared: bool,
    /// Calls at one time, over all processes with the same configuration. None: as many as there are.
    pub concurrency: Option<usize>,
}

/// A provider for one run: by a process of its own, or by one that is shared with runs of the very same configuration.
/// Until it is configured, calls go to a process that never is.
pub struct Leased {
    pub(crate) pool: Pool,
    pub(crate) binary: Binary,
    pub(crate) surroundings: Surroundings,
    pub(crate) terms: Terms,
    /// Of its own, if it is not shared.
    pub(crate) own: Option<Process>,
    blank: OnceCell<Arc<Warm>>,
    configured: OnceCell<Arc<Warm>>,
    gate: OnceCell<Option<Arc<Semaphore>>>,
}

impl Leased {
    pub(crate) fn new(
        pool: Pool,
        binary: Binary,
        surroundings: Surroundings,
        terms: Terms,
        own: Option<Process>,
    ) -> Leased {
        let (blank, configured, gate) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Leased { pool, binary, surroundings, terms, own, blank, configured, gate }
    }

    /// The process that calls go to now.
    async fn process(&self, call: Method) -> Result<&Process, CallError> {
        match &self.own {
            Some(process) => Ok(process),
            None => Ok(&self.shared(call).await?.process),
        }
    }

    /// The shared process that calls go to now.
    async fn shared(&self, call: Method) -> Result<&Warm, CallError> {
        let warm = match self.configured.get() {
            Some(warm) => warm,
            None => self.blank.get_or_try_init(|| self.start_blank(call)).await?,
        };
        warm.calls.fetch_add(1, Ordering::Relaxed);
        Ok(warm)
    }

    async fn start_blank(&self, call: Method) -> Result<Arc<Warm>, CallError> {
        let key = Key::new(&self.binary.sha256, &self.surroundings, None);
        let start = || async {
            let process = self.pool.start(&self.binary, &self.surroundings).await;
            let failed = |error: crate::StartError| CallError::Failed { call: call.name(), detail: error.to_string() };
            Ok(Arc::new(Warm::new(process.map_err(failed)?, Vec::new())))
        };
        self.pool.warm_slot(&key).get_or_try_init(start).await.cloned()
    }

    /// Takes a shared process with this configuration, or makes one.
    async fn take_configured(&self, key: &Key, call: Configure) -> Result<Diagnostics, CallError> {
        enum Without {
            Answer(CallError),
            Refused(Diagnostics),
        }
        let start = || async {
            let process = self.pool.start(&self.binary, &self.surroundings).await;
            let process = process.map_err(|error| {
                Without::Answer(CallError::Failed { call: Method::ConfigureProvider.name(), detail: error.to_string() })
            })?;
            let said = process.configure(call).await.map_err(Without::Answer)?;
            // What was refused is of no use to anybody.
            if Warm::is_refused(&said) { Err(Without::Refused(said)) } else { Ok(Arc::new(Warm::new(process, said))) }
        };
        match self.pool.warm_slot(key).get_or_try_init(start).await {
            Ok(warm) => {
                self.configured.set(warm.clone()).ok();
                Ok(warm.said.clone())
            }
            Err(Without::Refused(said)) => Ok(said),
            Err(Without::Answer(error)) => Err(error),
        }
    }

    /// Holds one of the places of this configuration while a call is under way.
    async fn place(&self) -> Option<tokio::sync::SemaphorePermit<'_>> {
        match self.gate.get() {
            Some(Some(gate)) => gate.acquire().await.ok(),
            _ => None,
        }
    }
}

#[async_trait]
impl Provider for Leased {
    async fn schema(&self) -> Result<Arc<ProviderSchema>, CallError> {
        // A shared provider that has declared that it can do without the call need not even be running.
        if self.own.is_none()
            && let Some(schema) = self.pool.known_schema(&self.binary)
        {
            return Ok(schema);
        }
        self.process(Method::GetProviderSchema).await?.schema().await
    }

    async fn validate_provider_config(&self, config: Value) -> Result<(Value, Diagnostics), CallError> {
        let call = Method::ValidateProviderConfig;
        if let Some(process) = &self.own {
            return process.validate_provider_config(config).await;
        }
        let failed = |detail: String| CallError::Failed { call: call.name(), detail };
        let bytes = config.to_msgpack(&config.ty).map_err(|error| failed(error.to_string()))?;
        let key = Key::new(&self.binary.sha256, &self.surroundings, Some(&bytes));
        self.shared(call).await?.prepare(key, config).await
    }

    async fn validate_resource_config(&self, call: ValidateResourceConfig) -> Result<Diagnostics, CallError> {
        self.process(Method::ValidateResourceConfig).await?.validate_resource_config(call).await
    }

    async fn validate_data_config(&self, call: ValidateResourceConfig) -> Result<Diagnostics, CallError> {
        self.process(Method::ValidateDataResourceConfig).await?.validate_data_config(call).await
    }

    async fn configure(&self, call: Configure) -> Result<Diagnostics, CallError> {
        let failed = |detail: String| CallError::Failed { call: Method::ConfigureProvider.name(), detail };
        if self.gate.get().is_some() {
            return Err(failed("this provider has its configuration already, and keeps it for life".into()));
        }
        let mut bytes = call.config.to_msgpack(&call.config.ty).map_err(|error| failed(error.to_string()))?;
        bytes.extend(call.terraform_version.as_bytes());
        let key = Key::new(&self.binary.sha256, &self.surroundings, Some(&bytes));
        self.gate.set(self.terms.concurrency.map(|limit| self.pool.gate(&key, limit))).ok();
        match &self.own {
            Some(process) => process.configure(call).await,
            None => self.take_configured(&key, call).await,
        }
    }

    async fn upgrade_resource_state(&self, call: UpgradeResourceState) -> Result<(Value, Diagnostics), CallError> {
        self.process(Method::UpgradeResourceState).await?.upgrade_resource_state(call).await
    }

    async fn upgrade_resource_identity(
        &self,
        call: UpgradeResourceIdentity,
    ) -> Result<(Identity, Diagnostics), CallError> {
        self.process(Method::UpgradeResourceIdentity).await?.upgrade_resource_identity(call).await
    }

    async fn read_resource(&self, call: ReadResource) -> Result<ReadAnswer, CallError> {
        let _place = self.place().await;
        self.process(Method::ReadResource).await?.read_resource(call).await
    }

    async fn plan_resource_change(&self, call: PlanResourceChange) -> Result<PlanAnswer, CallError> {
        let _place = self.place().await;
        self.process(Method::PlanResourceChange).await?.plan_resource_change(call).await
    }

    async fn apply_resource_change(&self, call: ApplyResourceChange) -> Result<ApplyAnswer, CallError> {
        let _place = self.place().await;
        self.process(Method::ApplyResourceChange).await?.apply_resource_change(call).await
    }

    async fn import_resource_state(
        &self,
        call: ImportResourceState,
    ) -> Result<(Vec<ImportedResource>, Diagnostics), CallError> {
        let _place = self.place().await;
        self.process(Method::ImportResourceState).await?.import_resource_state(call).await
    }

    async fn read_data_source(&self, call: ReadDataSource) -> Result<(Value, Diagnostics), CallError> {
        let _place = self.place().await;
        self.process(Method::ReadDataSource).await?.read_data_source(call).await
    }

    /// Of a shared process, this run's part.
    fn peak_memory(&self) -> u64 {
        if let Some(process) = &self.own {
            return process.peak_memory();
        }
        let warm = self.configured.get().into_iter().chain(self.blank.get());
        // One is the pool's own.
        warm.map(|warm| warm.process.peak_memory() / (Arc::strong_count(warm) as u64 - 1).max(1)).sum()
    }

    /// A shared process has calls of others under way: this run starts nothing new, and waits for its own.
    async fn stop(&self) -> Result<(), CallError> {
        match &self.own {
            Some(process) => process.stop().await,
            None => Ok(()),
        }
    }
}
