use std::path::PathBuf;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use landform_protocol::CallError;
use landform_protocol::wire::{Call, MAX_MESSAGE_BYTES, Method, RawCodec, Types, Version};
use prost::Message;
use prost::bytes::Bytes;
use tokio::net::UnixStream;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Code, Request, Status};

/// Large, so that a schema of some megabytes is not sent in slices of 64 KiB, each waiting for the last.
const WINDOW_BYTES: u32 = 4 << 20;

/// Every plugin has this service; its request names the service asked about, `plugin`.
const HEALTH: &str = "/grpc.health.v1.Health/Check";
const HEALTH_REQUEST: &[u8] = b"\x0a\x06plugin";

/// Asks a process to end by itself; part of the plugin system, not of the provider protocol.
const SHUTDOWN: &str = "/plugin.GRPCController/Shutdown";

/// The caller's side of one provider's socket.
#[derive(Clone, Debug)]
pub struct Client {
    channel: Channel,
    version: Version,
}

impl Client {
    pub async fn connect(
        socket: PathBuf,
        version: Version,
        timeout: Duration,
    ) -> Result<Client, tonic::transport::Error> {
        let connector = tower::service_fn(move |_: Uri| {
            let socket = socket.clone();
            async move { UnixStream::connect(socket).await.map(TokioIo::new) }
        });
        let channel = Endpoint::from_static("http://provider.invalid")
            .connect_timeout(timeout)
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .connect_with_connector(connector)
            .await?;
        Ok(Client { channel, version })
    }

    pub fn version(&self) -> Version {
        self.version
    }

    /// Passes a message through as it is.
    pub async fn forward(&self, path: PathAndQuery, message: Bytes) -> Result<Bytes, Status> {
        let mut grpc = tonic::client::Grpc::new(self.channel.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let response = grpc.unary(Request::new(message), path, RawCodec).await?;
        Ok(response.into_inner())
    }

    /// Whether somebody answers. A socket that takes connections and then is silent would be noticed in the first
    /// call only, which nobody can tell from a call that takes long.
    pub(crate) async fn ping(&self) -> Result<(), Status> {
        match self.forward(PathAndQuery::from_static(HEALTH), Bytes::from_static(HEALTH_REQUEST)).await {
            Err(status) if !matches!(status.code(), Code::Unimplemented | Code::NotFound) => Err(status),
            _ => Ok(()),
        }
    }

    pub(crate) async fn schema(&self) -> Result<Bytes, Status> {
        let path = PathAndQuery::from_static(Method::GetProviderSchema.path(self.version));
        self.forward(path, Bytes::new()).await
    }

    pub(crate) async fn identities(&self) -> Result<Bytes, Status> {
        let path = PathAndQuery::from_static(Method::GetResourceIdentitySchemas.path(self.version));
        self.forward(path, Bytes::new()).await
    }

    pub(crate) async fn shutdown(&self) -> Result<(), Status> {
        self.forward(PathAndQuery::from_static(SHUTDOWN), Bytes::new()).await.map(drop)
    }

    pub(crate) async fn call<C: Call>(&self, call: &C, types: &Types) -> Result<C::Answer, Failure> {
        let malformed = |detail: String| Failure::Answered(CallError::Malformed { call: C::METHOD.name(), detail });
        let request = call.to_wire(types).map_err(|error| malformed(error.to_string()))?;
        let path = PathAndQuery::from_static(C::METHOD.path(self.version));
        let response = self.forward(path, request.encode_to_vec().into()).await.map_err(Failure::Status)?;
        let response = C::Response::decode(response).map_err(|error| malformed(error.to_string()))?;
        call.answer_from_wire(response, types).map_err(|error| malformed(error.to_string()))
    }
}

/// A call without an answer. A status alone does not tell whether the process is still there.
#[derive(Debug)]
pub(crate) enum Failure {
    Answered(CallError),
    Status(Status),
}

pub(crate) fn is_unsupported(status: &Status) -> bool {
    status.code() == Code::Unimplemented
}
