//! Lists while others send more than the server can process: logins, and the connections of another organization.

use crate::Options;
use crate::bench::{Bench, LIST, VAULT, example, save};
use crate::engine::{Caller, run};
use crate::report::Row;
use serde_json::{Value, json};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Number of connections that list, and their pause after each response.
const LISTING: (usize, Duration) = (8, Duration::from_millis(100));
/// Number of connections of another organization.
const CROWD: usize = 16;

/// Measures storms of logins at unknown addresses, which are hashed, for clients that wait as the server requests and for
/// clients that retry immediately.
pub(crate) fn measure(options: &Options, bench: &Bench<'_>) -> Vec<Row> {
    let token = bench.editor("Reading");
    bench.fill(&token, 100);
    let list = |caller: &Caller<'_>| {
        thread::sleep(LISTING.1.mul_f64(caller.number as f64 / LISTING.0 as f64));
        loop {
            caller.send("GET", LIST, &token, None)?.expect(200);
            thread::sleep(LISTING.1);
        }
    };
    let length = Some(options.length());
    let mut rows = vec![run(&bench.api, LISTING.0, length, list).row(bench.name("list, without a storm"))];
    rows.push(Row::new("argon2id on all cores", vec![("per s", hash_rate(options.seconds))]));
    let strangers = AtomicUsize::new(0);
    for (connections, waits) in [(64, true), (256, true), (64, false), (256, false)] {
        let [served, rejected] = [AtomicUsize::new(0), AtomicUsize::new(0)];
        let log_in = |caller: &Caller<'_>| {
            loop {
                let email = format!("storm-{}@example.com", strangers.fetch_add(1, Ordering::Relaxed));
                let body = json!({"email": email, "password": "x".repeat(24), "passcode": "000000"});
                let answer = caller.send("POST", "/v1/login", "", Some(&body))?;
                let count = match answer.status {
                    401 => &served,
                    429 | 503 => &rejected,
                    status => panic!("a login got status {status}"),
                };
                count.fetch_add(1, Ordering::Relaxed);
                if waits && answer.status != 401 {
                    let seconds: f64 = answer.header("retry-after").expect("a wait").parse().expect("seconds");
                    // Not all of them return at the same moment.
                    let wait = Duration::from_secs_f64(seconds * (1.0 + caller.number as f64 / connections as f64));
                    thread::sleep(wait.min(options.length()));
                }
            }
        };
        let (logins, lists) = thread::scope(|scope| {
            let lists = scope.spawn(|| run(&bench.api, LISTING.0, length, list));
            (run(&bench.api, connections, length, log_in), lists.join().expect("the lists succeed"))
        });
        let [served, rejected] = [served, rejected].map(|count| count.into_inner() as f64);
        let manner = if waits { "waiting" } else { "retrying" };
        let mut row = Row::new(
            bench.name(&format!("storm of {connections}, {manner}")),
            vec![("served per s", logins.rate() * served / (served + rejected))],
        );
        row.values.push(("rejected per s", logins.rate() * rejected / (served + rejected)));
        rows.push(row);
        rows.push(lists.row(bench.name(&format!("list, storm of {connections}, {manner}"))));
    }
    rows.extend(crowd(options, bench, &token));
    rows
}

/// Measures one connection that lists while the connections of another organization list or save.
fn crowd(options: &Options, bench: &Bench<'_>, token: &str) -> Vec<Row> {
    let (other, saved, length) = (bench.editor("Crowd"), AtomicUsize::new(0), Some(options.length()));
    bench.fill(&other, 100);
    let list = |token: &str, caller: &Caller<'_>| {
        loop {
            caller.send("GET", LIST, token, None)?.expect(200);
        }
    };
    let saves = |caller: &Caller<'_>| {
        loop {
            caller.send("PATCH", VAULT, &other, Some(&save(saved.fetch_add(1, Ordering::Relaxed))))?.expect(201);
        }
    };
    let alone = run(&bench.api, 1, length, |caller| list(token, caller));
    let beside = |crowd: &(dyn Fn(&Caller<'_>) -> Option<()> + Sync)| {
        thread::scope(|scope| {
            scope.spawn(|| run(&bench.api, CROWD, length, crowd));
            run(&bench.api, 1, length, |caller| list(token, caller))
        })
    };
    let (lists, saves) = (beside(&|caller| list(&other, caller)), beside(&saves));
    let named = [("another organization is idle", alone), ("… lists", lists), ("… saves", saves)];
    named.map(|(name, sample)| sample.row(bench.name(&format!("list of one connection, {name}")))).into()
}

/// Returns the rate of password hashes without other load.
fn hash_rate(seconds: u64) -> f64 {
    let output = Command::new(example("bare_argon2")).arg(format!("--seconds={seconds}")).output().unwrap();
    let printed: Value = serde_json::from_slice(&output.stdout).expect("bare_argon2 prints JSON");
    printed["rate"].as_f64().expect("a rate")
}
