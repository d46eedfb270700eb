//! A proxy between the service and PostgreSQL that simulates a network: it forwards, hangs, is slow, or loses the
//! response to a COMMIT.

use simulated_disk::random::Random;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Interval at which a hanging proxy checks its mode.
const LOOK: Duration = Duration::from_millis(5);

/// The behavior of the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Mode {
    /// Forwards data.
    Pass,
    /// Accepts connections and data, and forwards nothing.
    Hang,
    /// Delays each piece of data by 20 to 60 ms.
    Slow,
    /// Closes one connection in ten after the server has responded to a `COMMIT`, and drops the response.
    LoseCommits,
}

/// A proxy. Stops with its process.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    server: PathBuf,
    mode: AtomicU8,
    lost: AtomicUsize,
    random: Mutex<Random>,
}

impl Shared {
    fn mode(&self) -> Mode {
        match self.mode.load(Ordering::Relaxed) {
            1 => Mode::Hang,
            2 => Mode::Slow,
            3 => Mode::LoseCommits,
            _ => Mode::Pass,
        }
    }

    /// Waits as required by the mode.
    fn wait(&self) {
        while self.mode() == Mode::Hang {
            thread::sleep(LOOK);
        }
        if self.mode() == Mode::Slow {
            let late = self.random.lock().unwrap().millis(20, 60);
            thread::sleep(late);
        }
    }

    fn loses(&self) -> bool {
        self.mode() == Mode::LoseCommits && self.random.lock().unwrap().below(10) == 0
    }
}

impl Proxy {
    /// Starts a proxy at `address` for the server with the socket `server`.
    pub(crate) fn start(address: SocketAddr, server: &Path, random: Random) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let (server, random) = (server.to_owned(), Mutex::new(random));
        let shared = Arc::new(Shared { server, mode: AtomicU8::new(0), lost: AtomicUsize::new(0), random });
        let taken = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&taken);
                thread::spawn(move || connect(&shared, client));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.shared.mode.store(mode as u8, Ordering::Relaxed);
    }

    /// Returns the number of lost responses to a `COMMIT`.
    pub(crate) fn lost(&self) -> usize {
        self.shared.lost.load(Ordering::Relaxed)
    }
}

fn connect(shared: &Arc<Shared>, client: TcpStream) {
    shared.wait();
    let Ok(server) = UnixStream::connect(&shared.server) else { return };
    let _ = client.set_nodelay(true);
    let losing = Arc::new(AtomicUsize::new(0));
    let (Ok(to_client), Ok(to_server)) = (client.try_clone(), server.try_clone()) else { return };
    let (onward, marked) = (Arc::clone(shared), Arc::clone(&losing));
    thread::spawn(move || {
        forward(&onward, &client, &to_server, |bytes| {
            // `COMMIT` as a simple query of the protocol.
            if bytes.windows(7).any(|window| window == b"COMMIT\0") && onward.loses() {
                marked.store(1, Ordering::SeqCst);
            }
            true
        });
        let _ = to_server.shutdown(Shutdown::Both);
        let _ = client.shutdown(Shutdown::Both);
    });
    forward(shared, &server, &to_client, |_| {
        let loses = losing.load(Ordering::SeqCst) == 1;
        shared.lost.fetch_add(usize::from(loses), Ordering::Relaxed);
        !loses
    });
    let _ = to_client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}

/// Forwards data until one side closes its connection or `may` returns `false`.
fn forward(shared: &Shared, mut from: impl Read, mut to: impl Write, may: impl Fn(&[u8]) -> bool) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(read) = from.read(&mut bytes) {
        if read == 0 || !may(&bytes[..read]) {
            return;
        }
        shared.wait();
        if to.write_all(&bytes[..read]).is_err() {
            return;
        }
    }
}
