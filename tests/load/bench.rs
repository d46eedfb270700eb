//! A vault with its server and its minimal counterpart.

use crate::engine::{Target, run};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use vault_testkit::postgres::Cluster;
use vault_tests::process::{Server, free_address};
use vault_tests::sql::Sql;
use vault_tests::{Account, Client, Database, Vault};

pub(crate) const VAULT: &str = "/v1/organization-vault";
/// A list of the newest credentials.
pub(crate) const LIST: &str = "/v1/organization-vault?limit=100";

/// A vault to measure.
pub(crate) struct Bench<'a> {
    pub(crate) vault: Vault,
    server: Server,
    pub(crate) api: Target,
    pub(crate) activations: Target,
    cluster: Option<&'a Cluster>,
}

impl<'a> Bench<'a> {
    /// Creates a vault below `directory`, on `cluster` or on the embedded database, and starts its server.
    pub(crate) fn new(directory: &Path, cluster: Option<&'a Cluster>) -> Self {
        let vault = Vault::absent_in(directory, cluster.map(Cluster::create_database)).set_up();
        let activations = free_address();
        let mut command = vault.command(&["serve", "--max-credentials", "1000000000"]);
        command.arg("--activation-listen").arg(activations.to_string());
        // All connections come from one network, and all activations belong to one integration.
        command.args(["--login-rate", "0", "--activation-rate", "0", "--max-activations", "1000000"]);
        // As in the systemd unit and in the image.
        command.env("MALLOC_ARENA_MAX", "4");
        let server = Server::start(command, &vault.scratch("output"), &vault.scratch("log"));
        let mut processes = vec![server.id()];
        processes.extend(cluster.map(postmaster));
        let api = Target { address: server.address, processes };
        let activations = Target { address: activations, ..api.clone() };
        Self { vault, server, api, activations, cluster }
    }

    /// Returns the name of a measurement on this database.
    pub(crate) fn name(&self, what: &str) -> String {
        format!("{what}, {}", self.vault.database().name())
    }

    pub(crate) fn client(&self) -> Client {
        self.server.client()
    }

    /// Creates an organization with an editor and returns an access token.
    pub(crate) fn editor(&self, organization: &str) -> String {
        self.vault.account(organization, "editor").log_in(&self.client()).token
    }

    /// Creates editors, two in parallel.
    pub(crate) fn accounts(&self, organization: &str, count: usize) -> Vec<Account> {
        self.vault.organization(organization);
        in_pairs(0..count, |_| self.vault.account(organization, "editor"))
    }

    /// Creates organizations with an editor each, two in parallel, and returns access tokens.
    pub(crate) fn editors(&self, organization: &str, numbers: std::ops::Range<usize>) -> Vec<String> {
        in_pairs(numbers, |number| self.editor(&format!("{organization}-{number}")))
    }

    /// Saves `count` credentials and returns their IDs.
    pub(crate) fn fill(&self, token: &str, count: usize) -> Vec<String> {
        let (next, ids) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        run(&self.api, 32, None, |caller| {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return None;
                }
                let saved = caller.send("PATCH", VAULT, token, Some(&save(number)))?.expect(201);
                ids.lock().unwrap().push(id(&saved.json()));
            }
        });
        if self.vault.database() == Database::Postgres {
            // As PostgreSQL does automatically within a minute. Until then it plans for nearly empty tables.
            Sql::of(&self.vault).run("ANALYZE");
        }
        ids.into_inner().unwrap()
    }

    /// Returns the value of a counter of the server, or 0 if it does not exist.
    pub(crate) fn count(&self, series: &str) -> u64 {
        let metrics = self.server.admin_client().get("/metrics").send().expect(200).text();
        let value = metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.map_or(0, |value| value.trim().parse().expect("a count"))
    }

    /// Starts the minimal service on a new database.
    pub(crate) fn bare(&self) -> Bare {
        let database = self.cluster.map_or_else(|| self.vault.scratch("bare.db"), |one| one.create_database().into());
        let mut child = Command::new(example("bare_vault")).arg(database).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (address, token) = line.trim().split_once(' ').expect("bare_vault starts");
        let mut processes = vec![child.id()];
        processes.extend(self.cluster.map(postmaster));
        let target = Target { address: address.parse().unwrap(), processes };
        Bare { target, token: token.to_owned(), child }
    }
}

/// The minimal service.
pub(crate) struct Bare {
    pub(crate) target: Target,
    pub(crate) token: String,
    child: Child,
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the path of an example program.
pub(crate) fn example(name: &str) -> PathBuf {
    let path = std::env::current_exe().unwrap().parent().unwrap().join("examples").join(name);
    assert!(path.is_file(), "{name} is not built: run `cargo build --release --workspace --bins --examples`");
    path
}

/// Returns the process ID of the database server.
fn postmaster(cluster: &Cluster) -> u32 {
    let url = cluster.create_database();
    Sql::at(&url).value("SELECT split_part(pg_read_file('postmaster.pid'), chr(10), 1)").parse().expect("an ID")
}

/// Calls `make` for each number, two in parallel, in no particular order.
fn in_pairs<T: Send>(numbers: std::ops::Range<usize>, make: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let (made, numbers) = (Mutex::new(Vec::new()), Mutex::new(numbers));
    let next = || numbers.lock().unwrap().next();
    let maker = || {
        while let Some(number) = next() {
            let one = make(number);
            made.lock().unwrap().push(one);
        }
    };
    thread::scope(|scope| {
        scope.spawn(maker);
        maker();
    });
    made.into_inner().unwrap()
}

/// Returns the body of a save of an object store's credential, as a nightly import would use it.
pub(crate) fn save(number: usize) -> Value {
    json!({"type": "s3", "namespace": namespace(number), "data": data(number)})
}

/// Returns the namespace of a save.
pub(crate) fn namespace(number: usize) -> String {
    format!("imports/nightly-{number:08}")
}

/// Returns the data of a save.
pub(crate) fn data(number: usize) -> Value {
    json!({
        "access_key_id": format!("AKIAV7Q2MXTE{number:08}"),
        "secret_access_key": format!("q9LmZ4tXv+R7dK2s/Bn8wYpJ5hGc1EfU{number:08}"),
        "bucket": "northwind-datalake-prod", "region": "eu-central-1",
        "endpoint": "https://s3.eu-central-1.amazonaws.com", "key_prefix": "exports/daily/",
    })
}

/// Returns the ID in a response.
pub(crate) fn id(created: &Value) -> String {
    created["id"].as_str().expect("an ID").to_owned()
}
