//! Trusted CAs, and the client certificate.

use crate::ClientError;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

/// A client certificate and its key, for servers that require one. `Debug` does not show it.
#[derive(Clone)]
pub struct ClientIdentity(ClientCert);

impl ClientIdentity {
    /// Reads the certificate and its intermediates in `chain` and the key in `key`. Both are PEM, and the key has no
    /// passphrase.
    ///
    /// # Errors
    /// [`ClientError::Identity`] if one of them is invalid.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, ClientError> {
        let chain = certificates(chain).filter(|chain| !chain.is_empty());
        let chain = chain.ok_or(ClientError::Identity("no valid PEM certificate found"))?;
        let no_key = ClientError::Identity("no valid PEM private key found; keys with a passphrase are not supported");
        Ok(Self(ClientCert::new_with_certs(&chain, PrivateKey::from_pem(key).map_err(|_| no_key)?)))
    }
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientIdentity(..)")
    }
}

/// Returns a TLS configuration that trusts the CAs of the operating system and those in `ca_file`.
pub(crate) fn tls(ca_file: Option<&Path>, identity: Option<&ClientIdentity>) -> Result<TlsConfig, ClientError> {
    // Skip CAs that cannot be read, because the others may be sufficient.
    let system = rustls_native_certs::load_native_certs().certs;
    let mut trusted: Vec<_> = system.iter().map(|found| Certificate::from_der(found).to_owned()).collect();
    if let Some(path) = ca_file {
        trusted.append(&mut read(path)?);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(TlsConfig::builder()
        .client_cert(identity.map(|identity| identity.0.clone()))
        .root_certs(RootCerts::new_with_certs(&trusted))
        .unversioned_rustls_crypto_provider(provider)
        .build())
}

fn read(path: &Path) -> Result<Vec<Certificate<'static>>, ClientError> {
    let flawed = |source| ClientError::CaFile { path: path.to_owned(), source };
    let pem = std::fs::read(path).map_err(|error| flawed(Some(error)))?;
    certificates(&pem).filter(|found| !found.is_empty()).ok_or_else(|| flawed(None))
}

/// Returns the certificates in `pem`, or `None` if it is malformed.
fn certificates(pem: &[u8]) -> Option<Vec<Certificate<'static>>> {
    let mut certificates = Vec::new();
    for item in parse_pem(pem) {
        if let PemItem::Certificate(certificate) = item.ok()? {
            certificates.push(certificate);
        }
    }
    Some(certificates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_without_certificates_is_refused() {
        for path in ["/nowhere/ca.pem", "/dev/null", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")] {
            let violation = tls(Some(Path::new(path)), None).err();
            assert!(
                matches!(&violation, Some(ClientError::CaFile { path: named, .. }) if *named == *path),
                "{violation:?}"
            );
        }
        assert!(tls(None, None).is_ok());
    }

    #[test]
    fn identity_is_a_certificate_and_its_key() {
        let made = rcgen::generate_simple_self_signed(["client".to_owned()]).expect("a certificate");
        let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let identity = ClientIdentity::from_pem(chain.as_bytes(), key.as_bytes()).expect("an identity");
        assert_eq!(format!("{identity:?}"), "ClientIdentity(..)");
        for (chain, key) in [(&*chain, ""), ("", &*key), (&*chain, &*chain), (&*key, &*key), ("-----BEGIN", "x")] {
            let violation = ClientIdentity::from_pem(chain.as_bytes(), key.as_bytes()).err();
            assert!(matches!(violation, Some(ClientError::Identity(_))), "{violation:?}");
        }
    }
}
