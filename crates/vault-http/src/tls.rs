//! TLS of a listener: parsing of PEM files, and replacement of the certificate while the listener runs.

use rustls::client::verify_server_name;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{
    ClientHello, NoServerSessionStorage, ParsedCertificate, ResolvesServerCert, WebPkiClientVerifier,
};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{Error as RustlsError, RootCertStore, ServerConfig};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use webpki::EndEntityCert;

/// TLS 1.2 and 1.3 with a certificate and key, which can be replaced while listeners use them. Clones share them.
#[derive(Clone)]
pub struct Tls {
    current: Arc<Current>,
    config: ServerConfig,
}

struct Current(RwLock<Arc<CertifiedKey>>);

impl Current {
    fn get(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.get())
    }
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Current")
    }
}

/// A certificate or key that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The file contains no PEM certificate.
    #[error("the certificate file has no valid PEM certificate")]
    NoCertificate,
    /// The file contains no PEM key, or only an encrypted one.
    #[error("the key file has no valid PEM private key; keys with a passphrase are not supported")]
    NoKey,
    /// The key does not match the certificate.
    #[error("the key does not belong to the first certificate in the certificate file")]
    Mismatch,
    /// The file contains no PEM certificate of a client CA.
    #[error("the file of client CA certificates has no valid PEM certificate")]
    NoAuthority,
    /// The type of certificate or key is not supported.
    #[error("cannot use certificate and key: {0}")]
    Unusable(String),
}

impl From<RustlsError> for TlsError {
    fn from(error: RustlsError) -> Self {
        match error {
            RustlsError::InconsistentKeys(_) => Self::Mismatch,
            error => Self::Unusable(error.to_string()), // contains a reason, never a key
        }
    }
}

impl Tls {
    /// Creates a configuration from the PEM chain `certificates`, server certificate first, and its PEM `key`.
    ///
    /// # Errors
    /// One of them cannot be used, or they do not match.
    pub fn new(certificates: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        Self::create(certificates, key, None)
    }

    /// Same as [`Tls::new`], and requires client certificates issued by a CA in the PEM `authority`.
    ///
    /// # Errors
    /// One of them cannot be used, or certificate and key do not match.
    pub fn with_client_authority(certificates: &[u8], key: &[u8], authority: &[u8]) -> Result<Self, TlsError> {
        Self::create(certificates, key, Some(authority))
    }

    fn create(certificates: &[u8], key: &[u8], authority: Option<&[u8]>) -> Result<Self, TlsError> {
        let current = Arc::new(Current(RwLock::new(certified(certificates, key)?)));
        let provider = Arc::new(default_provider());
        let builder =
            ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(&[&TLS13, &TLS12])?;
        let builder = match authority {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                let found = CertificateDer::pem_slice_iter(authority).collect::<Result<Vec<_>, _>>();
                roots.add_parsable_certificates(found.map_err(|_| TlsError::NoAuthority)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                builder.with_client_cert_verifier(verifier.map_err(|_| TlsError::NoAuthority)?)
            }
        };
        let mut config = builder.with_cert_resolver(Arc::clone(&current) as _);
        // A resumed session would continue with a certificate that has been replaced.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self { current, config })
    }

    /// Replaces chain and key for all new handshakes. The requirement of client certificates stays unchanged.
    ///
    /// # Errors
    /// One of them cannot be used, or they do not match. The previous ones stay in use.
    pub fn replace(&self, certificates: &[u8], key: &[u8]) -> Result<(), TlsError> {
        let certified = certified(certificates, key)?;
        *self.current.0.write().unwrap_or_else(PoisonError::into_inner) = certified;
        Ok(())
    }

    /// Returns the configuration of a listener.
    pub(crate) fn config(&self) -> ServerConfig {
        self.config.clone()
    }

    /// Returns whether the certificate is valid for `name`.
    pub(crate) fn names(&self, name: &ServerName<'_>) -> bool {
        let current = self.current.get();
        let certificate = current.end_entity_cert().and_then(ParsedCertificate::try_from);
        certificate.is_ok_and(|certificate| verify_server_name(&certificate, name).is_ok())
    }
}

/// Returns the first host name in the first certificate of a PEM chain that is not a wildcard.
pub fn certificate_name(certificates: &[u8]) -> Option<String> {
    let first = CertificateDer::pem_slice_iter(certificates).next()?.ok()?;
    let certificate = EndEntityCert::try_from(&first).ok()?;
    certificate.valid_dns_names().find(|name| !name.starts_with('*')).map(str::to_owned)
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

fn certified(certificates: &[u8], key: &[u8]) -> Result<Arc<CertifiedKey>, TlsError> {
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(certificates).collect::<Result<_, _>>().map_err(|_| TlsError::NoCertificate)?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate);
    }
    // The parser's error may contain parts of the key.
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsError::NoKey)?;
    Ok(Arc::new(CertifiedKey::from_der(chain, key, &default_provider())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertifiedKey, KeyPair};

    /// Generates a certificate and its key in PEM.
    fn pair() -> Option<(String, String)> {
        let CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(["localhost".to_owned()]).ok()?;
        Some((cert.pem(), signing_key.serialize_pem()))
    }

    #[test]
    fn certificate_requires_matching_key() {
        let (Some((certificate, key)), Some((other, _))) = (pair(), pair()) else { panic!("ring makes keys") };
        let tls = Tls::new(certificate.as_bytes(), key.as_bytes()).ok();
        let Some(tls) = tls else { panic!("a sound pair") };
        let violation = |certificate: &str, key: &str| {
            let (fresh, kept) = (
                Tls::new(certificate.as_bytes(), key.as_bytes()).err(),
                tls.replace(certificate.as_bytes(), key.as_bytes()).err(),
            );
            assert_eq!(fresh.as_ref().map(ToString::to_string), kept.map(|violation| violation.to_string()));
            fresh
        };
        assert!(matches!(violation(&other, &key), Some(TlsError::Mismatch)));
        for certificate in ["", "nonsense", &key, &certificate[..certificate.len() / 2]] {
            assert!(matches!(violation(certificate, &key), Some(TlsError::NoCertificate)), "{certificate}");
        }
        let locked =
            key.replace("BEGIN PRIVATE", "BEGIN ENCRYPTED PRIVATE").replace("END PRIVATE", "END ENCRYPTED PRIVATE");
        for key in ["", "nonsense", &certificate, &key[..key.len() / 2], &locked] {
            assert!(matches!(violation(&certificate, key), Some(TlsError::NoKey)));
        }
        let garbage = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        assert!(matches!(violation(&certificate, garbage), Some(TlsError::Unusable(_))));
        assert!(violation(&certificate, &key).is_none());
        assert!(KeyPair::from_pem(&key).is_ok());
        assert_eq!(format!("{tls:?}"), "Tls");
    }

    #[test]
    fn certificate_names_its_first_host() {
        let name = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            let created = rcgen::generate_simple_self_signed(names).ok();
            created.and_then(|created| certificate_name(created.cert.pem().as_bytes()))
        };
        assert_eq!(name(&["192.0.2.1", "*.example.com", "vault.example.com"]).as_deref(), Some("vault.example.com"));
        assert_eq!(name(&["192.0.2.1"]), None);
        assert_eq!(certificate_name(b"nonsense"), None);
    }

    #[test]
    fn client_ca_file_contains_certificates() {
        let Some((certificate, key)) = pair() else { panic!("ring makes keys") };
        let tls = |authority: &str| {
            let tls = Tls::with_client_authority(certificate.as_bytes(), key.as_bytes(), authority.as_bytes());
            tls.err().map(|error| error.to_string())
        };
        assert_eq!(tls(&certificate), None);
        assert_eq!(tls(&format!("{certificate}{certificate}")), None);
        let half = format!("{certificate}{}", &certificate[..certificate.len() / 2]);
        for flawed in ["", "nonsense", &key, &half] {
            assert_eq!(tls(flawed), Some(TlsError::NoAuthority.to_string()), "{flawed}");
        }
    }
}
