//! An HTTP proxy: proxy.py, from PyPI.

use super::azurite::TlsFiles;
use super::process::Server;
use std::fs;

/// A plugin with which each name is this host.
const PLUGIN: &str = r"
from proxy.http.proxy import HttpProxyBasePlugin


class Loopback(HttpProxyBasePlugin):
    def resolve_dns(self, host, port):
        return '127.0.0.1', None
";

/// The proxy. It opens tunnels to ports of this host, whatever name they are for.
#[derive(Debug)]
pub struct ProxyPy {
    server: Server,
    scheme: &'static str,
}

impl ProxyPy {
    /// Starts a proxy that requires `credentials` (`USER:PASSWORD`), and uses TLS with the given certificate.
    ///
    /// # Panics
    /// proxy.py is not installed or does not start.
    pub fn start(credentials: &str, tls: Option<TlsFiles<'_>>) -> Self {
        let server = Server::start("proxy", &[("PYTHONPATH", ".")], |port, directory| {
            fs::write(directory.join("loopback.py"), PLUGIN).unwrap();
            let mut arguments = vec!["--hostname".to_owned(), "127.0.0.1".to_owned(), "--port".to_owned()];
            arguments.extend([port.to_string(), "--basic-auth".to_owned(), credentials.to_owned()]);
            arguments.extend(
                ["--plugins", "loopback.Loopback", "--num-workers", "1", "--num-acceptors", "1"].map(str::to_owned),
            );
            arguments.extend(["--log-level".to_owned(), "WARNING".to_owned()]);
            arguments.extend(["--data-dir".to_owned(), directory.join("data").display().to_string()]);
            if let Some(TlsFiles { certificate, key }) = tls {
                arguments.extend(["--cert-file".to_owned(), certificate.display().to_string()]);
                arguments.extend(["--key-file".to_owned(), key.display().to_string()]);
            }
            arguments
        });
        Self { server, scheme: if tls.is_some() { "https" } else { "http" } }
    }

    /// Returns the proxy's URL.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.server.address())
    }
}
