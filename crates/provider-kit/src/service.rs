use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;
use landform_protocol::wire::{
    Call, Method, StopProvider, Types, ValidateDataConfig, ValidateProviderConfig, Version, WireError,
    identities_to_wire, schema_to_wire,
};
use landform_protocol::*;
use prost::Message;
use prost::bytes::Bytes;
use tokio::sync::OnceCell;
use tonic::Status;

use crate::guard::Guard;
use crate::serve::{Handler, serve};

/// A program that is this provider: what its `main` returns.
pub fn run(version: Version, provider: impl Provider + 'static) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error),
    };
    match runtime.block_on(serve(Arc::new(Service::new(version, Guard(provider))))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("{error}");
    ExitCode::FAILURE
}

/// Turns the bytes of calls into calls of a [`Provider`].
pub struct Service<P> {
    version: Version,
    provider: P,
    types: OnceCell<Types>,
}

impl<P: Provider> Service<P> {
    pub fn new(version: Version, provider: P) -> Service<P> {
        Service { version, provider, types: OnceCell::new() }
    }

    async fn types(&self) -> Result<&Types, Status> {
        self.types.get_or_try_init(|| async { Ok(Types::new(&*self.provider.schema().await.map_err(status)?)) }).await
    }

    async fn answer<'a, C, F>(&'a self, message: Bytes, call: impl FnOnce(&'a P, C) -> F) -> Result<Bytes, Status>
    where
        C: Call + Clone,
        F: Future<Output = Result<C::Answer, CallError>>,
    {
        let types = self.types().await?;
        let request = C::Request::decode(message).map_err(|error| Status::invalid_argument(error.to_string()))?;
        let request = C::from_wire(request, types).map_err(|error| Status::invalid_argument(error.to_string()))?;
        let answer = call(&self.provider, request.clone()).await.map_err(status)?;
        Ok(C::answer_to_wire(answer, &request, types).map_err(own_fault)?.encode_to_vec().into())
    }
}

fn status(error: CallError) -> Status {
    match error {
        CallError::Unsupported { call } => Status::unimplemented(call),
        CallError::Ended { .. } => Status::unavailable(error.to_string()),
        CallError::Failed { .. } | CallError::Malformed { .. } => Status::internal(error.to_string()),
    }
}

fn own_fault(error: WireError) -> Status {
    Status::internal(format!("the provider's answer does not fit its schema: {error}"))
}

#[async_trait]
impl<P: Provider + 'static> Handler for Service<P> {
    fn version(&self) -> Version {
        self.version
    }

    async fn call(&self, path: &str, message: Bytes) -> Result<Bytes, Status> {
        let method = Method::from_path(self.version, path).ok_or_else(|| Status::unimplemented(path))?;
        match method {
            Method::GetProviderSchema => {
                let schema = self.provider.schema().await.map_err(status)?;
                Ok(schema_to_wire(self.version, &schema).map_err(own_fault)?.into())
            }
            Method::GetResourceIdentitySchemas => {
                let schema = self.provider.schema().await.map_err(status)?;
                Ok(identities_to_wire(&schema).into())
            }
            Method::ValidateProviderConfig => {
                self.answer(message, |p, ValidateProviderConfig(config)| p.validate_provider_config(config)).await
            }
            Method::ValidateResourceConfig => self.answer(message, P::validate_resource_config).await,
            Method::ValidateDataResourceConfig => {
                self.answer(message, |p, ValidateDataConfig(call)| p.validate_data_config(call)).await
            }
            Method::ConfigureProvider => self.answer(message, P::configure).await,
            Method::UpgradeResourceState => self.answer(message, P::upgrade_resource_state).await,
            Method::UpgradeResourceIdentity => self.answer(message, P::upgrade_resource_identity).await,
            Method::ReadResource => self.answer(message, P::read_resource).await,
            Method::PlanResourceChange => self.answer(message, P::plan_resource_change).await,
            Method::ApplyResourceChange => self.answer(message, P::apply_resource_change).await,
            Method::ImportResourceState => self.answer(message, P::import_resource_state).await,
            Method::ReadDataSource => self.answer(message, P::read_data_source).await,
            Method::StopProvider => {
                self.answer(message, |p, StopProvider| async { p.stop().await.map(|()| String::new()) }).await
            }
        }
    }
}
