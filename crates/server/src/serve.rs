//! Connections: how many, how slow, with or without TLS.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

struct Limits {
    /// At the same time; more of them wait in the system's backlog.
    connections: usize,
    /// A client that takes longer for the headers of a request is sent away.
    headers: Duration,
}

const LIMITS: Limits = Limits { connections: 8192, headers: Duration::from_secs(15) };

/// The same for its TLS handshake.
const SLOWEST_HANDSHAKE: Duration = Duration::from_secs(10);

/// Headers of one request, in bytes.
const LARGEST_HEADERS: usize = 64 << 10;

const MOST_STREAMS: u32 = 256;

/// How long requests in flight may take after the server was asked to stop.
const DRAIN: Duration = Duration::from_secs(10);

/// After an error of the listener, such as too many open files.
const AFTER_AN_ERROR: Duration = Duration::from_millis(100);

/// A certificate with its key, ready for use.
#[derive(Clone)]
pub struct Tls(Arc<ServerConfig>);

impl Tls {
    /// Reads a certificate chain and its private key, both in PEM.
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Tls, String> {
        let named = |path: &Path, e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let chain = chain.map_err(|e| named(certificate, &e))?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(|e| named(key, &e))?;
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.and_then(|config| config.with_no_client_auth().with_single_cert(chain, key));
        let mut config = config.map_err(|e| named(certificate, &e))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Tls(Arc::new(config)))
    }
}

/// Serves until `stopping` fires, then lets requests in flight come to their end.
pub(crate) async fn serve(listener: TcpListener, router: Router, tls: Option<Tls>, stopping: CancellationToken) {
    serve_within(LIMITS, listener, router, tls, stopping).await;
}

async fn serve_within(
    limits: Limits,
    listener: TcpListener,
    router: Router,
    tls: Option<Tls>,
    stopping: CancellationToken,
) {
    let places = Arc::new(Semaphore::new(limits.connections));
    let graceful = GracefulShutdown::new();
    let connections = Connections { router, builder: builder(limits.headers), stopping: stopping.clone() };
    let acceptor = tls.map(|Tls(config)| TlsAcceptor::from(config));
    loop {
        let accepted = tokio::select! {
            accepted = next(&listener, &places) => accepted,
            () = stopping.cancelled() => break,
        };
        let (stream, peer, place) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "no connection can be taken");
                tokio::time::sleep(AFTER_AN_ERROR).await;
                continue;
            }
        };
        let (connections, watcher, acceptor) = (connections.clone(), graceful.watcher(), acceptor.clone());
        tokio::spawn(async move {
            let _place = place;
            match acceptor {
                None => connections.carry(stream, peer, watcher).await,
                Some(acceptor) => match tokio::time::timeout(SLOWEST_HANDSHAKE, acceptor.accept(stream)).await {
                    Ok(Ok(stream)) => connections.carry(stream, peer, watcher).await,
                    Ok(Err(error)) => tracing::debug!(%peer, %error, "no TLS"),
                    Err(_) => tracing::debug!(%peer, "the TLS handshake took too long"),
                },
            }
        });
    }
    let _ = tokio::time::timeout(DRAIN, graceful.shutdown()).await;
}

async fn next(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> std::io::Result<(tokio::net::TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
    let (stream, peer) = listener.accept().await?;
    // Answers are small and complete: waiting for more to send would only delay them.
    stream.set_nodelay(true)?;
    Ok((stream, peer, place))
}

fn builder(slowest_headers: Duration) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(slowest_headers).max_buf_size(LARGEST_HEADERS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_STREAMS)
        .max_header_list_size(LARGEST_HEADERS as u32)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20));
    builder
}

#[derive(Clone)]
struct Connections {
    router: Router,
    builder: auto::Builder<TokioExecutor>,
    stopping: CancellationToken,
}

impl Connections {
    async fn carry<S>(&self, stream: S, peer: SocketAddr, watcher: hyper_util::server::graceful::Watcher)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let router = self.router.clone();
        let service = hyper::service::service_fn(move |request: Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            router.clone().oneshot(request)
        });
        let connection = self.builder.serve_connection(TokioIo::new(stream), service);
        if let Err(error) = watcher.watch(connection.into_owned()).await
            && !self.stopping.is_cancelled()
        {
            tracing::debug!(%peer, %error, "a connection broke");
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    async fn answer(mut client: TcpStream, request: &[u8]) -> String {
        client.write_all(request).await.unwrap();
        let mut text = Vec::new();
        // A server that hangs up on what it has not read may reset the connection.
        let _ = client.read_to_end(&mut text).await;
        String::from_utf8_lossy(&text).into_owned()
    }

    #[tokio::test]
    async fn slow_clients_are_sent_away_and_others_get_their_place() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/", axum::routing::get(async || "hello"));
        let limits = Limits { connections: 2, headers: Duration::from_millis(300) };
        tokio::spawn(serve_within(limits, listener, router, None, CancellationToken::new()));
        let mut slow = Vec::new();
        for _ in 0..2 {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nx-slow: ").await.unwrap();
            slow.push(client);
        }
        // All places are taken: it waits until somebody was sent away, and is answered then.
        let client = TcpStream::connect(address).await.unwrap();
        let text = answer(client, b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
        assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("hello"), "{text}");
        for client in slow {
            assert!(!answer(client, b"").await.contains("200 OK"), "it never asked for anything");
        }
        let long = format!("GET / HTTP/1.1\r\nhost: x\r\nx-long: {}\r\n\r\n", "x".repeat(2 * LARGEST_HEADERS));
        let text = answer(TcpStream::connect(address).await.unwrap(), long.as_bytes()).await;
        assert!(!text.contains("200 OK"), "{text}");
    }
}
