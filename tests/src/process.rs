//! A running server.

use crate::binary::{self, Run};
use crate::client::Client;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{File, OpenOptions};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// Maximum duration of a start or stop.
const LIMIT: Duration = Duration::from_secs(90);

/// A server, which is killed on drop.
pub struct Server {
    child: Child,
    /// Address of the public listener.
    pub address: SocketAddr,
    /// Address of the admin listener.
    pub admin: SocketAddr,
    log: PathBuf,
}

impl Server {
    /// Starts `command` with unused listener addresses and waits until it is ready. Standard output goes to `output`.
    /// Standard error is appended to `log`.
    pub fn start(command: Command, output: &Path, log: &Path) -> Self {
        let mut server = Self::spawn(command, output, log);
        server.wait_until_ready();
        server
    }

    /// Starts `command` without waiting.
    pub fn spawn(command: Command, output: &Path, log: &Path) -> Self {
        Self::spawn_at(free_address(), command, output, log)
    }

    /// Starts `command` with its public listener at `address`, without waiting.
    pub fn spawn_at(address: SocketAddr, command: Command, output: &Path, log: &Path) -> Self {
        Self::spawn_with([address, free_address()], command, output, log)
    }

    /// Starts `command` with its public and admin listeners at these addresses, without waiting.
    pub fn spawn_with([address, admin]: [SocketAddr; 2], mut command: Command, output: &Path, log: &Path) -> Self {
        command.arg("--listen").arg(address.to_string()).arg("--admin-listen").arg(admin.to_string());
        let stderr = OpenOptions::new().create(true).append(true).open(log).unwrap();
        let child = command.stdout(File::create(output).unwrap()).stderr(stderr).spawn().unwrap();
        Self { child, address, admin, log: log.to_owned() }
    }

    /// Runs `command`, which must fail to start a server, until it exits.
    pub fn fail(mut command: Command) -> Run {
        command.arg("--listen").arg(free_address().to_string()).arg("--admin-listen").arg("");
        Run::of(&mut command)
    }

    /// Waits until `/readyz` reports readiness.
    pub fn wait_until_ready(&mut self) {
        self.wait_until_ready_by(&self.client());
    }

    /// Waits until `/readyz` reports readiness to `client`.
    pub fn wait_until_ready_by(&mut self, client: &Client) {
        let start = Instant::now();
        loop {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "the server ended with {ended:?}: {}", self.log_text());
            if client.get("/readyz").try_send().is_ok_and(|answer| answer.status == 200) {
                return;
            }
            assert!(start.elapsed() < LIMIT, "the server does not become ready: {}", self.log_text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until `/readyz` reports readiness. Returns `false` if the server exits first or `limit` is exceeded.
    pub fn becomes_ready(&mut self, limit: Duration) -> bool {
        let (started, client) = (Instant::now(), self.client());
        while self.is_alive() && started.elapsed() < limit {
            if client.get("/readyz").try_send().is_ok_and(|answer| answer.status == 200) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    /// Returns a client of the public listener with new connections.
    pub fn client(&self) -> Client {
        Client::new(self.address)
    }

    /// Returns a client of the admin listener.
    pub fn admin_client(&self) -> Client {
        Client::new(self.admin)
    }

    /// Returns the process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns whether the process is running.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Returns whether the public listener's end of the connection to `peer` is still open.
    pub fn is_connected(&self, peer: SocketAddr) -> bool {
        const ESTABLISHED: &str = "01";
        // Format of the kernel: hexadecimal address in native byte order, and port.
        let written = |address: SocketAddr| match address.ip() {
            IpAddr::V4(ip) => format!("{:08X}:{:04X}", u32::from_ne_bytes(ip.octets()), address.port()),
            IpAddr::V6(_) => panic!("the listener is on IPv4"),
        };
        let (local, remote) = (written(self.address), written(peer));
        let table = std::fs::read_to_string("/proc/net/tcp").expect("the kernel's table of connections");
        table.lines().any(|line| line.split_whitespace().skip(1).take(3).eq([&*local, &*remote, ESTABLISHED]))
    }

    /// Returns the resident memory of the process in bytes.
    pub fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// Sends SIGTERM.
    pub fn ask_to_stop(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends SIGHUP, as if the terminal was closed, and returns the exit status.
    pub fn hang_up(mut self) -> Option<i32> {
        self.signal(Signal::HUP);
        self.wait()
    }

    /// Stops the server and returns its exit status.
    pub fn stop(mut self) -> Option<i32> {
        self.ask_to_stop();
        self.wait()
    }

    /// Waits for the exit and returns the exit status.
    pub fn wait(&mut self) -> Option<i32> {
        let status = binary::wait(&mut self.child, LIMIT);
        status.unwrap_or_else(|| panic!("the server does not stop: {}", self.log_text())).code()
    }

    /// Waits for the exit and returns the status or the signal.
    pub fn status(mut self) -> std::process::ExitStatus {
        let status = binary::wait(&mut self.child, LIMIT);
        status.unwrap_or_else(|| panic!("the server does not stop: {}", self.log_text()))
    }

    /// Kills the process, as in a power failure.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.id()).unwrap()).unwrap();
        let _ = kill_process(pid, signal); // it may have exited
    }

    /// Returns the log of this server and of its predecessors with the same log file.
    pub fn log_text(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            self.signal(Signal::TERM);
            if binary::wait(&mut self.child, Duration::from_secs(5)).is_none() {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
        }
    }
}

/// Returns a loopback address that is unique for this process. It is neither the first nor the last of the network, and
/// not the commonly used one.
pub fn own_address() -> IpAddr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(127, 1 + high % 250, middle, 1 + low % 250))
}

/// Returns an unused address: on this process's loopback address, below the range of ephemeral ports.
pub fn free_address() -> SocketAddr {
    const FIRST_PORT: u16 = 10_000;
    const PORTS: u16 = 20_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let address = own_address();
    for _ in 0..PORTS {
        let port = FIRST_PORT + NEXT.fetch_add(1, Ordering::Relaxed) % PORTS;
        if TcpListener::bind((address, port)).is_ok() {
            return (address, port).into();
        }
    }
    panic!("no port of {address} is free");
}
