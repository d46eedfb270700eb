//! A vault of one test's own.

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

/// A vault: data directory, database, one server at most. All of it ends with this value.
pub struct Vault {
    server: Option<Server>,
    flags: Vec<String>,
    database: Database,
    /// As the owner of the tables.
    url: Option<String>,
    /// As a role with the rights of `docs/postgresql-grants.sql`, once the tables exist.
    service_url: Option<String>,
    organizations: Mutex<BTreeSet<String>>,
    accounts: AtomicU32,
    home: TempDir,
}

impl Vault {
    /// A vault that was never set up: neither data directory nor schema.
    pub fn absent(database: Database) -> Self {
        match database {
            Database::Sqlite => Self::without_rows(None),
            Database::Postgres => Self::without_rows(Some(new_postgres())),
        }
    }

    /// A vault on a PostgreSQL server of this test's own that was never set up.
    pub fn absent_on(cluster: &Cluster) -> Self {
        Self::without_rows(Some(cluster.create_database()))
    }

    /// A vault that was never set up, in a directory of its own in `directory`, with its rows in the PostgreSQL database
    /// at `url`, else in the embedded file.
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

    /// A vault without a server.
    #[track_caller]
    pub fn init(database: Database) -> Self {
        Self::absent(database).set_up()
    }

    /// This vault, set up.
    #[track_caller]
    pub fn set_up(self) -> Self {
        self.run(&["init"]).done();
        self.granted()
    }

    /// This vault, whose servers and commands have the rights that the documentation gives to the service's role.
    #[track_caller]
    pub fn granted(mut self) -> Self {
        self.grant();
        self
    }

    /// A vault with a server.
    #[track_caller]
    pub fn start(database: Database) -> Self {
        Self::start_with(database, &[])
    }

    /// A vault whose servers get these flags.
    #[track_caller]
    pub fn start_with(database: Database, flags: &[&str]) -> Self {
        let mut vault = Self::init(database);
        vault.serve_with(flags);
        vault
    }

    /// A vault on a PostgreSQL server of this test's own, whose servers get these flags.
    #[track_caller]
    pub fn start_on(cluster: &Cluster, flags: &[&str]) -> Self {
        let mut vault = Self::absent_on(cluster).set_up();
        vault.serve_with(flags);
        vault
    }

    /// From now on commands and servers have the rights that the documentation gives to the service's role.
    #[track_caller]
    fn grant(&mut self) {
        self.service_url = self.url.as_deref().map(grant);
    }

    /// Where it keeps its rows.
    pub fn database(&self) -> Database {
        self.database
    }

    /// The address of its PostgreSQL database, for the owner of the tables.
    pub fn url(&self) -> &str {
        self.url.as_deref().expect("this vault is on PostgreSQL")
    }

    /// Goes on with the rows in the PostgreSQL database at `url`.
    pub fn use_postgres(&mut self, url: String) {
        self.database = Database::Postgres;
        self.url = Some(url);
        self.grant();
    }

    /// Its data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// A file of this test's, outside the data directory.
    pub fn scratch(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// What its servers have logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.scratch("log")).unwrap_or_default()
    }

    /// A command with the rights that keys of the deployment need on PostgreSQL: those of the owner of the tables.
    pub fn owner_command(&self, arguments: &[&str]) -> Command {
        let mut command = binary::command();
        command.arg("--data-dir").arg(self.data_dir());
        if self.database() == Database::Postgres {
            command.args(["--database-url", self.url()]);
        }
        command.args(arguments);
        command
    }

    /// A command on this vault.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.on_this(binary::command(), arguments)
    }

    /// `command`, which runs the binary, with the flags that name this vault, and these arguments.
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

    /// Runs a command for its JSON document.
    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        self.run(&[arguments, &["--json"]].concat()).done().json()
    }

    /// The command that serves this vault, without listeners.
    pub fn serve_command(&self) -> Command {
        let mut command = self.command(&["serve"]);
        command.args(&self.flags);
        command
    }

    /// Starts its server.
    pub fn serve(&mut self) {
        assert!(self.server.is_none(), "it has a server");
        self.server = Some(self.replica());
    }

    /// Starts its server with its public listener at `address`.
    pub fn serve_at(&mut self, address: SocketAddr) {
        assert!(self.server.is_none(), "it has a server");
        let mut server = Server::spawn_at(address, self.serve_command(), &self.scratch("output"), &self.scratch("log"));
        server.wait_until_ready();
        self.server = Some(server);
    }

    /// Starts its server with these flags, which later ones get too.
    pub fn serve_with(&mut self, flags: &[&str]) {
        self.flags.extend(flags.iter().map(|&flag| flag.to_owned()));
        self.serve();
    }

    /// One more server on the same database, of this test's own.
    pub fn replica(&self) -> Server {
        Server::start(self.serve_command(), &self.scratch("output"), &self.scratch("log"))
    }

    /// Its server.
    pub fn server(&self) -> &Server {
        self.server.as_ref().expect("its server runs")
    }

    /// Its server, to be ended by the test.
    pub fn take_server(&mut self) -> Server {
        self.server.take().expect("its server runs")
    }

    /// Its server's public listener.
    pub fn address(&self) -> SocketAddr {
        self.server().address
    }

    /// A client with connections of its own.
    pub fn client(&self) -> Client {
        self.server().client()
    }

    /// Stops its server, which must end well.
    #[track_caller]
    pub fn stop(&mut self) {
        assert_eq!(self.take_server().stop(), Some(0), "{}", self.log());
    }

    /// Stops its server and starts another.
    #[track_caller]
    pub fn restart(&mut self) {
        self.stop();
        self.serve();
    }

    /// Kills its server and starts another.
    pub fn kill_and_restart(&mut self) {
        self.take_server().kill();
        self.serve();
    }

    /// Makes an organization, once.
    #[track_caller]
    pub fn organization(&self, name: &str) {
        if self.organizations.lock().unwrap().insert(name.to_owned()) {
            self.run(&["org", "create", name]).done();
        }
    }

    /// Makes an account with an address and a password of its own, and its organization if need be.
    #[track_caller]
    pub fn account(&self, organization: &str, role: &str) -> Account {
        let number = self.accounts.fetch_add(1, Ordering::Relaxed);
        self.organization(organization);
        let email = format!("{role}.{number}@example.com");
        let created = self.json(&["account", "create", "--org", organization, "--email", &email, "--role", role]);
        Account::new(&created, None)
    }

    /// Makes an admin account in organization `Acme`.
    #[track_caller]
    pub fn admin(&self) -> Account {
        self.account("Acme", "admin")
    }

    /// Makes an admin account in organization `Acme` and logs in.
    #[track_caller]
    pub fn admin_session(&self) -> Session {
        self.admin().log_in(&self.client())
    }

    /// Makes an account in organization `Acme` with this address and password.
    #[track_caller]
    pub fn account_of(&self, email: &str, password: &str) -> Account {
        let created = self.try_account_of(email, password).done().json();
        Account::new(&created, Some(password))
    }

    /// Tries to make an account in organization `Acme` with this address and password.
    #[track_caller]
    pub fn try_account_of(&self, email: &str, password: &str) -> Run {
        self.organization("Acme");
        let file = self.password_file(password);
        let file = file.to_str().unwrap();
        let account = ["account", "create", "--org", "Acme", "--email", email, "--role", "admin"];
        self.run(&[&account[..], &["--password-file", file, "--json"]].concat())
    }

    /// A file that holds `password`.
    pub fn password_file(&self, password: &str) -> PathBuf {
        let file = self.scratch(&format!("password-{}", self.accounts.fetch_add(1, Ordering::Relaxed)));
        // With the line end that editors put there, which is left out.
        std::fs::write(&file, format!("{password}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        file
    }

    /// The sum over all labels of the metric `name`, and nothing if it was never counted.
    #[track_caller]
    pub fn metric(&self, name: &str) -> u64 {
        let text = self.server().admin_client().get("/metrics").send().expect(200).text();
        let samples =
            text.lines().filter_map(|line| line.strip_prefix(name)).filter(|rest| rest.starts_with([' ', '{']));
        samples.map(|rest| rest.rsplit(' ').next().unwrap().parse::<u64>().expect("a count")).sum()
    }

    /// How many passwords were compared with a hash, decoys included.
    #[track_caller]
    pub fn password_evaluations(&self) -> u64 {
        self.metric("orgvault_password_evaluations_total")
    }
}
