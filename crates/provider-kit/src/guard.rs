use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt;
use landform_cty::Value;
use landform_protocol::*;

/// A provider whose panics are diagnostics of the call that panicked. A provider inside the binary must be behind one:
/// it serves a run among others.
pub struct Guard<P>(pub P);

async fn caught<T>(
    call: impl Future<Output = Result<T, CallError>>,
    answer: impl FnOnce(Diagnostics) -> T,
) -> Result<T, CallError> {
    // The provider may be left in a strange state, but only its own: it has no statics, and one run uses it.
    match AssertUnwindSafe(call).catch_unwind().await {
        Ok(result) => result,
        Err(panic) => {
            let detail = format!("This is a bug in the provider. It panicked: {}", message(&*panic));
            Ok(answer(vec![Diagnostic::error("The provider panicked", detail)]))
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)")
}

#[async_trait]
impl<P: Provider> Provider for Guard<P> {
    async fn schema(&self) -> Result<Arc<ProviderSchema>, CallError> {
        self.0.schema().await
    }

    async fn validate_provider_config(&self, config: Value) -> Result<(Value, Diagnostics), CallError> {
        caught(self.0.validate_provider_config(config.clone()), |diagnostics| (config, diagnostics)).await
    }

    async fn validate_resource_config(&self, call: ValidateResourceConfig) -> Result<Diagnostics, CallError> {
        caught(self.0.validate_resource_config(call), |diagnostics| diagnostics).await
    }

    async fn validate_data_config(&self, call: ValidateResourceConfig) -> Result<Diagnostics, CallError> {
        caught(self.0.validate_data_config(call), |diagnostics| diagnostics).await
    }

    async fn configure(&self, call: Configure) -> Result<Diagnostics, CallError> {
        caught(self.0.configure(call), |diagnostics| diagnostics).await
    }

    async fn upgrade_resource_state(&self, call: UpgradeResourceState) -> Result<(Value, Diagnostics), CallError> {
        let schema = self.0.schema().await?;
        let ty = schema.resources.get(&call.type_name).map(|schema| schema.block.implied_type());
        let null = Value::null(ty.unwrap_or(landform_cty::Type::Dynamic));
        caught(self.0.upgrade_resource_state(call), |diagnostics| (null, diagnostics)).await
    }

    async fn upgrade_resource_identity(
        &self,
        call: UpgradeResourceIdentity,
    ) -> Result<(Identity, Diagnostics), CallError> {
        caught(self.0.upgrade_resource_identity(call), |diagnostics| (None, diagnostics)).await
    }

    async fn read_resource(&self, call: ReadResource) -> Result<ReadAnswer, CallError> {
        let (new_state, private, identity) = (call.current.clone(), call.private.clone(), call.identity.clone());
        caught(self.0.read_resource(call), |diagnostics| ReadAnswer { new_state, private, identity, diagnostics }).await
    }

    async fn plan_resource_change(&self, call: PlanResourceChange) -> Result<PlanAnswer, CallError> {
        let (planned, planned_private) = (call.prior.clone(), call.prior_private.clone());
        caught(self.0.plan_resource_change(call), |diagnostics| PlanAnswer {
            planned,
            requires_replace: Vec::new(),
            planned_private,
            planned_identity: None,
            legacy_type_system: false,
            diagnostics,
        })
        .await
    }

    async fn apply_resource_change(&self, call: ApplyResourceChange) -> Result<ApplyAnswer, CallError> {
        let (new_state, private) = (call.prior.clone(), call.planned_private.clone());
        caught(self.0.apply_resource_change(call), |diagnostics| ApplyAnswer {
            new_state,
            private,
            identity: None,
            legacy_type_system: false,
            diagnostics,
        })
        .await
    }

    async fn import_resource_state(
        &self,
        call: ImportResourceState,
    ) -> Result<(Vec<ImportedResource>, Diagnostics), CallError> {
        caught(self.0.import_resource_state(call), |diagnostics| (Vec::new(), diagnostics)).await
    }

    async fn read_data_source(&self, call: ReadDataSource) -> Result<(Value, Diagnostics), CallError> {
        let null = Value::null(call.config.ty.clone());
        caught(self.0.read_data_source(call), |diagnostics| (null, diagnostics)).await
    }

    async fn stop(&self) -> Result<(), CallError> {
        self.0.stop().await
    }
}
