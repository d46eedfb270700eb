//! Key rotation during use: after kills and repeated runs, all credentials can be decrypted, and no key is destroyed
//! early.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use vault_tests::samples::small;
use vault_tests::{ActivationListener, Client, Database, Integration, Session, Vault, on_both_databases};

on_both_databases! {
    rotated_key_is_destroyed_and_everything_opens,
    killed_rotation_is_continued,
    two_rotators_during_traffic_lose_nothing,
    keys_of_all_organizations_are_rotated,
}

/// Number of credentials per namespace, limited to those of one activation.
const EACH: usize = 90;
const THREADS: usize = 8;

fn namespace(number: usize) -> String {
    format!("imports/{number}")
}

/// Saves `count` credentials, half of them with metadata. Returns the numbers of their data by ID.
fn save_all(session: &Session, clients: impl Fn() -> Client + Sync, count: usize) -> BTreeMap<String, usize> {
    let next = AtomicUsize::new(0);
    let saved = thread::scope(|scope| {
        let savers: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    let session = session.on(&clients());
                    let mut saved = Vec::new();
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= count {
                            return saved;
                        }
                        let mut body = small(&namespace(number / EACH), number);
                        if number.is_multiple_of(2) {
                            body["labels"] = json!({"number": number.to_string()});
                        }
                        saved.push((session.save(&body), number));
                    }
                })
            })
            .collect();
        savers.into_iter().flat_map(|saver| saver.join().unwrap()).collect::<Vec<_>>()
    });
    saved.into_iter().collect()
}

/// Returns a user's list of a namespace.
#[track_caller]
fn list(session: &Session, namespace: &str) -> Vec<Value> {
    let path = format!("/v1/organization-vault?namespace={namespace}");
    session.call("GET", &path).send().expect(200).json().as_array().unwrap().clone()
}

/// Asserts that every credential is issued with its data and shown with its metadata.
#[track_caller]
fn assert_all_open(
    listener: ActivationListener,
    integration: &Integration,
    session: &Session,
    saved: &BTreeMap<String, usize>,
) {
    let client = listener.client();
    let mut found = BTreeMap::new();
    for number in 0..=saved.values().max().unwrap() / EACH {
        let answer = integration.activate(&client, &namespace(number)).expect(201).json();
        for one in answer["credentials"].as_array().unwrap() {
            found.insert(one["id"].as_str().unwrap().to_owned(), one["data"].clone());
        }
        let id = answer["id"].as_str().unwrap().to_owned();
        client.request("DELETE", &format!("/v1/activations/{id}")).bearer(&integration.token).send();
    }
    assert_eq!(found.len(), saved.len());
    for (id, number) in saved {
        assert_eq!(found[id], small("", *number)["data"], "{id}");
    }
    let listed: Vec<_> =
        (0..=saved.values().max().unwrap() / EACH).flat_map(|number| list(session, &namespace(number))).collect();
    assert_eq!(listed.len(), saved.len());
    assert_eq!(listed.iter().find(|row| !row["damaged"].is_null()), None);
    let labels = listed.iter().filter(|row| row["labels"]["number"].is_string()).count();
    assert_eq!(labels, saved.values().filter(|number| number.is_multiple_of(2)).count());
}

/// Returns the key status of `Acme`.
fn status(vault: &Vault) -> Value {
    let status = vault.json(&["key", "status"]);
    let found = status["organizations"].as_array().unwrap().iter().find(|one| one["name"] == "Acme");
    found.unwrap().clone()
}

fn rotated_key_is_destroyed_and_everything_opens(database: Database) {
    let (vault, listener) = ActivationListener::open(database);
    let session = vault.admin_session();
    let saved = save_all(&session, || vault.client(), 300);
    let integration = Integration::make(&vault, "nightly", &["imports/*"]);
    let replaced = saved.keys().next().unwrap().clone();
    session.replace(&replaced, &small("imports/0", 1_000), true).expect(201);
    let tag = session.show(&replaced).expect(200).header("etag").unwrap().to_owned();
    let before = status(&vault);
    assert_eq!(before["retiring"], json!([]));

    let rotated = vault.json(&["key", "rotate", "--organization", "acme"]);
    assert_eq!(rotated.as_array().unwrap().len(), 1);
    let rotated = &rotated[0];
    assert_eq!((&rotated["name"], &rotated["new_key"], &rotated["kept"]), (&json!("Acme"), &json!(true), &json!([])));
    assert_eq!(rotated["destroyed"], json!([before["active_key"]]));
    assert_eq!(rotated["moved"], json!(300));
    let after = status(&vault);
    assert_eq!((&after["active_key"], &after["retiring"]), (&rotated["active_key"], &json!([])));
    assert_ne!(after["active_key"], before["active_key"]);
    assert_all_open(listener, &integration, &session, &saved);
    assert_eq!(session.show(&replaced).expect(200).header("etag"), Some(tag.as_str()), "a rotation is no change");
    assert_eq!(session.versions(&replaced).len(), 2);
    // The server continues with the new key. Text output contains the same information.
    session.promote(&replaced, 2).expect(200);
    session.save(&small("imports/0", 2_000));
    let text = vault.run(&["key", "rotate", "--organization", "Acme"]).done().stdout;
    assert!(text.contains("Rotated the key of organization Acme") && text.contains("1 old key destroyed"), "{text}");
    vault.run(&["key", "status"]).done().prints("Root key").prints("Instance key").prints("active");
    vault.run(&["key", "rotate"]).misused();
    vault.run(&["key", "rotate", "--organization", "Unknown"]).refused();
}

/// Starts a rotation of the key of `Acme`.
fn begin(vault: &Vault) -> Child {
    let mut command = vault.command(&["key", "rotate", "--organization", "Acme", "--log-format", "json"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until the rotation reports moved rows. Returns `false` if it has ended.
fn moves_rows(rotation: &mut Child) -> bool {
    let lines = BufReader::new(rotation.stderr.take().unwrap()).lines();
    lines.map_while(Result::ok).any(|line| line.contains("moved "))
}

fn killed_rotation_is_continued(database: Database) {
    const KILLS: usize = 3;
    let (vault, listener) = ActivationListener::open(database);
    let session = vault.admin_session();
    let mut saved = save_all(&session, || vault.client(), 1_500);
    let integration = Integration::make(&vault, "nightly", &["imports/*"]);
    // A rotation may complete before the kill. Then kill the next one.
    let mut killed = 0;
    for attempt in 0..10 * KILLS {
        let mut rotation = begin(&vault);
        moves_rows(&mut rotation);
        rotation.kill().unwrap(); // SIGKILL
        rotation.wait().unwrap();
        let keys = status(&vault);
        let retiring = keys["retiring"].as_array().unwrap();
        assert!(retiring.len() <= 1, "a rotation that is continued makes no further key: {keys}");
        let left = retiring.iter().any(|key| key["credentials"].as_i64().unwrap() > 0);
        if left {
            killed += 1;
            assert_all_open(listener, &integration, &session, &saved);
        }
        let number = 10_000 + attempt;
        let mut body = small(&namespace(50), number);
        body["namespace"] = json!("exports");
        let id = session.save(&body);
        session.delete(&id).expect(204);
        if killed == KILLS {
            break;
        }
    }
    assert_eq!(killed, KILLS, "no kill came in the middle");
    let first = saved.keys().next().unwrap().clone();
    session.delete(&first).expect(204);
    saved.remove(&first);
    let rotated = vault.json(&["key", "rotate", "--organization", "Acme"]);
    assert_eq!((&rotated[0]["new_key"], &rotated[0]["kept"]), (&json!(false), &json!([])), "{rotated}");
    assert_eq!(status(&vault)["retiring"], json!([]));
    assert_all_open(listener, &integration, &session, &saved);
    // With a server that has cached none of the old keys.
    let mut vault = vault;
    vault.restart();
    let session = session.on(&vault.client());
    assert_all_open(listener, &integration, &session, &saved);
}

fn two_rotators_during_traffic_lose_nothing(database: Database) {
    let (vault, listener) = ActivationListener::open(database);
    let session = vault.admin_session();
    let saved = save_all(&session, || vault.client(), 1_000);
    let integration = Integration::make(&vault, "nightly", &["imports/*", "exports"]);
    let over = AtomicBool::new(false);
    let written = thread::scope(|scope| {
        let (over, vault, session) = (&over, &vault, &session);
        // Saves, replaces, stages, promotes, describes and deletes until the rotations are complete.
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                scope.spawn(move || {
                    let session = session.on(&vault.client());
                    let mut kept = Vec::new();
                    for round in 0.. {
                        let number = 100_000 * (writer + 1) + round;
                        let body = |number: usize| {
                            let mut body = small("exports", number);
                            body["namespace"] = json!("exports");
                            body
                        };
                        let id = session.save(&body(number));
                        session.describe(&id, &json!({"labels": {"round": round.to_string()}})).expect(200);
                        session.replace(&id, &body(number + 20_000), false).expect(201);
                        session.replace(&id, &body(number + 40_000), true).expect(201);
                        session.promote(&id, 3).expect(200);
                        session.promote(&id, 1).expect(200);
                        if round % 2 == 1 || kept.len() >= 20 {
                            session.delete(&id).expect(204);
                        } else {
                            kept.push((id, number));
                        }
                        if over.load(Ordering::Acquire) {
                            return kept;
                        }
                    }
                    kept
                })
            })
            .collect();
        let readers: Vec<_> = (0..2)
            .map(|reader| {
                let integration = &integration;
                scope.spawn(move || {
                    let client = listener.client();
                    let session = session.on(&vault.client());
                    let mut round = reader;
                    while !over.load(Ordering::Acquire) {
                        round += 1;
                        let answer = integration.activate(&client, &namespace(round % 11));
                        if answer.status == 503 {
                            continue; // waited too long for rows that the rotation has locked
                        }
                        let answer = answer.expect(201).json();
                        let id = answer["id"].as_str().unwrap().to_owned();
                        client.request("DELETE", &format!("/v1/activations/{id}")).bearer(&integration.token).send();
                        let listed = list(&session, &namespace(round % 11));
                        assert_eq!(listed.iter().find(|row| !row["damaged"].is_null()), None);
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            let rotators: Vec<_> = (0..2)
                .map(|_| scope.spawn(|| vault.run(&["key", "rotate", "--organization", "Acme"]).done()))
                .collect();
            rotators.into_iter().for_each(|rotator| _ = rotator.join().unwrap());
        }
        over.store(true, Ordering::Release);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
    });
    vault.run(&["key", "rotate", "--organization", "Acme"]).done();
    assert_eq!(status(&vault)["retiring"], json!([]));
    let answer = integration.activate(&listener.client(), "exports").expect(201).json();
    let found: BTreeMap<String, Value> = answer["credentials"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["id"].as_str().unwrap().to_owned(), one["data"].clone()))
        .collect();
    assert_eq!(found.len(), written.len());
    for (id, number) in &written {
        assert_eq!(found[id], small("", *number)["data"]);
        assert_eq!(session.versions(id).len(), 3);
    }
    for id in found.keys() {
        session.delete(id).expect(204);
    }
    assert_all_open(listener, &integration, &session, &saved);
    assert_eq!(vault.metric("orgvault_integrity_failures_total"), 0);
}

fn keys_of_all_organizations_are_rotated(database: Database) {
    let vault = Vault::start(database);
    vault.organization("Acme");
    vault.organization("Other");
    let keys = |status: &Value| -> Vec<String> {
        let organizations = status["organizations"].as_array().unwrap();
        organizations.iter().map(|one| one["active_key"].as_str().unwrap().to_owned()).collect()
    };
    let before = vault.json(&["key", "status"]);
    let rotated = vault.json(&["key", "rotate", "--all"]);
    let after = vault.json(&["key", "status"]);
    assert_eq!(rotated.as_array().unwrap().len(), 2);
    assert!(keys(&before).iter().all(|key| !keys(&after).contains(key)));
    for member in ["instance", "root_key", "instance_key"] {
        assert_eq!(before[member], after[member], "{member}");
    }
}
