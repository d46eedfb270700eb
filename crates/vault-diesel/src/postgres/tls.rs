//! TLS to PostgreSQL. If TLS is used, the certificate and name of the server are always verified.

use super::settings::ConnectError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use std::error::Error;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_postgres::config::Host;
use tokio_postgres_rustls::MakeRustlsConnect;

/// TLS parameters of a database URL that the driver does not support.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TlsMode {
    /// Whether TLS is required or disabled. `None` if the URL does not specify it.
    pub(super) wanted: Option<bool>,
    /// File with the CA certificates to trust instead of those of the system.
    pub(super) roots: Option<PathBuf>,
}

/// Removes the TLS parameters from a URL, and returns both.
pub(super) fn split_address(url: &str) -> (String, TlsMode) {
    let Some((base, parameters)) = url.split_once('?') else { return (url.to_owned(), TlsMode::default()) };
    let mut tls_mode = TlsMode::default();
    let mut kept = Vec::new();
    for parameter in parameters.split('&') {
        match parameter.split_once('=') {
            Some(("sslmode", "disable")) => tls_mode.wanted = Some(false),
            Some(("sslmode", "require" | "verify-ca" | "verify-full")) => tls_mode.wanted = Some(true),
            Some(("sslmode", "allow" | "prefer")) => {}
            Some(("sslrootcert", file)) => tls_mode.roots = Some(PathBuf::from(percent_decoded(file))),
            _ => kept.push(parameter),
        }
    }
    let address = if kept.is_empty() { base.to_owned() } else { format!("{base}?{}", kept.join("&")) };
    (address, tls_mode)
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = (*first == b'%')
            .then(|| tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok()))
            .flatten()
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns whether every connection stays on this host. The driver connects to `addresses` (`hostaddr`) instead of
/// `hosts`, whose names then only verify certificates. A URL without a host does not count as local.
pub(super) fn is_local(hosts: &[Host], addresses: &[IpAddr]) -> bool {
    let local = |host: &Host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback()),
    };
    !hosts.is_empty() && hosts.iter().all(local) && addresses.iter().all(IpAddr::is_loopback)
}

/// Creates the connector, which trusts the given CA certificates or those of the system.
pub(super) fn connector(roots: Option<&Path>) -> Result<MakeRustlsConnect, ConnectError> {
    build(roots).map_err(ConnectError::Certificates)
}

fn build(roots: Option<&Path>) -> Result<MakeRustlsConnect, Box<dyn Error + Send + Sync>> {
    let mut trusted = RootCertStore::empty();
    match roots {
        Some(file) => {
            for certificate in CertificateDer::pem_file_iter(file)? {
                trusted.add(certificate?)?;
            }
        }
        None => {
            trusted.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if trusted.is_empty() {
        return Err("no CA certificate found".into());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(trusted)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_tls_parameters_from_url() {
        let (address, tls_mode) = split_address("postgres://h/d?user=u&sslmode=verify-full&sslrootcert=/a%20b/ca.pem");
        assert_eq!(address, "postgres://h/d?user=u");
        assert_eq!(tls_mode, TlsMode { wanted: Some(true), roots: Some(PathBuf::from("/a b/ca.pem")) });
        assert_eq!(split_address("postgres://h/d?sslmode=disable").1.wanted, Some(false));
        assert_eq!(split_address("postgres://h/d"), ("postgres://h/d".to_owned(), TlsMode::default()));
    }

    #[test]
    fn distinguishes_local_from_remote_addresses() {
        let tcp = |name: &str| Host::Tcp(name.to_owned());
        let local = [Host::Unix("/run/postgresql".into()), tcp("127.0.0.1"), tcp("::1"), tcp("localhost")];
        assert!(is_local(&local, &[]));
        assert!(!is_local(&[tcp("localhost"), tcp("db.example")], &[]));
        assert!(!is_local(&[], &[]), "no host is named");
        let loopback: IpAddr = "127.0.0.1".parse().unwrap();
        assert!(is_local(&local, &[loopback]));
        assert!(!is_local(&local, &[loopback, "192.0.2.1".parse().unwrap()]), "one address is elsewhere");
        assert!(!is_local(&[], &[loopback]), "no host is named");
    }
}
