//! Azure Blob: Azurite, from npm.

use super::process::Server;
use super::tools::find_tool;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

/// The default account of Azurite, and its published key.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Signs a request with the account's key and sends it: `node -e SCRIPT address method path key content`.
const PUT: &str = r"
const [address, path, key, content] = process.argv.slice(1);
const url = new URL(address + path);
const crypto = require('crypto');
const body = Buffer.from(content, 'base64');
const fields = { 'x-ms-blob-type': 'BlockBlob', 'x-ms-date': new Date().toUTCString(), 'x-ms-version': '2022-11-02' };
const canonical = Object.keys(fields).sort().map((name) => name + ':' + fields[name] + '\n').join('');
const query = [...url.searchParams.entries()].sort().map(([name, value]) => '\n' + name + ':' + value).join('');
const resource = '/devstoreaccount1' + url.pathname + query;
const text = ['PUT', '', '', body.length || '', '', '', '', '', '', '', '', '', canonical + resource].join('\n');
const tag = crypto.createHmac('sha256', Buffer.from(key, 'base64')).update(text, 'utf8').digest('base64');
const headers = { ...fields, Authorization: 'SharedKey devstoreaccount1:' + tag, 'Content-Length': body.length };
const client = require(url.protocol.slice(0, -1));
const request = client.request(url, { method: 'PUT', headers, rejectUnauthorized: false }, (answer) => {
  let said = '';
  answer.on('data', (piece) => (said += piece));
  answer.on('end', () => { if (answer.statusCode >= 300) { console.error(said); process.exitCode = 1; } });
});
request.end(body);
";

/// Paths of a server's certificate and its key in PEM format. They must name `127.0.0.1`.
#[derive(Clone, Copy, Debug)]
pub struct TlsFiles<'a> {
    /// The certificate.
    pub certificate: &'a Path,
    /// Its key.
    pub key: &'a Path,
}

/// The server.
#[derive(Debug)]
pub struct Azurite {
    server: Server,
    scheme: &'static str,
}

impl Azurite {
    /// Starts a server. With TLS, it also accepts access tokens, without checking their signatures.
    ///
    /// # Panics
    ///
    /// Azurite is not installed or does not start.
    pub fn start(tls: Option<TlsFiles<'_>>) -> Self {
        let server = Server::start("azurite-blob", &[], |port, directory| {
            let directory = directory.join("data").display().to_string();
            let mut arguments = vec!["--blobHost".to_owned(), "127.0.0.1".to_owned(), "--blobPort".to_owned()];
            arguments.extend([port.to_string(), "--location".to_owned(), directory, "--silent".to_owned()]);
            arguments.extend(["--skipApiVersionCheck", "--disableTelemetry"].map(str::to_owned));
            if let Some(TlsFiles { certificate, key }) = tls {
                arguments.extend(["--oauth".to_owned(), "basic".to_owned()]);
                arguments.extend(["--cert".to_owned(), certificate.display().to_string()]);
                arguments.extend(["--key".to_owned(), key.display().to_string()]);
            }
            arguments
        });
        Self { server, scheme: if tls.is_some() { "https" } else { "http" } }
    }

    /// Returns the server's address. It also serves host names that start with the account's name.
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Returns the address of the account's blobs.
    pub fn endpoint(&self) -> String {
        format!("{}://{}/{ACCOUNT}", self.scheme, self.server.address())
    }

    /// Returns the account's name.
    pub const fn account(&self) -> &'static str {
        ACCOUNT
    }

    /// Returns the account's key.
    pub const fn key(&self) -> &'static str {
        KEY
    }

    /// Returns the account's connection string, which contains its key.
    pub fn connection_string(&self) -> String {
        format!("AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={}", self.endpoint())
    }

    /// Creates a container.
    pub fn create_container(&self, container: &str) {
        self.put_at(&format!("/{container}?restype=container"), "");
    }

    /// Uploads a blob, whose content is given in base64, to a container.
    pub fn put(&self, container: &str, name: &str, base64: &str) {
        self.put_at(&format!("/{container}/{name}"), base64);
    }

    fn put_at(&self, path: &str, content: &str) {
        let output = Command::new(find_tool("node"))
            .args(["-e", PUT, &self.endpoint(), path, KEY, content])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
