//! The vault on PostgreSQL with tables distributed by Citus. `tests/citus` builds the extension and runs these tests.
//! Without it, they are ignored.

#![allow(clippy::print_stdout, reason = "figures for the pages")]

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;
use vault_testkit::postgres::{Cluster, Options};
use vault_tests::process::{Server, free_address};
use vault_tests::samples::small;
use vault_tests::{ActivationListener, Database, Integration, Vault, binary};

const WORKERS: usize = 2;
/// Maximum number of attempts until an operation runs without concurrent maintenance.
const ATTEMPTS: usize = 15;

fn cluster(workers: usize, settings: &[&str]) -> Cluster {
    let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
    Cluster::start(Options { fsync: false, workers, settings, ..Options::default() })
}

/// The nodes and statements of an operation.
#[derive(Debug, Default, PartialEq, Eq)]
struct Reached {
    /// Nodes that executed statements locally. Node 0 is the coordinator.
    nodes: BTreeSet<usize>,
    statements: usize,
    /// Statements that a node sent to another.
    sent_on: Vec<String>,
}

fn logs(cluster: &Cluster) -> Vec<String> {
    (0..=WORKERS).map(|node| if node == 0 { cluster.log() } else { cluster.log_of_worker(node) }).collect()
}

/// Returns the statements of an operation on credentials from the nodes' logs, for connections that touched
/// credentials. Repeats the operation if maintenance, which uses all nodes, ran concurrently.
fn reached(cluster: &Cluster, operation: &dyn Fn()) -> Reached {
    let mut attempts = 0;
    loop {
        let before: Vec<usize> = logs(cluster).iter().map(String::len).collect();
        operation();
        let mut reached = Reached::default();
        for (node, log) in logs(cluster).iter().enumerate() {
            let done = done(&log[before[node]..]);
            let own: BTreeSet<&str> =
                done.iter().filter(|(_, statement, _)| statement.contains("credential")).map(|(id, ..)| *id).collect();
            for (_, statement, here) in done.iter().filter(|(id, ..)| own.contains(id)) {
                reached.statements += 1;
                if *here {
                    reached.nodes.insert(node);
                } else {
                    reached.sent_on.push((*statement).to_owned());
                }
            }
        }
        attempts += 1;
        if attempts == ATTEMPTS || reached.statements > 0 && reached.sent_on.is_empty() {
            return reached;
        }
    }
}

/// Returns the statements in a log: the process, the first line, and whether the node executed it locally or forwarded
/// it.
fn done(log: &str) -> Vec<(&str, &str, bool)> {
    let ways = [("executing the command locally: ", true), ("issuing ", false)];
    log.lines()
        .filter_map(|line| {
            ways.iter().find_map(|(way, here)| {
                let (prefix, statement) = line.split_once(way)?;
                Some((prefix.split(' ').next().unwrap_or_default(), statement, *here))
            })
        })
        .collect()
}

/// Saving, listing, showing, replacing, deleting and activating each use one worker, which executes all statements and
/// commits locally.
#[test]
#[ignore = "needs the extension Citus: tests/citus"]
fn each_operation_of_a_tenant_reaches_one_worker_in_one_phase() {
    let cluster = cluster(
        WORKERS,
        &[
            "citus.log_remote_commands=on",
            "citus.log_local_commands=on",
            "log_min_messages=notice",
            "log_line_prefix='%p '",
        ],
    );
    let mut vault = Vault::absent_on(&cluster).set_up();
    let listener = ActivationListener { address: free_address() };
    vault.serve_with(&["--activation-rate", "0", &format!("--activation-listen={}", listener.address)]);
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
        ("activate", &|| drop(integration.activate(&listener.client(), "crew/one").expect(201))),
    ];
    for (name, operation) in operations {
        let reached = reached(&cluster, operation);
        println!(
            "{name}: {} statements on {} node, {} sent on",
            reached.statements,
            reached.nodes.len(),
            reached.sent_on.len()
        );
        let worker = reached.nodes.iter().all(|node| *node > 0);
        assert!(worker && reached.nodes.len() == 1 && reached.sent_on.is_empty(), "{name}: {reached:?}");
    }
}

/// Every node accepts requests.
#[test]
#[ignore = "needs the extension Citus: tests/citus"]
fn replica_works_on_citus_worker() {
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
    let output = vault.run(&["doctor", "--deep"]);
    assert_eq!(output.status, Some(0), "{}", output.stdout);
}

/// A vault on a single node is distributed, even if this is interrupted several times.
#[test]
#[ignore = "needs the extension Citus: tests/citus"]
fn vault_on_one_host_is_distributed() {
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
    assert!(!vault.run(&["doctor"]).done().stdout.contains("not distributed correctly"));
    let missing = vault.run(&["migrate", "--spread"]).refused();
    assert!(missing.stderr.contains("does not have the extension Citus"), "{}", missing.stderr);

    cluster.execute(vault.url(), "CREATE EXTENSION citus");
    let place = cluster.execute(vault.url(), "SELECT current_setting('unix_socket_directories')");
    cluster.execute(vault.url(), &format!("SELECT citus_set_coordinator_host('{place}', 5432)"));
    for node in nodes.split(' ') {
        cluster.execute(vault.url(), &format!("SELECT citus_add_node('{node}', 5432)"));
    }
    let output = vault.run(&["migrate"]).done().stdout;
    assert!(output.contains("no table is distributed"), "{output}");
    // Killed at several moments, it leaves either all tables unchanged, or all distributed.
    for millis in [50, 150, 400, 800] {
        let mut command = vault.owner_command(&["migrate", "--spread"]);
        let mut child =
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(millis));
        let _ = child.kill();
        let _ = child.wait();
        let half = vault.owner_command(&["doctor"]).output().unwrap();
        assert!(!String::from_utf8_lossy(&half.stdout).contains("not distributed correctly"), "after {millis} ms");
    }
    let mut command = vault.owner_command(&["migrate", "--spread"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    vault = vault.granted();
    vault.serve();
    let session = vault.admin_session();
    assert_eq!(session.ids().into_iter().collect::<BTreeSet<_>>(), ids.into_iter().collect());
    session.save(&small("crew/one", 1));
    let output = vault.run(&["doctor", "--deep"]);
    assert_eq!(output.status, Some(0), "{}", output.stdout);

    cluster.execute(vault.url(), "SELECT undistribute_table('receivers')");
    let output = vault.run(&["doctor"]);
    assert_eq!(output.status, Some(1));
    assert!(output.stdout.contains("these tables are not distributed correctly: receivers"), "{}", output.stdout);
}

/// A vault that is migrated from the embedded database is distributed like a new one. `tests/citus` also runs the tests
/// of `migrate_to` on such a server.
#[test]
#[ignore = "needs the extension Citus: tests/citus"]
fn vault_moved_from_embedded_database_is_distributed() {
    let cluster = cluster(WORKERS, &[]);
    let mut vault = Vault::start(Database::Sqlite);
    let session = vault.admin_session();
    let ids: BTreeSet<String> = (0..50).map(|number| session.save(&small("crew/one", number))).collect();
    vault.stop();
    let url = cluster.create_database();
    vault.run(&["migrate-to", &url]).done();
    vault.use_postgres(url);
    let output = vault.run(&["doctor", "--deep"]);
    assert_eq!(output.status, Some(0), "{}", output.stdout);
    assert!(output.stdout.contains("27 tables by organization over"), "{}", output.stdout);
    vault.serve();
    assert_eq!(session.on(&vault.client()).ids().into_iter().collect::<BTreeSet<_>>(), ids);
}
