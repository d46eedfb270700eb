//! A separate vault for each test.

use crate::account::{Account, Session};
use crate::binary::{self, Run};
use crate::client::Client;
use crate::database::{Database, grant, new_postgres};
use crate::process::Server;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;
use vault_testkit::postgres::Cluster;

/// A vault: data directory, database, and at most one server. Everything is removed on drop.
pub struct Vault {
    server: Option<Server>,
    flags: Vec<String>,
    database: Database,
    /// Database URL for the owner of the tables.
    url: Option<String>,
    /// Database URL for a role with the rights of `docs/postgresql-grants.sql`, after the tables were created.
    service_url: Option<String>,
    organizations: Mutex<BTreeSet<String>>,
    accounts: AtomicU32,
    home: TempDir,
}

impl Vault {
    /// Returns a vault without data directory and schema.
    pub fn absent(database: Database) -> Self {
        match database {
            Database::Sqlite => Self::without_rows(None),
            Database::Postgres => Self::without_rows(Some(new_postgres())),
        }
    }

    /// Returns a vault without data directory and schema, on a separate PostgreSQL server.
    pub fn absent_on(cluster: &Cluster) -> Self {
        Self::without_rows(Some(cluster.create_database()))
    }

    /// Returns a vault without data directory and schema, below `directory`. It uses the PostgreSQL database at `url`,
    /// or the embedded database.
    pub fn absent_in(directory: &Path, url: Option<String>) -> Self {
        Self { home: tempfile::tempdir_in(directory).unwrap(), ..Self::without_rows(url) }
    }

    fn without_rows(url: Option<String>) -> Self {
        Self {
            server: None,
            flags: Vec::new(),
            database: if url.is_some() { Database::Postgres } else { Database::Sqlite },
            url,
            service_url: None,
            organizations: Mutex::default(),
            accounts: AtomicU32::new(0),
            home: tempfile::tempdir().unwrap(),
        }
    }

    /// Creates a vault without a server.
    #[track_caller]
    pub fn init(database: Database) -> Self {
        Self::absent(database).set_up()
    }

    /// Initializes this vault.
    #[track_caller]
    pub fn set_up(self) -> Self {
        self.run(&["init"]).done();
        self.granted()
    }

    /// Restricts servers and commands of this vault to the rights that the documentation grants to the service's role.
    #[track_caller]
    pub fn granted(mut self) -> Self {
        self.grant();
        self
    }

    /// Creates a vault with a server.
    #[track_caller]
    pub fn start(database: Database) -> Self {
        Self::start_with(database, &[])
    }

    /// Creates a vault whose servers get these flags.
    #[track_caller]
    pub fn start_with(database: Database, flags: &[&str]) -> Self {
        let mut vault = Self::init(database);
        vault.serve_with(flags);
        vault
    }

    /// Creates a vault on a separate PostgreSQL server. Its servers get these flags.
    #[track_caller]
    pub fn start_on(cluster: &Cluster, flags: &[&str]) -> Self {
        let mut vault = Self::absent_on(cluster).set_up();
        vault.serve_with(flags);
        vault
    }

    /// Restricts later commands and servers to the rights that the documentation grants to the service's role.
    #[track_caller]
    fn grant(&mut self) {
        self.service_url = self.url.as_deref().map(grant);
    }

    /// Returns the database type.
    pub fn database(&self) -> Database {
        self.database
    }

    /// Returns the PostgreSQL URL for the owner of the tables.
    pub fn url(&self) -> &str {
        self.url.as_deref().expect("this vault is on PostgreSQL")
    }

    /// Switches to the PostgreSQL database at `url`.
    pub fn use_postgres(&mut self, url: String) {
        self.database = Database::Postgres;
        self.url = Some(url);
        self.grant();
    }

    /// Returns the data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// Returns the path of a test file outside the data directory.
    pub fn scratch(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Returns the log of its servers.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.scratch("log")).unwrap_or_default()
    }

    /// Returns a command with the rights of the tables' owner, which operations on instance keys require on PostgreSQL.
    pub fn owner_command(&self, arguments: &[&str]) -> Command {
        let mut command = binary::command();
        command.arg("--data-dir").arg(self.data_dir());
        if self.database() == Database::Postgres {
            command.args(["--database-url", self.url()]);
        }
        command.args(arguments);
        command
    }

    /// Returns a command on this vault.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.on_this(binary::command(), arguments)
    }

    /// Adds the flags that select this vault, and these arguments, to `command`, which runs the binary.
    pub fn on_this(&self, mut command: Command, arguments: &[&str]) -> Command {
        command.arg("--data-dir").arg(self.data_dir());
        if let Some(url) = self.service_url.as_ref().or(self.url.as_ref()) {
            command.arg("--database-url").arg(url);
        }
        command.args(arguments);
        command
    }

    /// Runs a command on this vault.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> Run {
        Run::of(&mut self.command(arguments))
    }

    /// Runs a command and returns its JSON output.
    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        self.run(&[arguments, &["--json"]].concat()).done().json()
    }

    /// Runs `quickstart` with these arguments until it is ready. Returns its output and its server.
    pub fn quickstart(&self, arguments: &[&str]) -> (Server, String) {
        self.quickstart_by(self.command(&[&["quickstart"], arguments].concat()))
    }

    /// Runs this `quickstart` command until it is ready.
    pub fn quickstart_by(&self, command: Command) -> (Server, String) {
        let output = self.scratch("output");
        let server = Server::start(command, &output, &self.scratch("log"));
        (server, std::fs::read_to_string(output).unwrap())
    }

    /// Returns the `serve` command for this vault, without listener addresses.
    pub fn serve_command(&self) -> Command {
        let mut command = self.command(&["serve"]);
        command.args(&self.flags);
        command
    }

    /// Starts the server.
    pub fn serve(&mut self) {
        assert!(self.server.is_none(), "it has a server");
        self.server = Some(self.replica());
    }

    /// Starts the server with these flags, which later ones get too.
    pub fn serve_with(&mut self, flags: &[&str]) {
        self.flags.extend(flags.iter().map(|&flag| flag.to_owned()));
        self.serve();
    }

    /// Starts an additional server on the same database, owned by the test.
    pub fn replica(&self) -> Server {
        Server::start(self.serve_command(), &self.scratch("output"), &self.scratch("log"))
    }

    /// Returns the server.
    pub fn server(&self) -> &Server {
        self.server.as_ref().expect("its server runs")
    }

    /// Returns the server, which the test must stop.
    pub fn take_server(&mut self) -> Server {
        self.server.take().expect("its server runs")
    }

    /// Returns the address of the server's public listener.
    pub fn address(&self) -> SocketAddr {
        self.server().address
    }

    /// Returns a client with new connections.
    pub fn client(&self) -> Client {
        self.server().client()
    }

    /// Stops the server, which must exit with status 0.
    #[track_caller]
    pub fn stop(&mut self) {
        assert_eq!(self.take_server().stop(), Some(0), "{}", self.log());
    }

    /// Stops the server and starts another.
    #[track_caller]
    pub fn restart(&mut self) {
        self.stop();
        self.serve();
    }

    /// Kills the server and starts another.
    pub fn kill_and_restart(&mut self) {
        self.take_server().kill();
        self.serve();
    }

    /// Creates an organization, unless this vault already did.
    #[track_caller]
    pub fn organization(&self, name: &str) {
        if self.organizations.lock().unwrap().insert(name.to_owned()) {
            self.run(&["org", "create", name]).done();
        }
    }

    /// Creates an account with a unique address and password, and its organization if necessary.
    #[track_caller]
    pub fn account(&self, organization: &str, role: &str) -> Account {
        let number = self.accounts.fetch_add(1, Ordering::Relaxed);
        self.organization(organization);
        let email = format!("{role}.{number}@example.com");
        let created = self.json(&["account", "create", "--org", organization, "--email", &email, "--role", role]);
        Account::new(&created, None)
    }

    /// Creates an admin account in organization `Acme`.
    #[track_caller]
    pub fn admin(&self) -> Account {
        self.account("Acme", "admin")
    }

    /// Creates an admin account in organization `Acme` and logs in.
    #[track_caller]
    pub fn admin_session(&self) -> Session {
        self.admin().log_in(&self.client())
    }

    /// Creates an account in organization `Acme` with this address and password.
    #[track_caller]
    pub fn account_of(&self, email: &str, password: &str) -> Account {
        let created = self.try_account_of(email, password).done().json();
        Account::new(&created, Some(password))
    }

    /// Tries to create an account in organization `Acme` with this address and password.
    #[track_caller]
    pub fn try_account_of(&self, email: &str, password: &str) -> Run {
        self.organization("Acme");
        let file = self.password_file(password);
        let file = file.to_str().unwrap();
        let account = ["account", "create", "--org", "Acme", "--email", email, "--role", "admin"];
        self.run(&[&account[..], &["--password-file", file, "--json"]].concat())
    }

    /// Creates a file that contains `password`.
    pub fn password_file(&self, password: &str) -> PathBuf {
        let file = self.scratch(&format!("password-{}", self.accounts.fetch_add(1, Ordering::Relaxed)));
        // With a line end, as editors add it. It must be ignored.
        std::fs::write(&file, format!("{password}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        file
    }

    /// Returns the sum of the metric `name` for all labels, or 0 if it does not exist.
    #[track_caller]
    pub fn metric(&self, name: &str) -> u64 {
        let text = self.server().admin_client().get("/metrics").send().expect(200).text();
        let samples =
            text.lines().filter_map(|line| line.strip_prefix(name)).filter(|rest| rest.starts_with([' ', '{']));
        samples.map(|rest| rest.rsplit(' ').next().unwrap().parse::<u64>().expect("a count")).sum()
    }

    /// Returns the number of evaluated password hashes, including decoys.
    #[track_caller]
    pub fn password_evaluations(&self) -> u64 {
        self.metric("orgvault_password_evaluations_total")
    }
}
