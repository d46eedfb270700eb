//! Whose certificates are believed.

use crate::ClientError;
use std::path::Path;
use std::sync::Arc;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// TLS that trusts the operating system's authorities, and those in `ca_file`.
pub(crate) fn tls(ca_file: Option<&Path>) -> Result<TlsConfig, ClientError> {
    // One that cannot be read is one the less to trust; the rest will do.
    let system = rustls_native_certs::load_native_certs().certs;
    let mut trusted: Vec<_> = system.iter().map(|found| Certificate::from_der(found).to_owned()).collect();
    if let Some(path) = ca_file {
        trusted.append(&mut read(path)?);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&trusted))
        .unversioned_rustls_crypto_provider(provider)
        .build())
}

fn read(path: &Path) -> Result<Vec<Certificate<'static>>, ClientError> {
    let flawed = |source| ClientError::CaFile { path: path.to_owned(), source };
    let pem = std::fs::read(path).map_err(|error| flawed(Some(error)))?;
    let mut certificates = Vec::new();
    for item in parse_pem(&pem) {
        if let PemItem::Certificate(certificate) = item.map_err(|_| flawed(None))? {
            certificates.push(certificate);
        }
    }
    if certificates.is_empty() { Err(flawed(None)) } else { Ok(certificates) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_certificates_is_refused() {
        for path in ["/nowhere/ca.pem", "/dev/null", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")] {
            let flaw = tls(Some(Path::new(path))).err();
            assert!(matches!(&flaw, Some(ClientError::CaFile { path: named, .. }) if *named == *path), "{flaw:?}");
        }
        assert!(tls(None).is_ok());
    }
}
