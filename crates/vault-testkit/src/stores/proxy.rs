//! HTTP proxy with `CONNECT` that a test controls.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

/// A request to the proxy, and the bytes that the client sent through the tunnel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tunnel {
    /// The request line: `CONNECT host:port HTTP/1.1`.
    pub line: String,
    /// Header fields, with names in lower case.
    pub fields: HashMap<String, String>,
    /// Bytes of the client after the request.
    pub sent: Vec<u8>,
}

impl Tunnel {
    /// Returns the target: `host:port`.
    pub fn target(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }
}

/// How the proxy responds to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProxyMode {
    /// Opens the tunnel.
    #[default]
    Open,
    /// Sends exactly this text, and closes the connection.
    Text(String),
    /// Sends no response, and leaves the connection open.
    Stall,
}

#[derive(Default)]
struct State {
    tunnels: Vec<Tunnel>,
    names: HashMap<String, SocketAddr>,
    authorization: Option<String>,
    mode: ProxyMode,
}

/// The proxy. It stops when it is dropped.
pub struct TestProxy {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    is_stopped: Arc<AtomicBool>,
}

impl TestProxy {
    /// Starts a proxy that opens tunnels to the addresses of [`TestProxy::map`] and to IP addresses. For other names, it
    /// responds with status 502.
    ///
    /// # Panics
    /// No port is available.
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (state, is_stopped) = (Arc::new(Mutex::new(State::default())), Arc::new(AtomicBool::new(false)));
        let (shared, stopped) = (Arc::clone(&state), Arc::clone(&is_stopped));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let shared = Arc::clone(&shared);
                thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { address, state, is_stopped }
    }

    /// Returns the proxy's address.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the proxy's URL: `http://127.0.0.1:port`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Connects to `address` for the host `name`. Port 0 is the requested port.
    pub fn map(&self, name: &str, address: SocketAddr) {
        self.state().names.insert(name.to_owned(), address);
    }

    /// Requires this value of `Proxy-Authorization`.
    pub fn require(&self, authorization: &str) {
        self.state().authorization = Some(authorization.to_owned());
    }

    /// Sets the response to all later requests.
    pub fn set_mode(&self, mode: ProxyMode) {
        self.state().mode = mode;
    }

    /// Returns all requests since the last call.
    pub fn tunnels(&self) -> Vec<Tunnel> {
        std::mem::take(&mut self.state().tunnels)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl Drop for TestProxy {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        // A connection wakes the thread, so that it checks the flag.
        drop(TcpStream::connect(self.address));
    }
}

fn serve(mut client: TcpStream, state: &Mutex<State>) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).ok()?;
        head.extend(byte);
    }
    let head = String::from_utf8(head).ok()?;
    let mut lines = head.lines();
    let line = lines.next()?.to_owned();
    let fields = lines.filter_map(|line| line.split_once(':'));
    let fields: HashMap<_, _> =
        fields.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
    let tunnel = Tunnel { line, fields, sent: Vec::new() };
    let (index, mode, is_authorized, target) = {
        let mut state = state.lock().ok()?;
        let is_authorized =
            state.authorization.is_none() || state.authorization.as_ref() == tunnel.fields.get("proxy-authorization");
        let (name, port) = tunnel.target().rsplit_once(':')?;
        let target = match state.names.get(name) {
            Some(address) if address.port() == 0 => Some(SocketAddr::new(address.ip(), port.parse().ok()?)),
            Some(address) => Some(*address),
            None => tunnel.target().parse().ok(),
        };
        state.tunnels.push(tunnel);
        (state.tunnels.len() - 1, state.mode.clone(), is_authorized, target)
    };
    let mut refuse = |text: &str| client.write_all(text.as_bytes()).ok();
    match mode {
        ProxyMode::Text(text) => return refuse(&text),
        ProxyMode::Stall => return io::copy(&mut client, &mut io::sink()).ok().map(drop),
        ProxyMode::Open if !is_authorized => {
            return refuse("HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n");
        }
        ProxyMode::Open => {}
    }
    let Some(server) = target.and_then(|target| TcpStream::connect(target).ok()) else {
        return refuse("HTTP/1.1 502 Bad Gateway\r\n\r\n");
    };
    client.write_all(b"HTTP/1.1 200 Connection established\r\nVia: 1.1 test\r\n\r\n").ok()?;
    let (mut from_server, mut to_client) = (server.try_clone().ok()?, client.try_clone().ok()?);
    thread::spawn(move || {
        let _ = io::copy(&mut from_server, &mut to_client); // one side may close first
        let _ = to_client.shutdown(Shutdown::Write);
    });
    let mut server = server;
    let mut buffer = [0; 4_096];
    loop {
        let length = client.read(&mut buffer).unwrap_or_default();
        if length == 0 {
            return server.shutdown(Shutdown::Write).ok();
        }
        if let Some(tunnel) = state.lock().ok()?.tunnels.get_mut(index) {
            tunnel.sent.extend(&buffer[..length]);
        }
        server.write_all(&buffer[..length]).ok()?;
    }
}
