//! Listeners and their workers.

use crate::body::MAX_BODY;
use crate::connections::Connections;
use crate::listener::Listener;
use crate::middleware;
use crate::routes::{self, Endpoint};
use crate::settings::{ListenerSettings, UnixSocket};
use crate::telemetry;
use crate::unix::{self, SocketFile};
use actix_web::body::BoxBody;
use actix_web::dev::{Server, ServerHandle, ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::middleware::from_fn;
use actix_web::{App, Error, HttpServer, web};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// Maximum number of connections that wait to be accepted.
const BACKLOG: u32 = 2_048;
/// Time for discarding the rest of a rejected body, so that the client can read the response before the end.
const LINGER: Duration = Duration::from_secs(2);
/// Maximum number of workers in the framework.
const MAX_WORKERS: usize = 512;

/// A bound server. It responds as soon as it is awaited.
pub struct BoundServer {
    /// Future that runs the server, with a handle to stop it.
    pub server: ListeningServer,
    /// Bound addresses, with the actual ports.
    pub addresses: Vec<SocketAddr>,
}

/// A server and its Unix socket, if it has one. The socket is removed after the server has stopped.
pub struct ListeningServer {
    server: Server,
    socket: Option<SocketFile>,
}

impl ListeningServer {
    /// Returns the handle to stop the server.
    pub fn handle(&self) -> ServerHandle {
        self.server.handle()
    }
}

impl Future for ListeningServer {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = ready!(Pin::new(&mut self.server).poll(context));
        self.socket = None;
        Poll::Ready(ended)
    }
}

/// Creates the app of the listener `api`.
pub(crate) fn app<L: Listener + 'static>(
    api: Arc<L>,
    endpoints: fn() -> Vec<Endpoint>,
) -> App<
    impl ServiceFactory<ServiceRequest, Config = (), Response = ServiceResponse<BoxBody>, Error = Error, InitError = ()>,
> {
    let listener: Arc<dyn Listener> = Arc::clone(&api) as _;
    let base = api.common().base.clone();
    App::new()
        .app_data(listener)
        .app_data(web::Data::from(api))
        .app_data(web::PayloadConfig::new(MAX_BODY))
        .configure(|config| routes::configure(config, base.as_str(), endpoints()))
        .wrap(from_fn(middleware::common))
}

/// Creates a server of `api` at the addresses of `settings` and at `socket`.
pub(crate) fn serve<L: Listener + 'static>(
    settings: &ListenerSettings,
    socket: Option<&UnixSocket>,
    api: Arc<L>,
    endpoints: fn() -> Vec<Endpoint>,
) -> io::Result<BoundServer> {
    telemetry::describe(endpoints().iter().map(|endpoint| endpoint.route.operation));
    let connections = Arc::new(Connections::of(settings));
    let deadlines = settings.deadlines;
    let mut server = HttpServer::new(move || app(Arc::clone(&api), endpoints))
        .disable_signals()
        .backlog(BACKLOG)
        .max_connections(settings.connections_per_worker)
        // The default delays all clients behind the silent handshakes of one host.
        .max_connection_rate(settings.connections_per_worker)
        .client_request_timeout(deadlines.head)
        .client_disconnect_timeout(LINGER)
        .tls_handshake_timeout(deadlines.handshake)
        .keep_alive(deadlines.idle)
        .tcp_nodelay(true)
        .shutdown_timeout(settings.shutdown_timeout.as_secs())
        .on_connect(move |stream, data| connections.accept(stream, data));
    if let Some(workers) = settings.workers {
        server = server.workers(workers.get().min(MAX_WORKERS));
    }
    for &address in &settings.listen {
        server = match &settings.tls {
            None => server.bind(address)?,
            Some(tls) => server.bind_rustls_0_23(address, tls.config())?,
        };
    }
    let addresses = server.addrs();
    let mut file = None;
    if let Some(socket) = socket {
        let (listener, created) = unix::bind(socket)?;
        server = server.listen_uds(listener)?;
        file = Some(created);
    }
    if addresses.is_empty() && file.is_none() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no address to listen on"));
    }
    Ok(BoundServer { server: ListeningServer { server: server.run(), socket: file }, addresses })
}
