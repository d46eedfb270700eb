//! Replacing a credential's data: jobs notice only that the data is new.

use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;
use vault_tests::samples::{every_type, small};
use vault_tests::{ActivationListener, Answer, Client, Database, Integration, Session, Vault, on_both_databases};

on_both_databases! {
    rotation_has_no_gap,
    activation_gets_exactly_the_current_version,
    concurrent_replacements_get_distinct_numbers,
    one_idempotency_key_replaces_once_concurrently,
}

const THREADS: usize = 16;

/// Returns the credentials of a namespace, as an integration gets them.
fn activated(integration: &Integration, client: &Client, namespace: &str) -> Vec<Value> {
    let answer = integration.activate(client, namespace).expect(201).json();
    answer["credentials"].as_array().unwrap().clone()
}

fn rotation_has_no_gap(database: Database) {
    let (vault, activation_listener) = ActivationListener::open(database);
    let (session, client) = (vault.admin_session(), activation_listener.client());
    let id = session.save(&small("imports", 1));
    let integration = Integration::make(&vault, "nightly", &["imports"]);
    let issued_credentials = |number: usize, version: i64| {
        let found = activated(&integration, &client, "imports");
        assert_eq!(found.len(), 1);
        assert_eq!((&found[0]["id"], &found[0]["version"]), (&json!(id), &json!(version)));
        assert_eq!(found[0]["data"], small("imports", number)["data"]);
    };
    issued_credentials(1, 1);
    assert_eq!(session.replace(&id, &small("imports", 2), true).expect(201).json(), json!({"id": id, "version": 2}));
    issued_credentials(1, 1);
    session.promote(&id, 2).expect(200);
    issued_credentials(2, 2);
    session.promote(&id, 1).expect(200);
    issued_credentials(1, 1);
    session.replace(&id, &small("imports", 3), false).expect(201);
    issued_credentials(3, 3);
    session.destroy_version(&id, 1).expect(204);
    session.promote(&id, 1).problem("not-found");
    session.destroy_version(&id, 3).problem("conflict");
    issued_credentials(3, 3);
    assert_eq!(session.versions(&id), [(3, "current".to_owned()), (2, "previous".to_owned())]);
    session.delete(&id).expect(204);
    session.promote(&id, 2).problem("not-found");
    integration.activate(&client, "imports").problem("not-found");
    let log = vault.log();
    for act in ["staged", "promoted", "replaced", "version-destroyed", "deleted"] {
        assert!(log.contains(&format!("credential.{act}")), "{act}: {log}");
    }
}

#[test]
fn credential_is_replaced_only_by_same_type() {
    let vault = Vault::start(Database::Sqlite);
    let session = vault.admin_session();
    let samples = every_type();
    let ids: Vec<String> = samples.iter().map(|sample| session.save(&sample.request)).collect();
    for (id, own) in ids.iter().zip(&samples) {
        for other in &samples {
            let answer = session.replace(id, &other.request, false);
            if own.request["type"] == other.request["type"] {
                answer.expect(201);
            } else {
                // Members of another type are unknown.
                let answer = answer.problem("malformed-request");
                assert!(answer.refused_fields().iter().all(|(pointer, _)| pointer.starts_with("/data/")));
                assert!(other.secrets.iter().all(|secret| !answer.text().contains(secret)), "{}", answer.text());
            }
        }
        let mut shown = session.show(id).expect(200).json();
        assert_eq!((&shown["version"], &shown["type"]), (&json!(2), &own.request["type"]));
        shown["information"].as_object_mut().unwrap().remove("fingerprint");
        assert_eq!(shown["information"], own.information);
    }
}

#[test]
fn configured_number_of_versions_is_kept() {
    let vault = Vault::start_with(Database::Sqlite, &["--keep-versions", "3"]);
    let session = vault.admin_session();
    let id = session.save(&small("a", 1));
    for number in 2..=6 {
        session.replace(&id, &small("a", number), false).expect(201);
    }
    let numbers = || session.versions(&id).into_iter().map(|(number, _)| number).collect::<Vec<_>>();
    assert_eq!(numbers(), [6, 5, 4]);
    session.replace(&id, &small("a", 7), true).expect(201);
    assert_eq!(numbers(), [6, 7, 5], "the staged one is one of them");
    session.replace(&id, &small("a", 8), true).expect(201);
    assert_eq!(numbers(), [6, 8, 5], "a staged version takes the place of another");

    let vault = Vault::start_with(Database::Sqlite, &["--keep-previous", "0"]);
    let session = vault.admin_session();
    let id = session.save(&small("a", 1));
    session.replace(&id, &small("a", 2), false).expect(201);
    assert_eq!(session.versions(&id), [(2, "current".to_owned())]);
    session.promote(&id, 1).problem("not-found");
}

#[test]
fn frozen_namespace_accepts_new_versions() {
    let (vault, activation_listener) = ActivationListener::open(Database::Sqlite);
    let session = vault.admin_session();
    let id = session.save(&small("imports", 1));
    let integration = Integration::make(&vault, "nightly", &["imports"]);
    vault.run(&["namespace", "freeze", "imports", "--org", "Acme"]).done();
    session.replace(&id, &small("imports", 2), true).expect(201);
    session.promote(&id, 2).expect(200);
    session.destroy_version(&id, 1).expect(204);
    integration.activate(&activation_listener.client(), "imports").problem("frozen");
    vault.run(&["namespace", "thaw", "imports", "--org", "Acme"]).done();
    let found = activated(&integration, &activation_listener.client(), "imports");
    assert_eq!(found[0]["data"], small("imports", 2)["data"]);
}

/// The data of each replacement contains its version number. So an issued credential is consistent exactly if its parts
/// match, and current exactly if its number is not below the last one acknowledged before the request.
fn activation_gets_exactly_the_current_version(database: Database) {
    const REPLACEMENTS: i64 = 100;
    let (vault, activation_listener) =
        ActivationListener::open_with(database, &["--activation-rate=0", "--max-activations=1000000"]);
    let session = vault.admin_session();
    let data = |number: i64| small("imports", usize::try_from(number).unwrap());
    let id = session.save(&data(1));
    let integration = Integration::make(&vault, "nightly", &["imports"]);
    let (acknowledged, failed) = (AtomicI64::new(1), AtomicBool::new(false));
    let barrier = Barrier::new(THREADS + 1);
    let last = REPLACEMENTS + 1;
    let counts: Vec<(usize, usize)> = thread::scope(|scope| {
        let programs: Vec<_> = (0..THREADS)
            .map(|_| {
                let (client, integration, acknowledged, failed) =
                    (activation_listener.client(), &integration, &acknowledged, &failed);
                let (barrier, id) = (&barrier, &id);
                scope.spawn(move || {
                    barrier.wait();
                    let (mut whole, mut contended) = (0, 0);
                    loop {
                        let least = acknowledged.load(Ordering::SeqCst);
                        let answer = integration.activate(&client, "imports");
                        if answer.status == 503 {
                            contended += 1; // replaced repeatedly while it was being issued
                        } else {
                            let answer = answer.expect(201).json();
                            let [found] = &answer["credentials"].as_array().unwrap()[..] else { panic!("{answer}") };
                            let version = found["version"].as_i64().unwrap();
                            assert_eq!(found["id"], **id);
                            assert_eq!(found["data"], data(version)["data"], "a version as a whole");
                            assert!(version >= least, "version {version} after {least} was acknowledged");
                            whole += 1;
                            if version == last {
                                return (whole, contended);
                            }
                        }
                        assert!(!failed.load(Ordering::SeqCst), "the replacements failed");
                    }
                })
            })
            .collect();
        barrier.wait();
        let replaced = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for number in 2..=last {
                // Every fifth version is staged first.
                let stage = number % 5 == 0;
                let version = session.replace(&id, &data(number), stage).expect(201).json()["version"].as_i64();
                assert_eq!(version, Some(number));
                if stage {
                    session.promote(&id, number).expect(200);
                }
                acknowledged.store(number, Ordering::SeqCst);
            }
        }));
        failed.store(replaced.is_err(), Ordering::SeqCst);
        programs.into_iter().map(|program| program.join().unwrap()).collect()
    });
    let whole: usize = counts.iter().map(|(whole, _)| whole).sum();
    let contended: usize = counts.iter().map(|(_, contended)| contended).sum();
    // Usually some hundred consistent ones, and some dozen retries.
    assert!(whole > THREADS && whole > contended, "{whole} whole, {contended} asked to retry");
}

/// Returns the responses of threads that start simultaneously.
fn concurrently(session: &Session, vault: &Vault, act: impl Fn(usize, &Session) -> Answer + Sync) -> Vec<Answer> {
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let (session, act, barrier) = (session.on(&vault.client()), &act, &barrier);
                scope.spawn(move || {
                    session.client().get("/livez").send(); // establishes the connection before the race starts
                    barrier.wait();
                    act(number, &session)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn statuses(answers: &[Answer]) -> Vec<u16> {
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    statuses
}

#[test]
fn one_change_per_entity_tag_succeeds() {
    let vault = Vault::start(Database::Sqlite);
    let session = vault.admin_session();
    for _ in 0..5 {
        let id = session.save(&small("a", 1));
        session.replace(&id, &small("a", 2), true).expect(201);
        let tag = session.show(&id).expect(200).header("etag").unwrap().to_owned();
        let path = format!("/v1/organization-vault/{id}");
        let answers = concurrently(&session, &vault, |number, session| {
            let call = |method, below| session.call(method, &format!("{path}{below}")).header("if-match", &tag);
            match number % 4 {
                0 => call("POST", "/promote").json(&json!({"version": 2})).send(),
                1 => call("POST", "/versions").json(&json!({"data": small("a", 3)["data"]})).send(),
                2 => call("POST", "/versions").json(&json!({"data": small("a", 4)["data"], "stage": true})).send(),
                _ => call("DELETE", "/versions/2").send(),
            }
        });
        let found = statuses(&answers);
        assert!((200..300).contains(&found[0]), "{found:?}");
        assert_eq!(found[1..], [412; THREADS - 1], "{found:?}");
        session.call("DELETE", &path).header("if-match", &tag).send().problem("precondition-failed");
        session.call("DELETE", &path).header("if-match", "*").send().expect(204);
        session.call("DELETE", &path).header("if-match", &tag).send().problem("not-found");
    }
}

fn concurrent_replacements_get_distinct_numbers(database: Database) {
    let vault = Vault::start(database);
    let session = vault.admin_session();
    let id = session.save(&small("a", 1));
    let answers =
        concurrently(&session, &vault, |number, session| session.replace(&id, &small("a", number), number % 4 == 0));
    let created: Vec<i64> = answers
        .iter()
        .filter(|answer| answer.status == 201)
        .map(|answer| answer.json()["version"].as_i64().unwrap())
        .collect();
    // A request that loses repeatedly must be retried by the client.
    assert!(answers.iter().all(|answer| matches!(answer.status, 201 | 503)), "{:?}", statuses(&answers));
    assert!(!created.is_empty());
    let numbers: HashSet<i64> = created.iter().copied().collect();
    assert_eq!(numbers, (2..2 + i64::try_from(created.len()).unwrap()).collect::<HashSet<_>>());
    let versions = session.versions(&id);
    assert_eq!(versions.iter().filter(|(_, state)| state == "current").count(), 1);
    assert!(versions.iter().filter(|(_, state)| state == "staged").count() <= 1 && versions.len() <= 5, "{versions:?}");
}

fn one_idempotency_key_replaces_once_concurrently(database: Database) {
    let vault = Vault::start(database);
    let session = vault.admin_session();
    let id = session.save(&small("a", 1));
    for round in 0..5 {
        let answers = concurrently(&session, &vault, |_, session| {
            let call = session.call("POST", &format!("/v1/organization-vault/{id}/versions"));
            let body = json!({"data": small("a", 100 + round)["data"]});
            call.header("idempotency-key", &format!("round-{round}")).json(&body).send()
        });
        assert_eq!(statuses(&answers), [201; THREADS]);
        let texts: HashSet<String> = answers.iter().map(Answer::text).collect();
        assert_eq!(texts.len(), 1, "{texts:?}");
        assert_eq!(session.versions(&id)[0].0, 2 + i64::try_from(round).unwrap());
    }
}
