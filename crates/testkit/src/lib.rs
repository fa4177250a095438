//! What tests stand on: real parts (OpenTofu, providers, PostgreSQL) and the judges that watch them.
//!
//! Promise: nothing here pretends. A part is the real thing, found where [`parts`] says, or the test fails and says
//! how to get it. Absent on purpose: fetching parts (that is `cargo xtask parts`).

pub mod figures;
pub mod judge;
pub mod landform;
pub mod ledger;
mod lines;
pub mod oracle;
pub mod parts;
pub mod postgres;
pub mod probe;
pub mod programs;
pub mod tofu;
pub mod transcript;

/// An HTTP client for servers on this machine, which are spoken to in clear. All the same its TLS needs an implementation
/// for the whole process, which is installed here.
pub fn http_client(patience: std::time::Duration) -> reqwest::Client {
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().timeout(patience).tls_certs_only([]).build().expect("a client")
}
