use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use landform_cty::Value;
use landform_protocol::wire::{self, Call, Method, Version, identities_from_wire, schema_from_wire};
use landform_protocol::*;
use prost::bytes::Bytes;
use tokio::sync::{Mutex, OnceCell, OwnedSemaphorePermit, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::binary::Binary;
use crate::client::{Client, Failure, is_unsupported};
use crate::launch::{Launch, StartError, Started, describe};
use crate::offspring;
use crate::schemas::{Loaded, Schemas};
use crate::tail::Tail;

/// How long a broken connection may precede the news that the process has ended.
const OBITUARY: Duration = Duration::from_secs(2);

/// How long a process may take to end by itself when it is retired.
const FAREWELL: Duration = Duration::from_secs(2);

/// A running provider. Dropping it kills the process and all that it started.
#[derive(Debug)]
pub struct Process {
    client: Client,
    binary: Binary,
    schemas: Arc<Schemas>,
    loaded: OnceCell<Arc<Loaded>>,
    tail: Tail,
    /// How the process ended, once it has.
    ended: watch::Receiver<Option<String>>,
    supervisor: JoinHandle<()>,
    /// Configure is process-global in every provider: a second one would silently change the meaning of calls under way.
    configured: Mutex<bool>,
    id: u32,
    _folder: tempfile::TempDir,
    /// In the pool that it came from.
    place: Option<OwnedSemaphorePermit>,
}

impl Process {
    pub async fn start(binary: Binary, launch: Launch, schemas: Arc<Schemas>) -> Result<Process, StartError> {
        let Started { client, mut child, tail, folder } = launch.start().await?;
        let id = child.id();
        let (report, ended) = watch::channel(None);
        // The task owns the child: aborting it drops the child, which kills the group.
        let supervisor = tokio::spawn(async move {
            let status = describe(child.wait().await);
            report.send_replace(Some(status));
        });
        let configured = Mutex::new(false);
        Ok(Process {
            client,
            binary,
            schemas,
            loaded: OnceCell::new(),
            tail,
            ended,
            supervisor,
            configured,
            id,
            _folder: folder,
            place: None,
        })
    }

    pub(crate) fn hold(&mut self, place: OwnedSemaphorePermit) {
        self.place = Some(place);
    }

    pub fn binary(&self) -> &Binary {
        &self.binary
    }

    pub fn version(&self) -> Version {
        self.client.version()
    }

    /// The caller's side of the socket, for whoever passes messages through unread.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The memory that it has now; 0 if that cannot be told.
    pub fn resident_bytes(&self) -> u64 {
        landform_base::memory::resident(self.id)
    }

    pub fn is_alive(&self) -> bool {
        self.ended.borrow().is_none()
    }

    /// Lets the process end by itself, for a moment; then it is killed.
    pub async fn retire(mut self) {
        let farewell = async {
            // The answer races with the end of the process, so it says nothing.
            let _ = self.client.shutdown().await;
            let _ = self.ended.wait_for(Option::is_some).await;
        };
        let _ = timeout(FAREWELL, farewell).await;
    }

    /// The schema comes from the cache where it can. A provider that does not declare that it can do without the call
    /// gets it all the same, once and before any other, as the CLI does it.
    ///
    /// Measured: hashicorp/time 0.14.2 (the framework) and coder/coder 2.19.0 (SDKv2) both declare it, and both plan
    /// and apply without ever having been asked.
    async fn loaded(&self) -> Result<&Arc<Loaded>, CallError> {
        self.loaded
            .get_or_try_init(|| async {
                let cached = self.schemas.get(&self.binary.sha256, self.version());
                if let Some(loaded) = cached.filter(|loaded| loaded.schema.capabilities.get_provider_schema_optional) {
                    return Ok(loaded);
                }
                let call = Method::GetProviderSchema.name();
                let bytes = match self.client.schema().await {
                    Ok(bytes) => bytes,
                    Err(status) => return Err(self.explain(call, Failure::Status(status)).await),
                };
                let (mut schema, diagnostics) = schema_from_wire(self.version(), &bytes)
                    .map_err(|error| CallError::Malformed { call, detail: error.to_string() })?;
                if let Some(error) = diagnostics.iter().find(|diagnostic| diagnostic.severity == Severity::Error) {
                    let detail = format!("{}: {}", error.summary, error.detail);
                    return Err(CallError::Failed { call, detail });
                }
                let identities = self.identities().await;
                schema.identities = identities.as_ref().map(|(_, identities)| identities.clone()).unwrap_or_default();
                let answers = [&bytes[..], identities.as_ref().map_or(&[][..], |(bytes, _)| bytes)];
                Ok(self.schemas.put(&self.binary.sha256, self.version(), answers, schema))
            })
            .await
    }

    /// Identities are an extra: a provider that cannot tell of them works without, as in OpenTofu.
    async fn identities(&self) -> Option<(Bytes, BTreeMap<String, Schema>)> {
        let bytes = match self.client.identities().await {
            Ok(bytes) => bytes,
            Err(status) if is_unsupported(&status) => return None,
            Err(status) => {
                tracing::warn!(%status, "a provider does not tell the schemas of its identities");
                return None;
            }
        };
        match identities_from_wire(&bytes) {
            Ok((identities, said)) if !said.iter().any(|one| one.severity == Severity::Error) => {
                Some((bytes, identities))
            }
            _ => {
                tracing::warn!("the schemas of a provider's identities cannot be read");
                None
            }
        }
    }

    async fn call<C: Call + Sync>(&self, call: C) -> Result<C::Answer, CallError> {
        let loaded = self.loaded().await?;
        match self.client.call(&call, &loaded.types).await {
            Ok(answer) => Ok(answer),
            Err(failure) => Err(self.explain(C::METHOD.name(), failure).await),
        }
    }

    async fn explain(&self, call: &'static str, failure: Failure) -> CallError {
        let status = match failure {
            Failure::Answered(error) => return error,
            Failure::Status(status) if is_unsupported(&status) => return CallError::Unsupported { call },
            Failure::Status(status) => status,
        };
        let mut ended = self.ended.clone();
        let obituary = timeout(OBITUARY, ended.wait_for(Option::is_some)).await;
        let exit = obituary.ok().and_then(Result::ok).and_then(|exit| exit.clone());
        match exit {
            Some(exit) => {
                let said = self.tail.last_words().await;
                let detail = if said.is_empty() { exit } else { format!("{exit}; it said: {said}") };
                CallError::Ended { call, detail }
            }
            None => CallError::Failed { call, detail: format!("{:?}: {}", status.code(), status.message()) },
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.supervisor.abort();
    }
}

#[async_trait]
impl Provider for Process {
    async fn schema(&self) -> Result<Arc<ProviderSchema>, CallError> {
        Ok(self.loaded().await?.schema.clone())
    }

    async fn validate_provider_config(&self, config: Value) -> Result<(Value, Diagnostics), CallError> {
        self.call(wire::ValidateProviderConfig(config)).await
    }

    async fn validate_resource_config(&self, call: ValidateResourceConfig) -> Result<Diagnostics, CallError> {
        self.call(call).await
    }

    async fn validate_data_config(&self, call: ValidateResourceConfig) -> Result<Diagnostics, CallError> {
        self.call(wire::ValidateDataConfig(call)).await
    }

    async fn configure(&self, call: Configure) -> Result<Diagnostics, CallError> {
        let mut configured = self.configured.lock().await;
        if std::mem::replace(&mut *configured, true) {
            let detail = "this process has its configuration already, and keeps it for life".into();
            return Err(CallError::Failed { call: Method::ConfigureProvider.name(), detail });
        }
        self.call(call).await
    }

    async fn upgrade_resource_state(&self, call: UpgradeResourceState) -> Result<(Value, Diagnostics), CallError> {
        self.call(call).await
    }

    async fn upgrade_resource_identity(
        &self,
        call: UpgradeResourceIdentity,
    ) -> Result<(Identity, Diagnostics), CallError> {
        self.call(call).await
    }

    async fn read_resource(&self, call: ReadResource) -> Result<ReadAnswer, CallError> {
        self.call(call).await
    }

    async fn plan_resource_change(&self, call: PlanResourceChange) -> Result<PlanAnswer, CallError> {
        self.call(call).await
    }

    async fn apply_resource_change(&self, call: ApplyResourceChange) -> Result<ApplyAnswer, CallError> {
        self.call(call).await
    }

    async fn import_resource_state(
        &self,
        call: ImportResourceState,
    ) -> Result<(Vec<ImportedResource>, Diagnostics), CallError> {
        self.call(call).await
    }

    async fn read_data_source(&self, call: ReadDataSource) -> Result<(Value, Diagnostics), CallError> {
        self.call(call).await
    }

    fn peak_memory(&self) -> u64 {
        offspring::peak(self.id, &self.binary.sha256)
    }

    async fn stop(&self) -> Result<(), CallError> {
        let error = self.call(wire::StopProvider).await?;
        if error.is_empty() {
            Ok(())
        } else {
            Err(CallError::Failed { call: Method::StopProvider.name(), detail: error })
        }
    }
}
