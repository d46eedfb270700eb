//! The hot paths.

use crate::Options;
use crate::bench::{Bench, LIST, VAULT, data, id, namespace, save};
use crate::engine::{Sample, Target, run};
use crate::report::Row;
use serde_json::json;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use vault_tests::Integration;
use vault_tests::passcode::current_step;

/// Number of accounts that log in, and of logins of each: one by a passcode, the others by recovery codes.
const LOGINS: (usize, usize) = (24, 6);
/// Number of connections that log in, below the quarter of the hash queue that one network may use.
const LOGIN_CONNECTIONS: usize = 4;
/// Number of replacements after which a credential has the maximum number of versions.
const VERSIONS: usize = 5;

/// Measures each operation.
pub(crate) fn measure(options: &Options, bench: &Bench<'_>) -> Vec<Row> {
    let (connections, length) = (options.connections, Some(options.length()));
    let token = bench.editor("Operations");
    let bare = bench.bare();
    let save_on = |target: &Target, token: &str, ids: &Mutex<Vec<String>>| {
        let next = AtomicUsize::new(0);
        run(target, connections, length, |caller| {
            loop {
                let body = save(next.fetch_add(1, Ordering::Relaxed));
                let saved = caller.send("PATCH", VAULT, token, Some(&body))?.expect(201);
                ids.lock().unwrap().push(id(&saved.json()));
            }
        })
    };
    let list_on = |target: &Target, token: &str| {
        run(target, connections, length, |caller| {
            loop {
                caller.send("GET", LIST, token, None)?.expect(200);
            }
        })
    };

    let saved = Mutex::default();
    let mut rows = Vec::new();
    let sample = save_on(&bench.api, &token, &saved);
    rows.extend(with_bare(bench, "save", &sample, &save_on(&bare.target, &bare.token, &Mutex::default())));

    let acme = bench.editor("Acme");
    let filled = bench.fill(&acme, options.rows);
    let sample = list_on(&bench.api, &acme);
    rows.extend(with_bare(bench, "list", &sample, &list_on(&bare.target, &bare.token)));
    drop(bare);

    let replaced = AtomicUsize::new(0);
    let replace = |most: usize, length| {
        run(&bench.api, connections, length, |caller| {
            loop {
                let number = replaced.fetch_add(1, Ordering::Relaxed);
                if number >= most {
                    return None;
                }
                let path = format!("{VAULT}/{}/versions", filled[number % filled.len()]);
                caller.send("POST", &path, &acme, Some(&json!({"data": data(number)})))?.expect(201);
            }
        })
    };
    replace(filled.len() * VERSIONS, None);
    rows.push(replace(usize::MAX, length).row(bench.name("replace")));

    let sample = run(&bench.api, connections, None, |caller| {
        loop {
            let id = saved.lock().unwrap().pop()?;
            caller.send("DELETE", &format!("{VAULT}/{id}"), &token, None)?.expect(204);
        }
    });
    rows.push(sample.row(bench.name("delete")));

    let integration = Integration::make(&bench.vault, "jobs", &["imports/*"]).token;
    let sample = run(&bench.activations, connections, length, |caller| {
        let body = json!({"namespace": namespace(caller.number % filled.len())});
        loop {
            let started = caller.send("POST", "/v1/activations", &integration, Some(&body))?.expect(201);
            caller.send("DELETE", &format!("/v1/activations/{}", id(&started.json())), &integration, None)?.expect(204);
        }
    });
    rows.push(sample.row(bench.name("activation or its end")));

    let accounts = Mutex::new(bench.accounts("Logins", LOGINS.0));
    let sample = run(&bench.api, LOGIN_CONNECTIONS, None, |caller| {
        loop {
            let account = accounts.lock().unwrap().pop()?;
            for number in 0..LOGINS.1 {
                let passcode =
                    if number == 0 { account.authenticator.code(current_step()) } else { account.recovery_code() };
                caller.send("POST", "/v1/login", "", Some(&account.login(&passcode)))?.expect(200);
            }
        }
    });
    rows.push(sample.row(bench.name("login")));
    rows
}

/// Returns the results of the vault and of the minimal service, and the ratio of their processor times.
fn with_bare(bench: &Bench<'_>, what: &str, sample: &Sample, bare: &Sample) -> [Row; 2] {
    let mut row = sample.row(bench.name(what));
    row.values.push(("ratio to minimal service", sample.cost() / bare.cost()));
    [row, bare.row(bench.name(&format!("{what}, minimal service")))]
}
