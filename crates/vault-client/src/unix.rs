//! HTTP over a Unix socket, as a connector of the agent.

use rustix::net::sockopt::{Timeout as SocketTimeout, set_socket_timeout, socket_peercred};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport};

/// Connects to one socket, whatever the URL of a request.
#[derive(Debug)]
pub(crate) struct UnixConnector {
    path: PathBuf,
    server_user: Option<u32>,
}

impl UnixConnector {
    /// Creates a connector for the socket at `path` of a server that any user runs, or only this one.
    pub(crate) fn new(path: &Path, server_user: Option<u32>) -> Self {
        Self { path: path.to_owned(), server_user }
    }
}

impl Connector for UnixConnector {
    type Out = UnixTransport;

    fn connect(&self, details: &ConnectionDetails, _chained: Option<()>) -> Result<Option<Self::Out>, Error> {
        let stream = open(&self.path, left(&details.timeout)).map_err(|error| timed_out(error, &details.timeout))?;
        if let Some(expected) = self.server_user {
            let found = socket_peercred(&stream).map_err(io::Error::from)?.uid.as_raw();
            if found != expected {
                let message = format!("the server runs as user {found}, expected user {expected}");
                return Err(Error::Io(io::Error::new(ErrorKind::PermissionDenied, message)));
            }
        }
        let buffers = LazyBuffers::new(details.config.input_buffer_size(), details.config.output_buffer_size());
        Ok(Some(UnixTransport { stream, buffers }))
    }
}

/// Connects to the socket at `path`. The send timeout limits the wait for a slot in the listener's queue only if it is
/// set before.
fn open(path: &Path, limit: Option<Duration>) -> io::Result<UnixStream> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, SocketTimeout::Send, limit)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(UnixStream::from(socket))
}

/// A connection.
#[derive(Debug)]
pub(crate) struct UnixTransport {
    stream: UnixStream,
    buffers: LazyBuffers,
}

impl Transport for UnixTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let timeout = timeout.for_write();
        self.stream.set_write_timeout(left(&timeout))?;
        self.stream.write_all(&self.buffers.output()[..amount]).map_err(|error| timed_out(error, &timeout))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let timeout = timeout.for_read();
        let end = left(&timeout).map(|left| Instant::now() + left);
        let input = self.buffers.input_append_buf();
        let amount = loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(Error::Timeout(timeout.reason));
            }
            self.stream.set_read_timeout(left)?;
            match self.stream.read(input) {
                // A signal interrupted the read. With a timeout set, the system call is not restarted automatically.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read.map_err(|error| timed_out(error, &timeout))?,
            }
        };
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        // Each request uses a new connection.
        false
    }
}

/// Returns the remaining time, if there is a limit. Never zero, which would mean no limit.
fn left(timeout: &NextTimeout) -> Option<Duration> {
    timeout.not_zero().map(|left| *left)
}

fn timed_out(error: io::Error, timeout: &NextTimeout) -> Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Error::Timeout(timeout.reason),
        _ => Error::Io(error),
    }
}

/// Resolves nothing, because the connector has the path of the socket.
#[derive(Debug)]
pub(crate) struct NoResolver;

impl Resolver for NoResolver {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        // The agent expects an address, which the connector ignores.
        let mut addresses = self.empty();
        addresses.push(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        Ok(addresses)
    }
}
