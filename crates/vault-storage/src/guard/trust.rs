//! Whose certificates are believed.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The certificates that stores are to be known by cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// There is no certificate in the file, or one that is none.
    #[error("{} does not contain valid PEM certificates", .0.display())]
    NoCertificates(PathBuf),
    /// The provider does not do what is asked of it.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// TLS that believes whom the operating system believes, and the owners of the certificates in `ca_file`.
pub(super) fn tls(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, TrustError> {
    let mut roots = RootCertStore::empty();
    // Where the system has none, every connection fails and says so.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        let content = fs::read(path).map_err(|source| TrustError::Unreadable { path: path.to_owned(), source })?;
        let unusable = || TrustError::NoCertificates(path.to_owned());
        let certificates: Vec<_> =
            CertificateDer::pem_slice_iter(&content).collect::<Result<_, _>>().map_err(|_| unusable())?;
        if certificates.is_empty() {
            return Err(unusable());
        }
        for certificate in certificates {
            roots.add(certificate).map_err(|_| unusable())?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
