//! Sixteen concurrent logins with one second factor on three replicas: exactly one succeeds.

#![allow(clippy::print_stdout, reason = "a test prints its count")]

use serde_json::Value;
use std::sync::Barrier;
use std::thread;
use vault_tests::passcode::within_one_step;
use vault_tests::{Account, Client, Database, Vault};

const LOGINS: usize = 16;
/// Networks that the account has logged in from. Each has a separate throttle bucket with four attempts here, so that
/// all sixteen passwords are hashed and verified.
const NETWORKS: usize = 4;
/// Rounds of an ordinary run. `ORGVAULT_RACE_ROUNDS` sets another number.
const ROUNDS: usize = 12;

/// A vault with three replicas that trust forwarded addresses.
struct Cluster {
    vault: Vault,
    replicas: Vec<Client>,
    // Stopped when this value is dropped.
    _others: Vec<vault_tests::process::Server>,
}

impl Cluster {
    fn start() -> Self {
        let vault = Vault::start_with(Database::Postgres, &["--trusted-proxy", "127.0.0.1/32"]);
        let others = vec![vault.replica(), vault.replica()];
        let replicas = std::iter::once(vault.client()).chain(others.iter().map(|server| server.client())).collect();
        Self { vault, replicas, _others: others }
    }

    /// Creates an account that has logged in from every network.
    fn known_account(&self) -> Account {
        let account = self.vault.admin();
        for network in 0..NETWORKS {
            let status = log_in_from(&self.replicas[0], network, &account.sound_login());
            assert_eq!(status, 200);
        }
        account
    }

    /// Returns the statuses of sixteen logins with `body` that start simultaneously.
    fn concurrently(&self, body: &Value) -> Vec<u16> {
        let barrier = Barrier::new(LOGINS);
        thread::scope(|scope| {
            let logins: Vec<_> = (0..LOGINS)
                .map(|number| {
                    let (client, barrier) = (self.replicas[number % self.replicas.len()].clone(), &barrier);
                    scope.spawn(move || {
                        client.get("/livez").send(); // establishes the connection before the race starts
                        barrier.wait();
                        log_in_from(&client, number % NETWORKS, body)
                    })
                })
                .collect();
            logins.into_iter().map(|login| login.join().unwrap()).collect()
        })
    }

    /// Races for one code after another. Returns how often one was accepted more than once, and how often never.
    fn race(&self, rounds: usize, mut login: impl FnMut() -> Vec<u16>) -> (usize, usize) {
        let (mut double, mut never) = (0, 0);
        for round in 0..rounds {
            let statuses = login();
            let accepted = statuses.iter().filter(|&&status| status == 200).count();
            double += usize::from(accepted > 1);
            never += usize::from(accepted == 0);
            let refused = statuses.iter().filter(|&&status| matches!(status, 401 | 503)).count();
            assert_eq!(accepted + refused, LOGINS, "round {round}: {statuses:?}");
        }
        println!("{rounds} rounds of {LOGINS} logins on three replicas: {double} double accepts, {never} without any");
        (double, never)
    }
}

fn log_in_from(client: &Client, network: usize, body: &Value) -> u16 {
    let call = client.request("POST", "/v1/login").header("x-forwarded-for", &format!("198.51.{network}.7"));
    call.json(body).send().status
}

fn rounds() -> usize {
    std::env::var("ORGVAULT_RACE_ROUNDS").map_or(ROUNDS, |text| text.parse().unwrap())
}

#[test]
fn a17_one_code_on_three_replicas_logs_in_once() {
    let cluster = Cluster::start();
    let (double, never) = cluster.race(rounds(), || {
        within_one_step(|step| {
            let account = cluster.known_account();
            cluster.concurrently(&account.login(&account.authenticator.code(step)))
        })
    });
    assert_eq!((double, never), (0, 0));
}

#[test]
fn a29_one_recovery_code_on_three_replicas_logs_in_once() {
    let cluster = Cluster::start();
    let (double, never) = cluster.race(rounds(), || cluster.concurrently(&cluster.known_account().sound_login()));
    assert_eq!((double, never), (0, 0));
}
