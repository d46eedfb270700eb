//! A certificate of a test's own, and a server that shows it.

use rcgen::{CertificateParams, KeyPair, SanType};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;

/// A certificate for `127.0.0.1` and `store.test`, its own authority, in files.
pub struct Authority(TempDir);

impl Authority {
    pub fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["store.test".to_owned()]).unwrap();
        params.subject_alt_names.push(SanType::IpAddress(Ipv4Addr::LOCALHOST.into()));
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(directory.path().join("certificate.pem"), certificate.pem()).unwrap();
        std::fs::write(directory.path().join("key.pem"), key.serialize_pem()).unwrap();
        Self(directory)
    }

    pub fn certificate(&self) -> PathBuf {
        self.0.path().join("certificate.pem")
    }

    pub fn key(&self) -> PathBuf {
        self.0.path().join("key.pem")
    }

    /// A server with this certificate that answers each request, given as its head, with what `answer` makes of it.
    /// Goes with the process.
    pub fn serve(&self, answer: impl Fn(&str) -> String + Send + Sync + 'static) -> SocketAddr {
        let (config, answer) = (self.config(), Arc::new(answer));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, answer) = (Arc::clone(&config), Arc::clone(&answer));
                thread::spawn(move || converse(stream, config, &*answer));
            }
        });
        address
    }

    /// Accepts TLS connections with this certificate for the server at `behind`.
    pub fn front(&self, behind: SocketAddr) -> SocketAddr {
        let acceptor = TlsAcceptor::from(self.config());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    let acceptor = acceptor.clone();
                    tokio::spawn(async move {
                        let Ok(mut stream) = acceptor.accept(stream).await else { return };
                        let Ok(mut server) = tokio::net::TcpStream::connect(behind).await else { return };
                        let _ = tokio::io::copy_bidirectional(&mut stream, &mut server).await; // either side may close
                    });
                }
            });
        });
        address
    }

    fn config(&self) -> Arc<ServerConfig> {
        let certificate = CertificateDer::from_pem_file(self.certificate()).unwrap();
        let key = PrivateKeyDer::from_pem_file(self.key()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        Arc::new(config)
    }
}

fn read_head(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.extend(byte);
    }
    Some(head)
}

fn converse(stream: TcpStream, config: Arc<ServerConfig>, answer: &dyn Fn(&str) -> String) -> Option<()> {
    let mut stream = StreamOwned::new(ServerConnection::new(config).ok()?, stream);
    let head = String::from_utf8_lossy(&read_head(&mut stream)?).into_owned();
    // An unread body would reset the connection, and with it the response.
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    stream.read_exact(&mut vec![0; length.unwrap_or_default()]).ok()?;
    stream.write_all(answer(&head).as_bytes()).ok()?;
    stream.conn.send_close_notify();
    stream.flush().ok()
}
