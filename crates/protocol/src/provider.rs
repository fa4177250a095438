use std::sync::Arc;

use async_trait::async_trait;
use landform_cty::Value;

use crate::*;

/// The call did not come back with an answer: whether it had an effect is not known.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("the provider ended during {call}: {detail}")]
    Ended { call: &'static str, detail: String },
    #[error("the provider does not know {call}")]
    Unsupported { call: &'static str },
    /// The provider lives, but its answer is an error of the transport and no diagnostics.
    #[error("{call} failed: {detail}")]
    Failed { call: &'static str, detail: String },
    #[error("the provider's answer to {call} cannot be read: {detail}")]
    Malformed { call: &'static str, detail: String },
}

/// A provider, wherever it lives. Values are of the type that the schema implies.
///
/// One provider has one configuration for its whole life: `configure` is called once.
#[async_trait]
pub trait Provider: Send + Sync {
    async fn schema(&self) -> Result<Arc<ProviderSchema>, CallError>;
    /// Answers the configuration with the provider's own defaults (protocol 5), or unchanged (protocol 6).
    async fn validate_provider_config(&self, config: Value) -> Result<(Value, Diagnostics), CallError>;
    async fn validate_resource_config(&self, call: ValidateResourceConfig) -> Result<Diagnostics, CallError>;
    async fn validate_data_config(&self, call: ValidateResourceConfig) -> Result<Diagnostics, CallError>;
    async fn configure(&self, call: Configure) -> Result<Diagnostics, CallError>;
    async fn upgrade_resource_state(&self, call: UpgradeResourceState) -> Result<(Value, Diagnostics), CallError>;
    async fn upgrade_resource_identity(
        &self,
        _: UpgradeResourceIdentity,
    ) -> Result<(Identity, Diagnostics), CallError> {
        Err(CallError::Unsupported { call: "UpgradeResourceIdentity" })
    }
    async fn read_resource(&self, call: ReadResource) -> Result<ReadAnswer, CallError>;
    async fn plan_resource_change(&self, call: PlanResourceChange) -> Result<PlanAnswer, CallError>;
    async fn apply_resource_change(&self, call: ApplyResourceChange) -> Result<ApplyAnswer, CallError>;
    async fn import_resource_state(
        &self,
        call: ImportResourceState,
    ) -> Result<(Vec<ImportedResource>, Diagnostics), CallError>;
    async fn read_data_source(&self, call: ReadDataSource) -> Result<(Value, Diagnostics), CallError>;
    /// The most memory that the provider's processes have had so far, in bytes; 0 where it is not known, or nobody else's.
    fn peak_memory(&self) -> u64 {
        0
    }
    /// Asks every call under way to end early. For an exclusive process only.
    async fn stop(&self) -> Result<(), CallError>;
}
