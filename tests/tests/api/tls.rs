//! The listener over TLS.

use super::app::{App, JSON};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CertifiedKey, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use vault_http::Tls;
use vault_tests::wire::{Wire, request};

/// Far longer than any operation that ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// A certificate for `localhost`, with its key.
pub(crate) struct Identity {
    certificate: String,
    key: String,
}

impl Identity {
    pub(crate) fn new() -> Self {
        let CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        Self { certificate: cert.pem(), key: signing_key.serialize_pem() }
    }

    fn tls(&self) -> Tls {
        Tls::new(self.certificate.as_bytes(), self.key.as_bytes()).unwrap()
    }

    fn der(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap()
    }

    /// Returns a client that trusts only this certificate.
    fn client(&self, versions: &[&'static SupportedProtocolVersion], protocols: &[&str]) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).unwrap();
        let mut client = client.with_root_certificates(roots).with_no_client_auth();
        client.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        client
    }
}

pub(crate) type Stream = StreamOwned<ClientConnection, TcpStream>;

fn handshake(address: SocketAddr, client: ClientConfig) -> Result<Stream, std::io::Error> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(Duration::from_secs(20)))?;
    socket.set_write_timeout(Some(Duration::from_secs(20)))?;
    socket.set_nodelay(true)?;
    let name = ServerName::try_from("localhost").unwrap();
    let mut connection = ClientConnection::new(Arc::new(client), name).unwrap();
    while connection.is_handshaking() {
        connection.complete_io(&mut socket)?;
    }
    Ok(StreamOwned::new(connection, socket))
}

fn stream(app: &App, identity: &Identity) -> Stream {
    handshake(app.address, identity.client(rustls::ALL_VERSIONS, &["http/1.1"])).expect("a handshake")
}

pub(crate) fn wire(app: &App, identity: &Identity) -> Wire<Stream> {
    Wire::over(stream(app, identity))
}

pub(crate) fn app(identity: &Identity) -> (App, Tls) {
    let tls = identity.tls();
    (App::with(|setup| setup.settings.listener.tls = Some(tls.clone())), tls)
}

#[test]
fn both_tls_versions_are_accepted_and_hsts_is_sent() {
    let identity = Identity::new();
    let (app, _) = app(&identity);
    let account = app.account("admin");
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        for protocols in [&[][..], &["http/1.1"], &["h2", "http/1.1"]] {
            let stream = handshake(app.address, identity.client(&[version], protocols)).expect("a handshake");
            assert_eq!(stream.conn.protocol_version(), Some(version.version));
            let spoken = stream.conn.alpn_protocol().map(<[u8]>::to_vec);
            assert_eq!(spoken, protocols.first().map(|_| b"http/1.1".to_vec()));
            let mut wire = Wire::over(stream);
            let login = account.sound_login().to_string();
            for (line, headers, body, status) in [
                ("POST /v1/login", &[JSON][..], &*login, 200),
                ("POST /v1/login", &[JSON], "{}", 400),
                ("GET /v1/organization-vault", &[], "", 401),
                ("GET /nonsense", &[], "", 404),
                ("GET /livez", &[], "", 200),
            ] {
                let answer = wire.exchange(request(line, headers, body)).expect(status);
                answer.check_common();
                let hsts = answer.header("strict-transport-security");
                assert_eq!(hsts, Some("max-age=63072000"), "{line}");
            }
        }
    }
    let refused = handshake(app.address, identity.client(rustls::ALL_VERSIONS, &["h2"]));
    assert!(refused.is_err(), "HTTP/2 is not spoken");
}

#[test]
fn plaintext_responses_have_no_hsts_header() {
    let app = App::start();
    for path in ["GET /livez", "GET /nonsense"] {
        assert_eq!(app.send(path, &[], "").header("strict-transport-security"), None);
    }
}

/// Returns the first record of a handshake whose newest version is 3.`version` (3.3 is TLS 1.2).
fn hello(version: u8) -> Vec<u8> {
    let random = [7; 32];
    let (suites, extensions) = (
        [0xc0, 0x2b, 0xc0, 0x13],
        [
            &[0, 13, 0, 4, 0, 2, 4, 3][..], // signatures: ECDSA
            &[0, 10, 0, 4, 0, 2, 0, 29],    // groups: X25519
            &[0, 11, 0, 2, 1, 0],           // points: uncompressed
        ],
    );
    let body = [&[3, version][..], &random, &[0, 0, 4], &suites, &[1, 0, 0, 22], &extensions.concat()].concat();
    [&[22, 3, 1, 0, 71, 1, 0, 0, 67][..], &body].concat()
}

#[test]
fn older_versions_are_refused() {
    let (app, _) = app(&Identity::new());
    for version in [0, 1, 2, 3] {
        let mut socket = TcpStream::connect(app.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        socket.write_all(&hello(version)).unwrap();
        let mut answer = [0; 7];
        socket.read_exact(&mut answer).unwrap();
        if version == 3 {
            assert_eq!((answer[0], answer[5]), (22, 2), "the server's side of a handshake");
        } else {
            assert_eq!((answer[0], &answer[5..]), (21, &[2, 70][..]), "a fatal alert about the version");
        }
    }
}

#[test]
fn plain_http_on_tls_port_is_closed() {
    let identity = Identity::new();
    let (app, _) = app(&identity);
    let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    for bytes in [&request("GET /livez", &[], "")[..], b"\0", &[0xff; 70_000], hello, b""] {
        let mut socket = TcpStream::connect(app.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let _ = socket.write_all(bytes); // it may be closed before all was sent
        let _ = socket.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    }
    assert_eq!(wire(&app, &identity).exchange(request("GET /livez", &[], "")).status, 200);
}

#[test]
fn silent_handshakes_of_one_host_delay_no_other_client() {
    let identity = Identity::new();
    let app = App::with(|setup| {
        setup.settings.listener.tls = Some(identity.tls());
        setup.settings.listener.deadlines.handshake = 10 * PATIENCE;
    });
    let silent: Vec<_> = (0..600).map(|_| TcpStream::connect(app.address).unwrap()).collect();
    assert_eq!(wire(&app, &identity).exchange(request("GET /livez", &[], "")).status, 200);
    drop(silent);
}

#[test]
fn certificates_are_reloaded_during_connections() {
    let (first, second) = (Identity::new(), Identity::new());
    let (app, tls) = app(&first);
    let mut open = wire(&app, &first);
    assert_eq!(open.exchange(request("GET /livez", &[], "")).status, 200);
    assert!(tls.replace(second.certificate.as_bytes(), first.key.as_bytes()).is_err());
    assert_eq!(stream(&app, &first).conn.peer_certificates(), Some(&[first.der()][..]), "the old one is kept");
    tls.replace(second.certificate.as_bytes(), second.key.as_bytes()).unwrap();
    assert_eq!(stream(&app, &second).conn.peer_certificates(), Some(&[second.der()][..]));
    assert!(handshake(app.address, first.client(rustls::ALL_VERSIONS, &[])).is_err());
    assert_eq!(open.exchange(request("GET /livez", &[], "")).status, 200, "open connections stay open");
}

/// A certificate authority for clients.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Issues a certificate with its key for a client.
    fn issue(&self, usage: ExtendedKeyUsagePurpose) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["batch".to_owned()]).unwrap();
        params.extended_key_usages = vec![usage];
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.der().clone(), PrivateKeyDer::try_from(key.serialize_der()).unwrap())
    }
}

/// Returns whether a client with this certificate gets a response.
fn is_served(
    address: SocketAddr,
    server: &Identity,
    version: &'static SupportedProtocolVersion,
    client: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
) -> bool {
    let mut roots = RootCertStore::empty();
    roots.add(server.der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[version]).unwrap();
    let builder = builder.with_root_certificates(roots);
    let config = match client {
        Some((certificate, key)) => builder.with_client_auth_cert(vec![certificate], key).unwrap(),
        None => builder.with_no_client_auth(),
    };
    // In TLS 1.3 a client has finished before the server verifies its certificate.
    let Ok(mut stream) = handshake(address, config) else { return false };
    let mut answer = [0; 12];
    let _ = stream.write_all(&request("GET /livez", &[], ""));
    stream.read_exact(&mut answer).is_ok() && answer == *b"HTTP/1.1 200"
}

#[test]
fn client_without_required_certificate_is_refused() {
    let (first, second) = (Identity::new(), Identity::new());
    let (authority, stranger) = (Authority::new(), Authority::new());
    let pem = authority.0.pem();
    let (certificate, key) = (first.certificate.as_bytes(), first.key.as_bytes());
    let tls = Tls::with_client_authority(certificate, key, pem.as_bytes()).unwrap();
    let app = App::start();
    let shared = tls.clone();
    let listener = app.listener_with(|settings, _| settings.listener.tls = Some(shared));
    let address = listener.address();
    let client = ExtendedKeyUsagePurpose::ClientAuth;
    let evaluate = |server: &Identity| {
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            let served = |client| is_served(address, server, version, client);
            assert!(served(Some(authority.issue(client.clone()))), "{version:?}");
            assert!(!served(None), "{version:?} without one");
            assert!(!served(Some(stranger.issue(client.clone()))), "{version:?} of another authority");
            assert!(!served(Some(authority.issue(ExtendedKeyUsagePurpose::ServerAuth))), "{version:?} of a server");
        }
    };
    evaluate(&first);
    tls.replace(second.certificate.as_bytes(), second.key.as_bytes()).unwrap();
    evaluate(&second);
}
