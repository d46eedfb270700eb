//! The HTTP client, with a separate connection for each request.

use super::{Answer, Proxy, Resolve, TrustError, ca_certificates, tunnel};
use crate::settings::Deadlines;
use crate::{Egress, StorageSettings};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue};
use hyper::http::uri::{PathAndQuery, Scheme};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tracing::{Instrument as _, trace_span};
use vault_core::check::CheckReason;
use vault_core::trace::TARGET;
use zeroize::Zeroizing;

/// Maximum number of a host's addresses to try.
const MAX_ADDRESSES: usize = 4;
/// Maximum size of a response head in bytes.
pub(super) const MAX_HEAD: usize = 64 * 1024;
/// Maximum number of bytes to read from a storage provider's response body.
const MAX_BODY: usize = 256 * 1024;

/// A connection to a destination: direct or through a tunnel, encrypted or not.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// The client. Cheap to clone.
#[derive(Clone)]
pub(crate) struct GuardedClient(Arc<Inner>);

struct Inner {
    egress: Egress,
    resolver: Arc<dyn Resolve>,
    tls: Arc<ClientConfig>,
    connect: Duration,
    exchange: Duration,
    /// Maximum number of bytes to read from a response body.
    max_body: usize,
}

impl fmt::Debug for GuardedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GuardedClient(..)")
    }
}

impl GuardedClient {
    pub(crate) fn new(settings: &StorageSettings, resolver: Arc<dyn Resolve>) -> Result<Self, TrustError> {
        Ok(Self(Arc::new(Inner {
            egress: settings.egress.clone(),
            resolver,
            tls: ca_certificates::tls(settings.egress.authorities().to_vec())?,
            connect: settings.deadlines.connect,
            exchange: settings.deadlines.exchange,
            max_body: MAX_BODY,
        })))
    }

    /// Creates a client for hosts that the operator has configured. It also trusts the PEM certificates in `ca`, and
    /// reads at most `max_body` bytes of a response body.
    pub(crate) fn for_operator(egress: Egress, ca: &str, resolver: Arc<dyn Resolve>, max_body: usize) -> Option<Self> {
        let mut certificates = if ca.is_empty() { Vec::new() } else { ca_certificates::certificates(ca.as_bytes())? };
        certificates.extend_from_slice(egress.authorities());
        let deadlines = Deadlines::default();
        Some(Self(Arc::new(Inner {
            egress,
            resolver,
            tls: ca_certificates::tls(certificates).ok()?,
            connect: deadlines.connect,
            exchange: deadlines.exchange,
            max_body,
        })))
    }

    /// Returns the proxy, if one is set.
    pub(crate) fn proxy(&self) -> Option<&Proxy> {
        self.0.egress.proxy()
    }

    /// Sends `request`, whose URI must be absolute, and returns the response with any status.
    pub(crate) async fn send(&self, request: Request<Bytes>) -> Result<Answer, CheckReason> {
        // The span does not contain the address, which a tenant configured.
        let span = trace_span!(target: TARGET, "storage.request", otel.kind = "client");
        self.exchange(request, Instant::now() + self.0.exchange).instrument(span).await
    }

    async fn exchange(&self, mut request: Request<Bytes>, deadline: Instant) -> Result<Answer, CheckReason> {
        let target = Target::of(request.uri())?;
        let host = HeaderValue::from_str(&target.authority).map_err(|_| CheckReason::Unexpected)?;
        request.headers_mut().insert(HOST, host);
        let path = request.uri().path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
        *request.uri_mut() = Uri::from(path);
        let request = request.map(Full::new);
        let (stream, peer): (Box<dyn Stream>, _) = match self.0.egress.proxy_to(&target.host, target.port)? {
            Some(proxy) => (self.tunnel(proxy, &target, deadline).await?, None),
            None => {
                let connecting = timeout_at(deadline, self.connect(&target)).await;
                let stream = connecting.unwrap_or(Err(CheckReason::Unreachable))?;
                let peer = stream.peer_addr().ok().map(|address| address.ip().to_canonical());
                (Box::new(stream), peer)
            }
        };
        let exchange = async {
            match target.name {
                None => speak(stream, request, self.0.max_body).await,
                Some(name) => {
                    let connector = TlsConnector::from(Arc::clone(&self.0.tls));
                    let stream = connector.connect(name, stream).await.map_err(|error| {
                        let of_tls = error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>());
                        // A peer that closes during the handshake rejects it.
                        let cut = error.kind() == io::ErrorKind::UnexpectedEof;
                        if of_tls || cut { CheckReason::Tls } else { CheckReason::Unreachable }
                    })?;
                    speak(stream, request, self.0.max_body).await
                }
            }
        };
        let answer = timeout_at(deadline, exchange).await.unwrap_or(Err(CheckReason::Unreachable))?;
        Ok(Answer { peer, ..answer })
    }

    /// Opens a tunnel to the destination. The proxy resolves its name.
    async fn tunnel(&self, proxy: &Proxy, target: &Target, deadline: Instant) -> Result<Box<dyn Stream>, CheckReason> {
        let opening = async {
            let stream = tunnel::connect(proxy, &*self.0.resolver, self.0.connect).await?;
            tunnel::open(proxy, stream, &target.with_port()).await
        };
        let opened = timeout_at(deadline, opening).await.unwrap_or(Err(CheckReason::ProxyUnreachable));
        proxy.record(opened.as_ref().map(drop).map_err(|reason| *reason));
        opened
    }

    /// Connects to an address of the host that the policy permits.
    async fn connect(&self, target: &Target) -> Result<TcpStream, CheckReason> {
        let found = match target.host.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => self.0.resolver.resolve(&target.host).await.map_err(|error| match error.kind() {
                // The lookup did not run, so the name may still be valid.
                io::ErrorKind::ResourceBusy => CheckReason::Unreachable,
                _ => CheckReason::Dns,
            })?,
        };
        if found.is_empty() {
            return Err(CheckReason::Dns);
        }
        let found = found.into_iter().map(|address| SocketAddr::new(address, target.port));
        let policy = self.0.egress.policy();
        let permitted: Vec<_> = found.filter(|address| policy.permits_connection(*address)).collect();
        if permitted.is_empty() {
            return Err(CheckReason::BlockedEgress);
        }
        connect_to_any(permitted.into_iter(), self.0.connect).await.ok_or(CheckReason::Unreachable)
    }
}

/// Connects to one of the first addresses, in their order. `limit` applies to each.
pub(super) async fn connect_to_any(
    addresses: impl Iterator<Item = SocketAddr> + Send,
    limit: Duration,
) -> Option<TcpStream> {
    for address in addresses.take(MAX_ADDRESSES) {
        if let Ok(Ok(stream)) = timeout(limit, TcpStream::connect(address)).await {
            return Some(stream);
        }
    }
    None
}

/// The destination of a request.
struct Target {
    /// Host name, or IP address without brackets.
    host: String,
    port: u16,
    /// Value of the `Host` header: with brackets, and with a non-default port.
    authority: String,
    /// Name that the certificate must contain. `None` for a plain connection.
    name: Option<ServerName<'static>>,
}

impl Target {
    fn of(uri: &Uri) -> Result<Self, CheckReason> {
        let is_encrypted = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            _ => return Err(CheckReason::Unexpected),
        };
        let usual = if is_encrypted { 443 } else { 80 };
        let given = uri.host().filter(|host| !host.is_empty()).ok_or(CheckReason::Unexpected)?;
        let port = uri.port_u16().unwrap_or(usual);
        let host = given.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = is_encrypted
            .then(|| ServerName::try_from(host.clone()).map_err(|_| CheckReason::Unexpected))
            .transpose()?;
        let authority = if port == usual { given.to_owned() } else { format!("{given}:{port}") };
        Ok(Self { host, port, authority, name })
    }

    /// Returns host and port, with brackets around an IPv6 address.
    fn with_port(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

async fn speak<S>(stream: S, request: Request<Full<Bytes>>, max_body: usize) -> Result<Answer, CheckReason>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(MAX_HEAD)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|_| CheckReason::Unreachable)?;
    let mut answering = pin!(async {
        let answer = sender.send_request(request).await.map_err(|error| fault(&error))?;
        let (head, body) = answer.into_parts();
        let (body, is_whole) = read(body, max_body).await?;
        Ok(Answer { status: head.status, headers: head.headers, body, is_whole, peer: None })
    });
    let mut connection = pin!(connection);
    tokio::select! {
        biased;
        answer = &mut answering => answer,
        // The connection has ended, but its response may still be unread.
        _ = &mut connection => answering.await,
    }
}

/// Reads up to `max` bytes of the body. Also returns whether it is complete.
async fn read(mut body: Incoming, max: usize) -> Result<(Zeroizing<Vec<u8>>, bool), CheckReason> {
    let mut read = Zeroizing::new(Vec::with_capacity(4096));
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| fault(&error))?;
        let Some(data) = frame.data_ref() else { continue };
        let room = max - read.len();
        read.extend_from_slice(data.get(..room).unwrap_or(data));
        if data.len() > room {
            return Ok((read, false));
        }
    }
    Ok((read, true))
}

fn fault(error: &hyper::Error) -> CheckReason {
    if error.is_parse() { CheckReason::Unexpected } else { CheckReason::Unreachable }
}
