//! Certificates, and servers with TLS.

use crate::client::Client;
use crate::process::{Server, own_address};
use crate::vault::Vault;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

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
        let names = [own_address().to_string(), "127.0.0.1".to_owned()];
        let created = rcgen::generate_simple_self_signed(names).expect("a certificate");
        Self { certificate: created.cert.pem(), key: created.signing_key.serialize_pem() }
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
