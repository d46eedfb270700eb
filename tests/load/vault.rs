//! A vault to measure, with its data directory, its database, its servers and its commands.

use crate::client::exchange;
use crate::process::{self, Memory};
use crate::request;
use crate::{Result, note};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit for the start or the stop of a server.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) struct Vault {
    binary: PathBuf,
    directory: PathBuf,
    /// The database URL, if the vault uses a database server.
    pub(crate) database_url: Option<String>,
    /// The processes of the database server.
    pub(crate) database_processes: Vec<u32>,
}

/// A running server.
pub(crate) struct Server {
    child: Child,
    /// Address of the HTTP API.
    pub(crate) address: SocketAddr,
    /// Address of the admin listener.
    pub(crate) admin: SocketAddr,
    /// Address of the activation listener.
    pub(crate) activation: SocketAddr,
    watched: Vec<u32>,
}

impl Vault {
    /// Creates a vault under `directory`.
    pub(crate) fn create(binary: &Path, directory: &Path, database: Option<(String, u32)>) -> Result<Self> {
        let (database_url, process) = database.unzip();
        let vault = Self {
            binary: binary.to_owned(),
            directory: directory.join("vault"),
            database_url,
            database_processes: process.into_iter().collect(),
        };
        vault.run(&["init"])?;
        Ok(vault)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("ORGVAULT_") {
                command.env_remove(name);
            }
        }
        if let Some(url) = &self.database_url {
            command.env("ORGVAULT_DATABASE_URL", url);
        }
        command.arg("--data-dir").arg(&self.directory).args(arguments).stdin(Stdio::null());
        command
    }

    /// Runs a command and parses the JSON document that it prints.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<Value> {
        let output = self.command(arguments).arg("--json").output()?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr);
            return Err(format!("orgvault {}: {}: {}", arguments.join(" "), output.status, message.trim()).into());
        }
        if output.stdout.iter().all(u8::is_ascii_whitespace) {
            Ok(Value::Null)
        } else {
            Ok(serde_json::from_slice(&output.stdout)?)
        }
    }

    /// Starts a server and waits until it is ready.
    pub(crate) fn serve(&self) -> Result<Server> {
        let server = self.spawn()?;
        server.first_answer("/readyz")?;
        Ok(server)
    }

    /// Starts a server without a wait.
    pub(crate) fn spawn(&self) -> Result<Server> {
        let (address, admin, activation) = (free_address()?, free_address()?, free_address()?);
        let log = File::options().create(true).append(true).open(self.directory.with_extension("log"))?;
        let arguments = ["serve", "--max-credentials", "1000000000", "--listen"];
        let mut command = self.command(&arguments);
        command.arg(address.to_string()).arg("--admin-listen").arg(admin.to_string());
        command.arg("--activation-listen").arg(activation.to_string());
        // All connections of a load come from one network, and many belong to one integration.
        command.env("ORGVAULT_LOGIN_RATE", "0").args(["--activation-rate", "0", "--max-activations", "1000000"]);
        // Receivers run on this host.
        command.args(["--allow-egress", "127.0.0.0/8"]);
        // As in the systemd unit and in the image.
        command.env("MALLOC_ARENA_MAX", "4");
        let child = command.stdout(log.try_clone()?).stderr(log).spawn()?;
        let mut watched = self.database_processes.clone();
        watched.push(child.id());
        Ok(Server { child, address, admin, activation, watched })
    }

    /// Returns the size of all files in the data directory, in bytes.
    pub(crate) fn size(&self) -> Result<u64> {
        fs::read_dir(&self.directory)?.map(|entry| Ok(entry?.metadata()?.len())).sum()
    }

    /// Returns the last lines of the log of the servers.
    pub(crate) fn log(&self) -> String {
        let log = fs::read_to_string(self.directory.with_extension("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(10)..].join("\n")
    }
}

impl Server {
    /// Waits for the first response with status 200 on `path`.
    pub(crate) fn first_answer(&self, path: &str) -> Result<()> {
        let started = Instant::now();
        let request = request::get(self.address, path);
        while started.elapsed() < LIMIT {
            if matches!(exchange(self.address, &request), Ok((200, ..))) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Err("the server does not get ready".into())
    }

    /// Returns the processes whose processor time counts as that of the server: its own and those of the database.
    pub(crate) fn watched(&self) -> &[u32] {
        &self.watched
    }

    /// Returns the memory of the server.
    pub(crate) fn memory(&self) -> Result<Memory> {
        process::memory(self.child.id())
    }

    /// Requests a stop and waits for the exit of the server.
    pub(crate) fn stop(mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let started = Instant::now();
        while started.elapsed() < LIMIT {
            if let Some(status) = self.child.try_wait()? {
                return if status.success() { Ok(()) } else { Err(format!("the server ended with {status}").into()) };
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Err("the server does not stop".into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            if let Err(error) = self.child.wait() {
                note(&format!("a server was not seen to end: {error}"));
            }
        }
    }
}

/// Returns an address without a listener.
fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
