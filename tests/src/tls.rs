//! Certificates, and servers with TLS.

use crate::client::Client;
use crate::process::{Server, own_address};
use crate::vault::Vault;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

/// A self-signed certificate for every server of this process, and its key, in PEM.
pub struct Identity {
    /// Certificate.
    pub certificate: String,
    /// Key.
    pub key: String,
}

impl Identity {
    /// Generates a certificate.
    #[allow(clippy::new_without_default, reason = "no two are alike")]
    pub fn new() -> Self {
        let own = own_address().to_string();
        let names = [&own, "127.0.0.1", "store.test", "logs.test", "traces.test"].map(str::to_owned);
        let created = rcgen::generate_simple_self_signed(names).expect("a certificate");
        Self { certificate: created.cert.pem(), key: created.signing_key.serialize_pem() }
    }

    /// Starts a server with this certificate, which runs until the process ends. It responds with the text that `respond`
    /// returns for the head of a request, or with status 403.
    pub fn serve_text(&self, respond: fn(&str) -> Option<&'static str>) -> SocketAddr {
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let config = Arc::clone(&config);
                thread::spawn(move || converse(stream, config, respond));
            }
        });
        address
    }

    /// Atomically installs both files for servers of `vault`.
    pub fn install(&self, vault: &Vault) {
        put(&certificate_file(vault), &self.certificate);
        put(&key_file(vault), &self.key);
    }

    /// Returns a client of `server` that trusts only this certificate.
    pub fn client(&self, server: &Server) -> Client {
        Client::over_tls(server.address, &self.certificate)
    }

    /// Returns whether `server` uses this certificate now.
    pub fn is_shown_by(&self, server: &Server) -> bool {
        self.client(server).get("/livez").try_send().is_ok()
    }
}

fn converse(stream: TcpStream, config: Arc<ServerConfig>, respond: fn(&str) -> Option<&'static str>) -> Option<()> {
    let mut stream = StreamOwned::new(ServerConnection::new(config).ok()?, stream);
    let (mut head, mut byte) = (String::new(), [0]);
    while !head.ends_with("\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0].into());
    }
    // An unread body would reset the connection, and with it the response.
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    stream.read_exact(&mut vec![0; length.unwrap_or_default()]).ok()?;
    let (status, body) = respond(&head).map_or(("403 Forbidden", ""), |body| ("200 OK", body));
    let length = body.len();
    let response = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    stream.write_all(response.as_bytes()).ok()?;
    stream.conn.send_close_notify();
    stream.flush().ok()
}

/// Returns the certificate file of servers of `vault`.
pub fn certificate_file(vault: &Vault) -> PathBuf {
    vault.scratch("tls.pem")
}

/// Returns the key file of servers of `vault`.
pub fn key_file(vault: &Vault) -> PathBuf {
    vault.scratch("tls.key")
}

/// Atomically replaces the content of `path`, readable only by its owner.
pub fn put(path: &Path, content: &str) {
    let fresh = path.with_extension("new");
    let mut file = fs::OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&fresh).unwrap();
    file.write_all(content.as_bytes()).unwrap();
    fs::rename(&fresh, path).unwrap();
}

/// Starts a server of `vault` with TLS, the installed files and these flags. Waits until it is ready.
pub fn serve(vault: &Vault, identity: &Identity, flags: &[&str]) -> Server {
    identity.install(vault);
    let mut command = vault.serve_command();
    command.arg("--tls-cert-file").arg(certificate_file(vault)).arg("--tls-key-file").arg(key_file(vault)).args(flags);
    let mut server = Server::spawn(command, &vault.scratch("output"), &vault.scratch("log"));
    let client = identity.client(&server);
    server.wait_until_ready_by(&client);
    server
}
