//! Trusted CA certificates.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An error in the trusted certificates.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Cause of the failure.
        source: std::io::Error,
    },
    /// The file contains no certificate, or an invalid one.
    #[error("{} does not contain valid PEM certificates", .0.display())]
    NoCertificates(PathBuf),
    /// The TLS provider does not support the configuration.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// Reads the PEM certificates in `path`.
pub(crate) fn certificates_in(path: &Path) -> Result<Vec<CertificateDer<'static>>, TrustError> {
    let content = fs::read(path).map_err(|source| TrustError::Unreadable { path: path.to_owned(), source })?;
    certificates(&content).ok_or_else(|| TrustError::NoCertificates(path.to_owned()))
}

/// Parses PEM certificates. Returns `None` if there is none, or one is invalid.
pub(super) fn certificates(text: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(text).collect::<Result<_, _>>().ok()?;
    let mut roots = RootCertStore::empty();
    let usable = !found.is_empty() && found.iter().all(|certificate| roots.add(certificate.clone()).is_ok());
    usable.then_some(found)
}

/// Creates a TLS configuration that trusts the system's certificates and these.
pub(super) fn tls(certificates: Vec<CertificateDer<'static>>) -> Result<Arc<ClientConfig>, TrustError> {
    let mut roots = RootCertStore::empty();
    // If the system has no certificates, every connection fails with a TLS error.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots.add_parsable_certificates(certificates);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
