//! A right that ends during saves: after the acknowledgement, nothing more is saved.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use vault_tests::process::Server;
use vault_tests::samples::small;
use vault_tests::{Client, Database, Session, Vault, on_both_databases};

on_both_databases! {
    nothing_is_saved_after_a_logout,
    nothing_is_saved_after_operator_change,
}

/// The clients of a vault's servers: two servers on PostgreSQL, one with the embedded database.
struct Replicas<'a> {
    vault: &'a Vault,
    second: Option<Server>,
}

impl<'a> Replicas<'a> {
    fn of(vault: &'a Vault) -> Self {
        let second = (vault.database() == Database::Postgres).then(|| vault.replica());
        Self { vault, second }
    }

    /// Returns a client with a new connection to one of the servers.
    fn client(&self, number: usize) -> Client {
        match &self.second {
            Some(second) if number % 2 == 1 => second.client(),
            _ => self.vault.client(),
        }
    }
}

/// Saves from several threads until stopped, while `end` removes the right to save. Saves that start after `end` was
/// acknowledged must be rejected, and exactly the acknowledged ones must be stored.
fn save_until(replicas: &Replicas<'_>, session: &Session, end: impl FnOnce()) -> usize {
    let (ended, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let barrier = Barrier::new(5);
    thread::scope(|scope| {
        let savers: Vec<_> = (0..4)
            .map(|number| {
                let (session, ended, stop, barrier) = (session.on(&replicas.client(number)), &ended, &stop, &barrier);
                scope.spawn(move || {
                    let (mut saved, mut refused) = (0, 0);
                    barrier.wait();
                    // Continue until several saves were rejected after the end.
                    while !stop.load(Ordering::SeqCst) || refused < 3 {
                        let began_after = ended.load(Ordering::SeqCst);
                        let answer = session.try_save(&small("race", number));
                        match answer.status {
                            201 if began_after => panic!("saved after the end was acknowledged"),
                            201 => saved += 1,
                            401 | 403 => refused += 1,
                            status => panic!("{status}: {}", answer.text()),
                        }
                    }
                    saved
                })
            })
            .collect();
        barrier.wait();
        end();
        ended.store(true, Ordering::SeqCst);
        stop.store(true, Ordering::SeqCst);
        savers.into_iter().map(|saver| saver.join().unwrap()).sum()
    })
}

fn nothing_is_saved_after_a_logout(database: Database) {
    let vault = Vault::start(database);
    let replicas = Replicas::of(&vault);
    let (account, watcher) = (vault.admin(), vault.admin_session());
    let mut expected = 0;
    for round in 0..10 {
        let session = account.log_in(&vault.client());
        expected += save_until(&replicas, &session, || {
            session.save(&small("race", 9)); // so that the race has started
            drop(session.on(&replicas.client(round)).log_out().expect(204));
        });
        expected += 1;
        assert_eq!(watcher.list().len(), expected, "exactly the acknowledged writes exist");
    }
}

fn nothing_is_saved_after_operator_change(database: Database) {
    let vault = Vault::start(database);
    let replicas = Replicas::of(&vault);
    let watcher = vault.account("Acme", "admin");
    let mut expected = 0;
    for change in ["set-role", "disable", "re-enrol", "delete", "org disable"] {
        let account = vault.account("Acme", "editor");
        let session = account.log_in(&vault.client());
        let command: Vec<&str> = match change {
            "set-role" => vec!["account", "set-role", "--role", "viewer", "--email", &account.email],
            "disable" => vec!["account", "set", "--state", "disabled", "--email", &account.email],
            "delete" => vec!["account", "delete", "--yes", "--email", &account.email],
            "org disable" => vec!["org", "set", "--state", "disabled", "Acme"],
            _ => vec!["account", change, "--email", &account.email],
        };
        expected += save_until(&replicas, &session, || drop(vault.run(&command).done()));
        if change == "org disable" {
            vault.run(&["org", "set", "--state", "enabled", "Acme"]).done();
        }
        let found = watcher.log_in(&vault.client()).list().len();
        assert_eq!(found, expected, "{change}: exactly the acknowledged writes exist");
    }
}
