use std::convert::Infallible;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Arc;

use async_trait::async_trait;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use landform_protocol::wire::{MAGIC_COOKIE, MAX_MESSAGE_BYTES, RawCodec, Version};
use prost::bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, Interest};
use tokio::net::UnixListener;
use tokio::net::unix::pipe::Sender;
use tokio::sync::Notify;
use tonic::body::Body;
use tonic::server::{Grpc, UnaryService};
use tonic::{Response, Status};

use crate::tls::Tls;

const SHUTDOWN: &str = "/plugin.GRPCController/Shutdown";
const HEALTH: &str = "/grpc.health.v1.Health/Check";
/// `HealthCheckResponse { status: SERVING }`
const SERVING: &[u8] = &[0x08, 0x01];

/// Large, so that a schema of some megabytes is not sent in slices of 64 KiB, each waiting for the last.
const WINDOW_BYTES: u32 = 4 << 20;

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("this program is a provider: Terraform, OpenTofu or Landform start it, not people")]
    StartedByHand,
    #[error("the caller speaks protocols {offered}, this provider speaks {ours}")]
    Protocol { offered: String, ours: Version },
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Answers the calls of the provider protocol, as bytes.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    fn version(&self) -> Version;

    /// `path` is that of the gRPC request.
    async fn call(&self, path: &str, message: Bytes) -> Result<Bytes, Status>;
}

/// Greets whoever started this process and answers until told to end, or until the caller is gone.
///
/// Of the plugin system's own services it has what the callers need: health, and the order to end. They do without
/// the other two, a broker for connections back to the caller and a copy of the standard output.
pub async fn serve(handler: Arc<dyn Handler>) -> Result<(), ServeError> {
    if std::env::var(MAGIC_COOKIE.0).as_deref() != Ok(MAGIC_COOKIE.1) {
        return Err(ServeError::StartedByHand);
    }
    let ours = handler.version();
    let offered = std::env::var("PLUGIN_PROTOCOL_VERSIONS").unwrap_or_default();
    if !offered.is_empty() && !offered.split(',').any(|number| number.trim() == ours.number().to_string()) {
        return Err(ServeError::Protocol { offered, ours });
    }
    let tls = std::env::var_os("PLUGIN_CLIENT_CERT").is_some().then(Tls::new).transpose()?;

    let parent = std::env::var_os("PLUGIN_UNIX_SOCKET_DIR").map_or_else(std::env::temp_dir, Into::into);
    // Its mode is 0700, whatever the parent's.
    let folder = tempfile::Builder::new().prefix("plugin").tempdir_in(parent)?;
    let socket = folder.path().join("socket");
    let listener = UnixListener::bind(&socket)?;
    let certificate = tls.as_ref().map_or("", |tls| &tls.certificate);
    {
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "1|{ours}|unix|{}|grpc|{certificate}", socket.display())?;
        stdout.flush()?;
    }
    let told_to_end = Arc::new(Notify::new());
    tokio::select! {
        result = accept(listener, tls, handler, told_to_end.clone()) => Ok(result?),
        () = told_to_end.notified() => Ok(()),
        () = caller_gone() => Ok(()),
    }
}

/// The caller keeps reading our output for as long as it lives, so a broken pipe there means that it is dead.
async fn caller_gone() {
    let watched = io::stdout().as_fd().try_clone_to_owned().and_then(Sender::from_owned_fd);
    match watched {
        Ok(stdout) => drop(stdout.ready(Interest::ERROR).await),
        // Not a pipe: there is nothing to watch.
        Err(_) => std::future::pending().await,
    }
}

async fn accept(
    listener: UnixListener,
    tls: Option<Tls>,
    handler: Arc<dyn Handler>,
    told_to_end: Arc<Notify>,
) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        let (handler, told_to_end) = (handler.clone(), told_to_end.clone());
        match &tls {
            None => drop(tokio::spawn(connection(stream, handler, told_to_end))),
            Some(tls) => {
                let handshake = tls.acceptor.accept(stream);
                tokio::spawn(async move {
                    // Whoever cannot do TLS is not the caller.
                    if let Ok(stream) = handshake.await {
                        connection(stream, handler, told_to_end).await;
                    }
                });
            }
        }
    }
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    handler: Arc<dyn Handler>,
    told_to_end: Arc<Notify>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (handler, told_to_end) = (handler.clone(), told_to_end.clone());
        async move {
            let call = UnaryCall { path: request.uri().path().to_owned(), handler, told_to_end };
            let mut grpc = Grpc::new(RawCodec)
                .max_decoding_message_size(MAX_MESSAGE_BYTES)
                .max_encoding_message_size(MAX_MESSAGE_BYTES);
            Ok::<hyper::Response<Body>, Infallible>(grpc.unary(call, request).await)
        }
    });
    // A broken connection is the caller's affair: its calls fail there.
    let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

struct UnaryCall {
    path: String,
    handler: Arc<dyn Handler>,
    told_to_end: Arc<Notify>,
}

impl UnaryService<Bytes> for UnaryCall {
    type Response = Bytes;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Response<Bytes>, Status>> + Send>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let (path, handler, told_to_end) = (self.path.clone(), self.handler.clone(), self.told_to_end.clone());
        Box::pin(async move {
            match path.as_str() {
                HEALTH => Ok(Response::new(Bytes::from_static(SERVING))),
                SHUTDOWN => {
                    told_to_end.notify_one();
                    Ok(Response::new(Bytes::new()))
                }
                _ if path.starts_with(&format!("/{}/", handler.version().service())) => {
                    handler.call(&path, request.into_inner()).await.map(Response::new)
                }
                _ => Err(Status::unimplemented(path)),
            }
        })
    }
}
