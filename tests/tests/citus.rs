//! The same vault on a PostgreSQL that is spread over machines by the extension Citus. `tests/citus` builds the extension and runs
//! these tests: they need it, and are ignored elsewhere.

#![allow(clippy::print_stdout, reason = "figures for the pages")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use vault_testkit::postgres::{Cluster, Options};
use vault_tests::process::{Server, free_address};
use vault_tests::samples::small;
use vault_tests::{Client, Door, Integration, Session, Vault, binary};

const WORKERS: usize = 2;
/// How long anything may take here.
const LIMIT: Duration = Duration::from_secs(120);

fn cluster(workers: usize, settings: &[&str]) -> Cluster {
    let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
    Cluster::start(Options { fsync: false, workers, settings, ..Options::default() })
}

/// What an operation sent to the nodes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Reached {
    nodes: BTreeSet<String>,
    statements: usize,
    in_two_phases: bool,
}

/// What an operation on credentials sends to the nodes, read from the coordinator's log. It is repeated while the sealer of the
/// audit, which works every second, has used the same connection meanwhile.
fn reached(cluster: &Cluster, operation: &dyn Fn()) -> Reached {
    let begun = Instant::now();
    loop {
        let before = cluster.log().len();
        operation();
        let log = cluster.log();
        let sent = sent(&log[before..]);
        let connections: BTreeSet<&str> =
            sent.iter().filter(|(_, statement, _)| statement.contains("credential")).map(|(id, ..)| *id).collect();
        let own: Vec<_> = sent.iter().filter(|(id, ..)| connections.contains(id)).collect();
        if !own.is_empty() && !own.iter().any(|(_, statement, _)| statement.contains("checkpoint")) {
            return Reached {
                nodes: own.iter().map(|(.., node)| (*node).to_owned()).collect(),
                statements: own.len(),
                in_two_phases: own.iter().any(|(_, statement, _)| statement.starts_with("PREPARE TRANSACTION")),
            };
        }
        assert!(begun.elapsed() < LIMIT, "nothing is seen of the operation alone: {own:?}");
    }
}

/// The statements that a log says were sent: by which process, the statement's first line, and to which node.
fn sent(log: &str) -> Vec<(&str, &str, &str)> {
    let mut lines = log.lines();
    let mut sent = Vec::new();
    while let Some(line) = lines.next() {
        let Some((prefix, statement)) = line.split_once("issuing ") else { continue };
        let process = prefix.split(' ').next().unwrap_or_default();
        let place = lines.by_ref().find_map(|line| line.split_once("on server ")).map_or("", |(_, place)| place);
        sent.push((process, statement, place.split(" connectionId").next().unwrap_or_default()));
    }
    sent
}

/// A save, a list, a show, a replacement, a deletion, and an activation with its hand-out each reach one worker and commit
/// there in one phase.
#[test]
#[ignore = "needs the extension Citus: tests/citus"]
fn each_operation_of_a_tenant_reaches_one_worker_in_one_phase() {
    let cluster =
        cluster(WORKERS, &["citus.log_remote_commands=on", "log_min_messages=notice", "log_line_prefix='%p '"]);
    let mut vault = Vault::absent_on(&cluster).set_up();
    let door = Door { address: free_address() };
    vault.serve_with(&["--activation-rate", "0", &format!("--activation-listen={}", door.address)]);
    let session = vault.admin_session();
    let id = session.save(&small("crew/one", 1));
    let integration = Integration::make(&vault, "crew", &["crew/*"]);
    let deleted =
        std::sync::Mutex::new((0..20).map(|number| session.save(&small("crew/two", number))).collect::<Vec<_>>());
    let operations: [(&str, &dyn Fn()); 6] = [
        ("save", &|| drop(session.save(&small("crew/three", 2)))),
        ("list", &|| drop(session.list())),
        ("show", &|| drop(session.show(&id).expect(200))),
        ("replace", &|| drop(session.replace(&id, &small("crew/one", 3), false).expect(201))),
        ("delete", &|| drop(session.delete(&deleted.lock().unwrap().pop().unwrap()).expect(204))),
        ("activate", &|| drop(integration.activate(&door.client(), "crew/one").expect(201))),
    ];
    for (name, operation) in operations {
        let reached = reached(&cluster, operation);
        println!(
            "{name}: {} statements to {} node, in two phases: {}",
            reached.statements,
            reached.nodes.len(),
            reached.in_two_phases
        );
        assert!(!reached.in_two_phases && reached.nodes.len() == 1, "{name}: {reached:?}");
    }
}

/// Every node takes requests.
#[test]
#[ignore = "needs the extension Citus: tests/citus"]
fn a_replica_works_at_a_worker() {
    let cluster = cluster(WORKERS, &[]);
    let mut vault = Vault::absent_on(&cluster).set_up();
    vault.serve();
    let session = vault.admin_session();
    let id = session.save(&small("crew/one", 1));
    for worker in 1..=WORKERS {
        let mut command = binary::command();
        command.args(["serve", "--data-dir"]).arg(vault.data_dir());
        command.args(["--database-url", &cluster.by_worker(worker, vault.url())]);
        let replica = Server::start(command, &vault.scratch("output"), &vault.scratch("log"));
        let there = session.on(&replica.client());
        there.show(&id).expect(200);
        let other = there.save(&small("crew/one", 1 + worker));
        assert!(session.ids().contains(&other), "saved at worker {worker}");
        assert!(vault.admin().log_in(&replica.client()).is_live());
        replica.stop();
    }
    let said = vault.run(&["doctor", "--deep"]);
    assert_eq!(said.status, Some(0), "{}", said.stdout);
}

/// A vault of one machine is spread, however often that is cut off.
#[test]
#[ignore = "needs the extension Citus: tests/citus"]
fn a_vault_is_spread_that_was_on_one_machine() {
    let cluster = cluster(WORKERS, &[]);
    let mut vault = Vault::absent_on(&cluster);
    let nodes = cluster.execute(vault.url(), "SELECT string_agg(nodename, ' ') FROM pg_dist_node WHERE groupid > 0");
    for node in nodes.split(' ') {
        cluster.execute(vault.url(), &format!("SELECT citus_remove_node('{node}', 5432)"));
    }
    let refused = vault.run(&["init"]).refused();
    assert!(refused.stderr.contains("no worker"), "{}", refused.stderr);
    cluster.execute(vault.url(), "DROP EXTENSION citus");
    vault = vault.set_up();
    vault.serve();
    let session = vault.admin_session();
    let ids: Vec<String> = (0..200).map(|number| session.save(&small("crew/one", number))).collect();
    vault.stop();
    assert!(!vault.run(&["doctor"]).done().stdout.contains("half spread"));
    let missing = vault.run(&["migrate", "--spread"]).refused();
    assert!(missing.stderr.contains("does not have the extension Citus"), "{}", missing.stderr);

    cluster.execute(vault.url(), "CREATE EXTENSION citus");
    let place = cluster.execute(vault.url(), "SELECT current_setting('unix_socket_directories')");
    cluster.execute(vault.url(), &format!("SELECT citus_set_coordinator_host('{place}', 5432)"));
    for node in nodes.split(' ') {
        cluster.execute(vault.url(), &format!("SELECT citus_add_node('{node}', 5432)"));
    }
    let said = vault.run(&["migrate"]).done().stdout;
    assert!(said.contains("no table is spread"), "{said}");
    // Killed at several moments, it leaves all tables where they were, or all spread.
    for millis in [50, 150, 400, 800] {
        let mut command = vault.owner_command(&["migrate", "--spread"]);
        let mut child =
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(millis));
        let _ = child.kill();
        let _ = child.wait();
        let half = vault.owner_command(&["doctor"]).output().unwrap();
        assert!(!String::from_utf8_lossy(&half.stdout).contains("half spread"), "after {millis} ms");
    }
    let mut command = vault.owner_command(&["migrate", "--spread"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    vault = vault.granted();
    vault.serve();
    let session = vault.admin_session();
    assert_eq!(session.ids().into_iter().collect::<BTreeSet<_>>(), ids.into_iter().collect());
    session.save(&small("crew/one", 1));
    let said = vault.run(&["doctor", "--deep"]);
    assert_eq!(said.status, Some(0), "{}", said.stdout);

    cluster.execute(vault.url(), "SELECT undistribute_table('receivers')");
    let said = vault.run(&["doctor"]);
    assert_eq!(said.status, Some(1));
    assert!(said.stdout.contains("the schema is half spread: receivers should lie elsewhere"), "{}", said.stdout);
}

/// A new worker gets its share of the rows beside saves, lists and activations: nothing is lost, and nobody waits longer than
/// the deadline of a request.
#[test]
#[ignore = "needs the extension Citus: tests/citus"]
fn a_new_worker_gets_its_share_beside_requests() {
    let cluster = cluster(WORKERS + 1, &[]);
    let mut vault = Vault::absent_on(&cluster);
    let last = cluster.execute(vault.url(), "SELECT nodename FROM pg_dist_node ORDER BY nodeid DESC LIMIT 1");
    cluster.execute(vault.url(), &format!("SELECT citus_remove_node('{last}', 5432)"));
    vault = vault.set_up();
    let door = Door { address: free_address() };
    vault.serve_with(&["--activation-rate", "0", &format!("--activation-listen={}", door.address)]);
    let session = vault.admin_session();
    let integration = Integration::make(&vault, "crew", &["crew/*"]);
    (0..20).for_each(|number| drop(session.save(&small("crew/one", number))));
    let ends = AtomicBool::new(false);
    let (mut saved, mut slowest) = (Vec::new(), Duration::ZERO);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..3)
            .map(|number| {
                let (ends, session, integration, vault) = (&ends, &session, &integration, &vault);
                scope.spawn(move || {
                    let session = session.on(&vault.client());
                    work(&session, integration, door, number, ends)
                })
            })
            .collect();
        cluster.execute(vault.url(), &format!("SELECT citus_add_node('{last}', 5432)"));
        // However this ends, the clients end.
        let moved = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let start = "SELECT citus_rebalance_start('by_shard_count', shard_transfer_mode := 'force_logical')";
            cluster.execute(vault.url(), start);
            cluster.execute(vault.url(), "SELECT citus_rebalance_wait()");
        }));
        ends.store(true, Ordering::Relaxed);
        moved.unwrap();
        for client in clients {
            let (ids, longest) = client.join().unwrap();
            saved.extend(ids);
            slowest = slowest.max(longest);
        }
    });
    let there: usize = cluster
        .execute(vault.url(), &format!("SELECT count(*) FROM citus_shards WHERE nodename = '{last}'"))
        .parse()
        .unwrap();
    assert!(there > 0, "the new worker got no shard");
    // A request ends after 2.8 s, refused or not. Ten times that, so that the speed of the machine decides nothing.
    assert!(slowest < Duration::from_secs(30), "the slowest request took {slowest:?}");
    let ids: BTreeSet<String> = session.ids().into_iter().collect();
    assert!(saved.iter().all(|id| ids.contains(id)), "an acknowledged save is lost");
    let said = vault.run(&["doctor", "--deep"]);
    assert_eq!(said.status, Some(0), "{}", said.stdout);
    println!("{} saves while shards moved, slowest request {slowest:?}, {there} shards on the new worker", saved.len());
}

/// Saves, lists and activates until it is told to end. What was saved, and the longest wait.
fn work(
    session: &Session,
    integration: &Integration,
    door: Door,
    number: usize,
    ends: &AtomicBool,
) -> (Vec<String>, Duration) {
    let (mut saved, mut longest, client): (_, _, Client) = (Vec::new(), Duration::ZERO, door.client());
    while !ends.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let answer = match number {
            0 => session.try_save(&small("crew/two", saved.len())),
            1 => session.try_list(),
            _ => integration.activate(&client, "crew/one"),
        };
        longest = longest.max(begun.elapsed());
        assert!([200, 201, 413, 429, 503].contains(&answer.status), "{}", answer.text());
        if number == 0 && answer.status < 300 {
            saved.push(answer.json()["id"].as_str().unwrap().to_owned());
        }
    }
    (saved, longest)
}
