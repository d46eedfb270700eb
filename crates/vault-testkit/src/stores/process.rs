//! Server process that ends when the process that started it ends.

use super::tools::find_tool;
use crate::clock::scramble;
use std::collections::hash_map::RandomState;
use std::fs::{self, DirBuilder, File};
use std::hash::BuildHasher;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum number of starts if another process uses the port.
const TRIES: usize = 5;
/// Maximum start-up time of a server.
const PATIENCE: Duration = Duration::from_secs(120);

/// Running server. Dropping it stops the server.
#[derive(Debug)]
pub(super) struct Server {
    address: SocketAddr,
    directory: PathBuf,
    server: Child,
    /// Process that stops the server when this process ends, for any reason.
    janitor: Child,
}

impl Server {
    /// Starts `program` with the arguments that `arguments` returns for its port and directory, and waits until it
    /// accepts connections.
    ///
    /// # Panics
    /// The server does not start. The message contains its output.
    pub(super) fn start(
        program: &str,
        variables: &[(&str, &str)],
        arguments: impl Fn(u16, &Path) -> Vec<String>,
    ) -> Self {
        let path = find_tool(program);
        let mut message = String::new();
        for _ in 0..TRIES {
            let directory = make_directory(program);
            let port = free_port();
            let log = File::create(directory.join("log")).unwrap();
            let mut server = Command::new(&path)
                .args(arguments(port, &directory))
                .envs(variables.iter().copied())
                .current_dir(&directory)
                .stdin(Stdio::null())
                .stdout(log.try_clone().unwrap())
                .stderr(log)
                // In a separate process group, so that the whole group can be killed.
                .process_group(0)
                .spawn()
                .unwrap_or_else(|error| panic!("{program} does not start: {error}"));
            let janitor = hire_janitor(server.id(), &directory);
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let answers = wait_for(&mut server, address);
            let started = Self { address, directory, server, janitor };
            if answers {
                return started;
            }
            message = fs::read_to_string(started.directory.join("log")).unwrap_or_default();
        }
        panic!("{program} does not start. It said:\n{message}");
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.janitor.stdin.take());
        // A failure here cannot be handled.
        let _ = self.janitor.wait();
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Waits until the server accepts connections. Returns `false` if it exits before.
fn wait_for(server: &mut Child, address: SocketAddr) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if server.try_wait().unwrap().is_some() {
            return false;
        }
        if TcpStream::connect(address).is_ok() {
            return true;
        }
        thread::sleep(Duration::from_millis(20));
    }
    false
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

fn make_directory(program: &str) -> PathBuf {
    let random = scramble(RandomState::new().hash_one(std::process::id()));
    let directory = std::env::temp_dir().join(format!("orgvault-{program}-{}-{random:016x}", std::process::id()));
    DirBuilder::new().mode(0o700).create(&directory).unwrap();
    directory
}

/// Starts a shell that exits when its input closes, and then stops the server and removes its directory.
fn hire_janitor(server: u32, directory: &Path) -> Child {
    const SCRIPT: &str = "cat >/dev/null; kill -s KILL -- \"-$1\" 2>/dev/null; rm -rf \"$2\"";
    Command::new("sh")
        .args(["-c", SCRIPT, "sh", &server.to_string()])
        .arg(directory)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap()
}
