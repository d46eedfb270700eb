//! Listeners and their workers.

use crate::connection::{Connection, Phase};
use crate::exchange::{Api, Exchange};
use crate::host::HostNames;
use crate::operation::{PublicApi, activation_routes, routes};
use crate::parts::ServerParts;
use crate::peers::{ConnectionRefusal, Peers};
use crate::settings::{Deadlines, ListenerSettings, ServerSettings, UnixSocket};
use crate::telemetry;
use crate::tls::Tls;
use crate::transport::Transport;
use crate::unix::{self, SocketFile};
use actix_http::error::DispatchError;
use actix_http::{HttpService, KeepAlive};
use actix_server::{GracefulShutdownSignal, ServerBuilder};
use actix_service::{IntoServiceFactory as _, ServiceFactory, ServiceFactoryExt as _, fn_service, map_config};
use actix_web::dev::{AppConfig, Server, ServerHandle};
use actix_web::{App, HttpRequest, web};
use std::future::{Future, ready as immediate};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream, UnixStream};
use tokio::runtime::Handle;
use vault_core::port::IdGenerator;

/// Maximum number of connections that wait to be accepted.
const BACKLOG: u32 = 2_048;
/// Time for reading and discarding the rest of a rejected body, so that the client receives the response before the
/// end.
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

/// Binds the public listener.
///
/// # Errors
/// An address or the socket cannot be bound, or there is none.
pub fn server(settings: &ServerSettings, parts: ServerParts) -> io::Result<BoundServer> {
    let runtime = parts.runtime.clone();
    let ids = Arc::clone(&parts.ids);
    let api = PublicApi::new(settings, parts);
    serve(&settings.listener, settings.unix.as_ref(), &runtime, ids, api)
}

/// Creates a server for `api` at the addresses of `settings` and at `socket`.
pub(crate) fn serve<A: Api>(
    settings: &ListenerSettings,
    socket: Option<&UnixSocket>,
    runtime: &Handle,
    ids: Arc<dyn IdGenerator>,
    api: A,
) -> io::Result<BoundServer> {
    telemetry::describe(routes().chain(activation_routes()).map(|route| route.operation));
    let peers = Arc::new(Peers::of(settings));
    let mut builder = ServerBuilder::new()
        .disable_signals()
        .max_concurrent_connections(settings.connections_per_worker)
        .shutdown_timeout(settings.shutdown_timeout.as_secs());
    if let Some(workers) = settings.workers {
        builder = builder.workers(workers.get().min(MAX_WORKERS));
    }
    if settings.listen.is_empty() && socket.is_none() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no address to listen on"));
    }
    let deadlines = settings.deadlines;
    let worker = Worker {
        api,
        ids,
        hosts: HostNames::of(settings),
        over_tls: false,
        deadlines,
        stopping: builder.graceful_shutdown_signal(),
    };

    let mut addresses = Vec::with_capacity(settings.listen.len());
    for &address in &settings.listen {
        let listener = listen(address, runtime)?;
        addresses.push(listener.local_addr()?);
        let (peers, tls) = (Arc::clone(&peers), settings.tls.clone());
        let worker = Worker { over_tls: tls.is_some(), ..worker.clone() };
        builder = builder.listen("orgvault", listener, move || {
            let (peers, tls) = (Arc::clone(&peers), tls.clone());
            fn_service(move |stream: TcpStream| accept(stream, Arc::clone(&peers), tls.clone(), deadlines))
                .and_then(worker.http())
        })?;
    }
    let mut file = None;
    if let Some(socket) = socket {
        let (listener, made) = unix::bind(socket, BACKLOG, runtime)?;
        file = Some(made);
        builder = builder.listen_uds("orgvault", listener, move || {
            let peers = Arc::clone(&peers);
            fn_service(move |stream: UnixStream| immediate(accept_local(stream, &peers, deadlines)))
                .and_then(worker.http())
        })?;
    }
    Ok(BoundServer { server: ListeningServer { server: builder.run(), socket: file }, addresses })
}

/// The parts from which each worker is created.
#[derive(Clone)]
struct Worker<A> {
    api: A,
    ids: Arc<dyn IdGenerator>,
    hosts: HostNames,
    over_tls: bool,
    deadlines: Deadlines,
    stopping: GracefulShutdownSignal,
}

impl<A: Api> Worker<A> {
    /// Creates the connection service of a worker.
    fn http(
        &self,
    ) -> impl ServiceFactory<
        (Connection, Option<SocketAddr>),
        Config = (),
        Response = (),
        Error = DispatchError,
        InitError = (),
    > + use<A> {
        let (api, ids, hosts) = (self.api.clone(), Arc::clone(&self.ids), self.hosts.clone());
        let exchange = Rc::new(Exchange::new(api, ids, hosts, self.over_tls));
        let app = App::new().default_service(web::to(move |request: HttpRequest, payload: web::Payload| {
            let exchange = Rc::clone(&exchange);
            async move { exchange.answer(request, payload.into_inner()).await }
        }));
        let app = app.into_factory().map_err(|error: actix_web::Error| error.error_response());
        let stopping = self.stopping.clone();
        HttpService::build()
            .client_request_timeout(self.deadlines.head)
            .client_disconnect_timeout(LINGER)
            .keep_alive(KeepAlive::Timeout(self.deadlines.idle))
            .graceful_shutdown_signal(move || {
                let stopping = stopping.clone();
                async move { stopping.notified().await }
            })
            .on_connect_ext(|connection: &Connection, data| {
                data.insert::<Rc<Phase>>(connection.phase());
            })
            .h1(map_config(app, |_| AppConfig::default()))
    }
}

async fn accept(
    stream: TcpStream,
    peers: Arc<Peers>,
    tls: Option<Tls>,
    deadlines: Deadlines,
) -> Result<(Connection, Option<SocketAddr>), DispatchError> {
    let peer = stream.peer_addr().ok();
    let address = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip());
    let admission = peers.admit(address).map_err(turned_away)?;
    stream.set_nodelay(true).map_err(DispatchError::Io)?;
    let transport = match tls {
        None => Transport::Plain(stream),
        Some(tls) => Transport::Tls(Box::new(tls.accept(stream, deadlines.handshake).await.map_err(|error| {
            tracing::debug!(%error, "a TLS handshake failed");
            telemetry::handshake_failed();
            DispatchError::Io(error)
        })?)),
    };
    Ok((Connection::new(transport, admission, deadlines), peer))
}

/// Accepts a connection from a process on this host, which has no address.
fn accept_local(
    stream: UnixStream,
    peers: &Arc<Peers>,
    deadlines: Deadlines,
) -> Result<(Connection, Option<SocketAddr>), DispatchError> {
    let user = stream.peer_cred().map_err(DispatchError::Io)?.uid();
    let admission = peers.admit_user(user).map_err(turned_away)?;
    Ok((Connection::new(Transport::Local(stream), admission, deadlines), None))
}

fn turned_away(refusal: ConnectionRefusal) -> DispatchError {
    telemetry::connection_refused(refusal);
    DispatchError::Io(io::ErrorKind::ConnectionRefused.into())
}

fn listen(address: SocketAddr, runtime: &Handle) -> io::Result<std::net::TcpListener> {
    let _context = runtime.enter(); // tokio's sockets register with a runtime even if they are converted afterwards
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)?.into_std()
}
