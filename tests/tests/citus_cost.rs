//! Processor time of operations on Citus and on a single PostgreSQL server, in one run. `tests/citus` builds the
//! extension and runs this test. Without the extension, it is ignored.

#![allow(clippy::print_stdout, reason = "figures for the pages")]

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};
use vault_testkit::postgres::{Cluster, Options};
use vault_tests::passcode::current_step;
use vault_tests::process::free_address;
use vault_tests::samples::small;
use vault_tests::{Account, ActivationListener, Client, Integration, Session, Vault};

const WORKERS: usize = 2;
const ROUNDS: usize = 3;
/// Number of operations per round. Each login hashes a password.
const REPEATED: usize = 120;
const LOGINS: usize = 12;
const OPERATIONS: [&str; 7] = ["save", "list", "show", "replace", "delete", "activate and end", "login"];

/// A vault, and the clients for its operations.
struct Bench {
    /// Declared before the server, because the vault must be dropped first.
    vault: Vault,
    cluster: Cluster,
    session: Session,
    activation_listener: Client,
    integration: Integration,
    listed: String,
    replaced: Vec<String>,
    accounts: Vec<Account>,
}

impl Bench {
    fn start(workers: usize) -> Self {
        let settings = ["shared_buffers=128MB", "max_wal_size=4GB"].map(str::to_owned).to_vec();
        let cluster = Cluster::start(Options { workers, settings, ..Options::default() });
        let mut vault = Vault::absent_on(&cluster).set_up();
        let activation_listener = ActivationListener { address: free_address() };
        let listen = format!("--activation-listen={}", activation_listener.address);
        vault.serve_with(&["--activation-rate", "0", "--login-rate", "0", &listen]);
        let session = vault.admin_session();
        let integration = Integration::make(&vault, "crew", &["crew/*"]);
        let replaced: Vec<String> = (0..100).map(|number| session.save(&small("listed/one", number))).collect();
        session.save(&small("crew/one", 1));
        let accounts = (0..LOGINS * ROUNDS + 1).map(|_| vault.admin()).collect();
        let listed = "/v1/organization-vault?limit=100&namespace=listed%2Fone".to_owned();
        Self {
            activation_listener: activation_listener.client(),
            vault,
            cluster,
            session,
            integration,
            listed,
            replaced,
            accounts,
        }
    }

    /// Returns the processor time that its database servers have used.
    fn work(&self) -> Duration {
        let servers = self.cluster.postmasters();
        let ticks: u64 = processes()
            .iter()
            .map(|(id, (parent, own, reaped))| match (servers.contains(id), servers.contains(parent)) {
                (true, _) => own + reaped,
                (_, true) => *own,
                _ => 0,
            })
            .sum();
        Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    }

    /// Returns the processor time of `count` operations, without the estimated background work of the servers, based on
    /// `idle`.
    fn measure(&mut self, operation: &str, count: usize, idle: f64) -> Duration {
        let mut deleted: Vec<String> = match operation {
            "delete" => (0..count).map(|number| self.session.save(&small("crew/two", number))).collect(),
            _ => Vec::new(),
        };
        let (started, before) = (Instant::now(), self.work());
        for number in 0..count {
            match operation {
                "save" => drop(self.session.save(&small("crew/three", number))),
                "list" => drop(self.session.call("GET", &self.listed).send().expect(200)),
                "show" => drop(self.session.show(&self.replaced[number % self.replaced.len()]).expect(200)),
                "replace" => {
                    let id = &self.replaced[number % self.replaced.len()];
                    drop(self.session.replace(id, &small("listed/one", number), false).expect(201));
                }
                "delete" => {
                    let id = deleted.pop().expect("a credential that is not deleted yet");
                    drop(self.session.delete(&id).expect(204));
                }
                "activate and end" => {
                    let created = self.integration.activate(&self.activation_listener, "crew/one").expect(201).json();
                    let id = created["id"].as_str().expect("an id");
                    let end = self.activation_listener.request("DELETE", &format!("/v1/activations/{id}"));
                    end.bearer(&self.integration.token).send().expect(204);
                }
                "login" => {
                    let account = self.accounts.pop().expect("an account that has not logged in");
                    let login = account.login(&account.authenticator.code(current_step()));
                    self.vault.client().log_in(&login).expect(200);
                }
                other => panic!("no operation is called {other}"),
            }
        }
        let used = self.work().saturating_sub(before);
        used.saturating_sub(started.elapsed().mul_f64(idle))
    }

    /// Returns the processor time that idle servers use per second.
    fn idle(&self) -> f64 {
        let (started, before) = (Instant::now(), self.work());
        std::thread::sleep(Duration::from_secs(3));
        self.work().saturating_sub(before).as_secs_f64() / started.elapsed().as_secs_f64()
    }
}

/// Returns every process with its parent, its ticks and those of its exited children.
fn processes() -> BTreeMap<u32, (u32, u64, u64)> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter_map(|id| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name in parentheses may contain any characters. The relevant fields are after it.
        let fields: Vec<u64> = stat
            .rsplit_once(") ")?
            .1
            .split_ascii_whitespace()
            .skip(1)
            .map(|field| field.parse().unwrap_or(0))
            .collect();
        Some((id, (u32::try_from(fields[0]).ok()?, fields[10] + fields[11], fields[12] + fields[13])))
    })
    .collect()
}

/// Prints the measurements for comparison by a human. A test must not depend on the load of the host.
#[test]
#[ignore = "needs the extension Citus: tests/citus"]
fn processor_time_of_each_operation_compared_to_one_postgresql() {
    let mut benches = [Bench::start(0), Bench::start(WORKERS)];
    let idle = [benches[0].idle(), benches[1].idle()];
    let mut used: BTreeMap<&str, [Duration; 2]> = BTreeMap::new();
    for round in 0..=ROUNDS {
        for operation in OPERATIONS {
            for (place, bench) in benches.iter_mut().enumerate() {
                // The first round establishes connections and query plans.
                let count = match (operation, round) {
                    ("login", 0) => 1,
                    ("login", _) => LOGINS,
                    (_, 0) => 20,
                    _ => REPEATED,
                };
                let time = bench.measure(operation, count, idle[place]);
                if round > 0 {
                    used.entry(operation).or_default()[place] += time / u32::try_from(count * ROUNDS).unwrap();
                }
            }
        }
    }
    println!("idle: {:.3} and {:.3} s a second", idle[0], idle[1]);
    for operation in OPERATIONS {
        let [one, spread] = used[operation];
        let ratio = spread.as_secs_f64() / one.as_secs_f64();
        println!("{operation}: {:.2} ms on one PostgreSQL, {:.2} ms on Citus, {ratio:.1} times", ms(one), ms(spread));
        assert!(!one.is_zero() && !spread.is_zero(), "{operation} took no processor time");
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
