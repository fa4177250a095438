use async_trait::async_trait;
use hyper::body::Bytes;
use hyper::http::{Request, Response};

/// A way for requests without a socket, where one program is at both ends of it.
#[async_trait]
pub trait Shortcut: Send + Sync {
    /// Whether this is a way to that address.
    fn leads_to(&self, url: &str) -> bool;

    /// Dropping this gives the request up, as closing a connection would.
    async fn send(&self, request: Request<Bytes>) -> Response<Bytes>;
}
