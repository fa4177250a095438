use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::version::TLS13;

use crate::serve::ServeError;

/// TLS with a certificate of this process alone, as OpenTofu insists on it: a caller that sends its own certificate
/// does not accept a plaintext socket in return, not even with an empty certificate in the greeting.
///
/// The caller checks our certificate. We do not check the caller's (its P-521 keys would need another library): the
/// socket lies in a folder that only its user can enter, and that user can do anything to this process anyway.
pub(crate) struct Tls {
    pub acceptor: TlsAcceptor,
    /// For the greeting.
    pub certificate: String,
}

impl Tls {
    pub fn new() -> Result<Tls, ServeError> {
        let failed = |error: &dyn std::error::Error| ServeError::Tls(error.to_string());
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).map_err(|error| failed(&error))?;
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS13])
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![certificate.clone()], key))
            .map_err(|error| failed(&error))?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Tls { acceptor: TlsAcceptor::from(Arc::new(config)), certificate: STANDARD_NO_PAD.encode(certificate) })
    }
}
