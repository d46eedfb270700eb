//! The activation client over TLS, against a server that requires client certificates.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use secrecy::SecretString;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use vault_client::{ActivationClient, ActivationSettings, ClientError, ClientIdentity};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Returns a certificate for `localhost`, issued by `authority`, and its key, both PEM.
fn certificate(authority: &Authority, purpose: ExtendedKeyUsagePurpose) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.extended_key_usages = vec![purpose];
    (params.signed_by(&key, authority).unwrap().pem(), key.serialize_pem())
}

fn identity(authority: &Authority) -> ClientIdentity {
    let (chain, key) = certificate(authority, ExtendedKeyUsagePurpose::ClientAuth);
    ClientIdentity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap()
}

/// Starts a server for one request, which requires a client certificate issued by `authority`. Returns its address.
fn serve(authority: &Authority) -> String {
    let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(der(&authority.pem())).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build().unwrap();
    let (chain, key) = certificate(authority, ExtendedKeyUsagePurpose::ServerAuth);
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![der(&chain)], PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap())
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("https://localhost:{}/v1", listener.local_addr().unwrap().port());
    std::thread::spawn(move || {
        let (socket, _) = listener.accept().unwrap();
        let mut stream = StreamOwned::new(ServerConnection::new(Arc::new(config)).unwrap(), socket);
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            // A rejected client has closed the connection.
            match stream.read(&mut byte) {
                Ok(1) => request.push(byte[0]),
                _ => return,
            }
        }
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]");
    });
    address
}

fn list(address: &str, ca_file: Option<PathBuf>, identity: Option<ClientIdentity>) -> Result<usize, ClientError> {
    let settings = ActivationSettings { ca_file, identity, ..ActivationSettings::default() };
    let client = ActivationClient::new(&address.parse()?, SecretString::from("ovi_token"), &settings)?;
    client.list().map(|live| live.len())
}

#[test]
fn both_sides_show_certificates() {
    let directory = TempDir::new().unwrap();
    let (ours, other) = (authority(), authority());
    let ca_file = directory.path().join("ca.pem");
    std::fs::write(&ca_file, ours.pem()).unwrap();
    let trusting = || Some(ca_file.clone());
    assert_eq!(list(&serve(&ours), trusting(), Some(identity(&ours))).unwrap(), 0);
    for (ca_file, identity) in [(trusting(), None), (trusting(), Some(identity(&other))), (None, Some(identity(&ours)))]
    {
        let error = list(&serve(&ours), ca_file, identity).unwrap_err();
        assert!(matches!(error, ClientError::Transport { .. }), "{error:?}");
    }
}
