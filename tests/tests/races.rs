//! Concurrent operations: each takes effect exactly once, and an acknowledged one is in effect.

use std::collections::HashSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use vault_tests::passcode::within_one_step;
use vault_tests::process::Server;
use vault_tests::samples::{s3, small};
use vault_tests::{Answer, Client, Database, Session, Vault, on_both_databases};

on_both_databases! {
    one_passcode_logs_in_once_concurrently,
    one_idempotency_key_saves_once_concurrently,
    one_credential_is_deleted_once,
    credential_limit_is_exact_across_replicas,
    nothing_is_saved_after_a_logout,
    nothing_is_saved_after_operator_change,
}

const THREADS: usize = 16;

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

    /// Returns the results of threads that start simultaneously.
    fn concurrently<T: Send>(&self, act: impl Fn(usize, Client) -> T + Sync) -> Vec<T> {
        let barrier = Barrier::new(THREADS);
        thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|number| {
                    let (act, barrier, client) = (&act, &barrier, self.client(number));
                    scope.spawn(move || {
                        // Establishes the connection before the race starts.
                        client.get("/livez").send();
                        barrier.wait();
                        act(number, client)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }
}

fn count(answers: &[Answer], status: u16) -> usize {
    answers.iter().filter(|answer| answer.status == status).count()
}

fn statuses(answers: &[Answer]) -> Vec<u16> {
    answers.iter().map(|answer| answer.status).collect()
}

fn one_passcode_logs_in_once_concurrently(database: Database) {
    let vault = Vault::start(database);
    let replicas = Replicas::of(&vault);
    for _ in 0..5 {
        let answers = within_one_step(|step| {
            let account = vault.admin();
            let login = account.login(&account.authenticator.code(step));
            replicas.concurrently(|_, client| client.log_in(&login))
        });
        assert_eq!(count(&answers, 200), 1, "{:?}", statuses(&answers));
        // Rejected, or turned away while too many passwords were hashed.
        assert_eq!(count(&answers, 401) + count(&answers, 503), THREADS - 1, "{:?}", statuses(&answers));
    }
}

fn one_idempotency_key_saves_once_concurrently(database: Database) {
    let vault = Vault::start(database);
    let replicas = Replicas::of(&vault);
    let session = vault.admin_session();
    for round in 0..10 {
        let answers = replicas.concurrently(|_, client| {
            let call = client.request("PATCH", "/v1/organization-vault").bearer(&session.token);
            call.header("idempotency-key", &format!("round-{round}")).json(&s3().request).send()
        });
        assert_eq!(count(&answers, 201), THREADS, "{:?}", statuses(&answers));
        let ids: HashSet<String> = answers.iter().map(Answer::text).collect();
        assert_eq!(ids.len(), 1, "{ids:?}");
        assert_eq!(session.list().len(), round + 1);
    }
    // One key for two different requests: one of them is saved, and all others are rejected.
    for round in 0..10 {
        let before = session.list().len();
        let answers = replicas.concurrently(|number, client| {
            let call = client.request("PATCH", "/v1/organization-vault").bearer(&session.token);
            call.header("idempotency-key", &format!("mixed-{round}")).json(&small("a", number % 2)).send()
        });
        assert_eq!(
            (count(&answers, 201), count(&answers, 422)),
            (THREADS / 2, THREADS / 2),
            "{:?}",
            statuses(&answers)
        );
        assert_eq!(session.list().len(), before + 1);
    }
}

fn one_credential_is_deleted_once(database: Database) {
    let vault = Vault::start(database);
    let replicas = Replicas::of(&vault);
    let session = vault.admin_session();
    for _ in 0..10 {
        let id = session.save(&s3().request);
        let answers = replicas.concurrently(|_, client| session.on(&client).delete(&id));
        assert_eq!((count(&answers, 204), count(&answers, 404)), (1, THREADS - 1), "{:?}", statuses(&answers));
    }
    assert!(session.list().is_empty());
}

fn credential_limit_is_exact_across_replicas(database: Database) {
    const LIMIT: usize = 40;
    let vault = Vault::start_with(database, &["--max-credentials", &LIMIT.to_string()]);
    let replicas = Replicas::of(&vault);
    let session = vault.admin_session();
    let answers: Vec<Answer> = replicas
        .concurrently(|number, client| {
            (0..5).map(|round| session.on(&client).try_save(&small("a", number * 5 + round))).collect::<Vec<_>>()
        })
        .concat();
    assert_eq!((count(&answers, 201), count(&answers, 422)), (LIMIT, THREADS * 5 - LIMIT), "{:?}", statuses(&answers));
    assert_eq!(session.list().len(), LIMIT);
    // Saves and deletes balance, in any order.
    let ids = session.ids();
    let answers = replicas.concurrently(|number, client| {
        let session = session.on(&client);
        if number % 2 == 0 { session.delete(&ids[number]) } else { session.try_save(&small("b", number)) }
    });
    assert_eq!(count(&answers, 204), THREADS / 2);
    assert_eq!(session.list().len(), LIMIT - THREADS / 2 + count(&answers, 201));
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
