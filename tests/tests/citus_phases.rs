//! Two-phase commits on Citus that are interrupted between the phases, and how `orgvault doctor` reports remaining
//! transactions. `tests/citus` builds the extension and runs these tests.

use std::thread;
use std::time::{Duration, Instant};
use vault_testkit::postgres::{Cluster, Options};
use vault_tests::{Session, Vault};

const WORKERS: usize = 2;
/// Maximum duration of any operation here.
const LIMIT: Duration = Duration::from_secs(120);
/// Selects the coordinator process IDs of prepared transactions that changed an invitation. The extension hides shard
/// tables from catalog queries, so their names are derived from their numbers.
const PREPARED: &str = "SELECT split_part(gid, '_', 3) FROM pg_prepared_xacts WHERE EXISTS (SELECT 1 FROM pg_locks own \
    JOIN pg_locks held USING (virtualtransaction) WHERE own.transactionid = transaction AND own.pid IS NULL AND held.pid IS NULL \
    AND held.relation::regclass::text ~ '^(entities|global_lookups)_[0-9]+$')";
const ALL_PREPARED: &str = "SELECT count(*) FROM pg_prepared_xacts";

/// Starts a cluster in which only the test completes transactions.
fn cluster() -> Cluster {
    let settings = vec!["citus.recover_2pc_interval=-1".to_owned()];
    Cluster::start(Options { fsync: false, workers: WORKERS, settings, ..Options::default() })
}

/// Runs SQL on a node. Node 0 is the coordinator.
fn execute(cluster: &Cluster, node: usize, url: &str, sql: &str) -> String {
    match node {
        0 => cluster.execute(url, sql),
        worker => cluster.execute_on_worker(worker, url, sql),
    }
}

/// Blocks commits and prepared transactions of a node by requiring a nonexistent synchronous standby, or unblocks them.
fn hold(cluster: &Cluster, node: usize, url: &str, held: bool) {
    let name = if held { "nonexistent" } else { "" };
    execute(cluster, node, url, &format!("ALTER SYSTEM SET synchronous_standby_names = '{name}'"));
    execute(cluster, node, url, "SELECT pg_reload_conf()");
}

/// Returns whether a coordinator process has prepared the commit of an invitation. If the coordinator is `held`, the
/// commit is also decided.
fn is_between(cluster: &Cluster, held: usize, url: &str) -> bool {
    let processes: Vec<String> = (1..=WORKERS)
        .flat_map(|worker| {
            let names = cluster.execute_on_worker(worker, url, PREPARED);
            names.lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    match held {
        0 => processes.iter().any(|id| {
            let waits = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {id} AND wait_event = 'SyncRep'");
            cluster.execute(url, &waits) == "1"
        }),
        _ => !processes.is_empty(),
    }
}

/// Invites users until the commit of an invitation is interrupted between its phases by a crash of the coordinator.
/// Returns the user.
fn interrupt_commit(cluster: &Cluster, held: usize, url: &str, session: &Session) -> String {
    let started = Instant::now();
    hold(cluster, held, url, true);
    for number in 0.. {
        assert!(started.elapsed() < LIMIT, "no invitation was interrupted between the phases of its commit");
        let email = format!("person-{held}-{number}@example.com");
        let cut = thread::scope(|scope| {
            let asked = scope.spawn(|| session.invite(&email, "viewer"));
            let mut cut = false;
            while !cut && !asked.is_finished() {
                cut = is_between(cluster, held, url);
            }
            if cut {
                cluster.crash();
            }
            let answer = asked.join().unwrap();
            if cut {
                // The outcome is unknown, and the response states that.
                assert_eq!(answer.status, 503, "{}", answer.text());
                assert!(answer.header("retry-after").is_some(), "{}", answer.text());
            }
            cut
        });
        if cut {
            cluster.resume();
            hold(cluster, held, url, false);
            return email;
        }
    }
    unreachable!("there are enough numbers")
}

fn prepared(cluster: &Cluster, url: &str) -> usize {
    (1..=WORKERS).map(|worker| cluster.execute_on_worker(worker, url, ALL_PREPARED).parse::<usize>().unwrap()).sum()
}

/// A decided commit is completed on every node, an undecided one on none. The extension decides this by its records.
#[test]
#[ignore = "needs the extension Citus: tests/citus"]
fn interrupted_two_phase_commit_is_resolved() {
    let cluster = cluster();
    let mut vault = Vault::absent_on(&cluster).set_up();
    vault.serve();
    let session = vault.admin_session();
    let url = vault.url().to_owned();
    for (held, stands) in [(0, true), (1, false)] {
        let email = interrupt_commit(&cluster, held, &url, &session);
        assert!(prepared(&cluster, &url) > 0, "nothing waits for its second phase");
        let started = Instant::now();
        while prepared(&cluster, &url) > 0 {
            assert!(started.elapsed() < LIMIT, "transactions are not finished");
            cluster.execute(&url, "SELECT recover_prepared_transactions()");
        }
        // The list reads the invitation. A second invitation conflicts with the address, which is on another node.
        let listed = session.accounts().contains_key(&email);
        let started = Instant::now();
        let again = loop {
            let answer = session.invite(&email, "viewer");
            if answer.status != 503 {
                break answer;
            }
            assert!(started.elapsed() < LIMIT, "the service is refused without end: {}", answer.text());
        };
        assert_eq!((listed, again.status), if stands { (true, 409) } else { (false, 201) }, "{}", again.text());
    }
    let output = vault.run(&["doctor", "--deep"]);
    assert_eq!(output.status, Some(0), "{}", output.stdout);
}

/// Messages of the extension about a broken environment, and the corresponding output.
#[test]
#[ignore = "needs the extension Citus: tests/citus"]
fn doctor_reports_node_errors() {
    let cluster = cluster();
    let vault = Vault::absent_on(&cluster).set_up();
    let url = vault.url().to_owned();
    let doctor = || vault.run(&["doctor"]);
    // A prepared transaction that the extension does not know, and therefore does not complete.
    let left = "BEGIN; CREATE TABLE left_over (id int); PREPARE TRANSACTION 'citus_left_over'";
    cluster.execute_on_worker(1, &url, left);
    let started = Instant::now();
    let output = doctor();
    assert!(output.stdout.contains("none is pending"), "{}", output.stdout);

    let node = cluster.execute(&url, "SELECT nodename FROM pg_dist_node WHERE groupid > 0 ORDER BY nodeid LIMIT 1");
    cluster.execute(&url, &format!("SELECT stop_metadata_sync_to_node('{node}', 5432)"));
    let output = doctor();
    assert_eq!(output.status, Some(1));
    assert!(output.stdout.contains("these nodes lack the metadata of the cluster"), "{}", output.stdout);
    assert!(
        output.stdout.contains(&node) && output.stdout.contains("start_metadata_sync_to_all_nodes"),
        "{}",
        output.stdout
    );
    cluster.execute(&url, "SELECT start_metadata_sync_to_all_nodes()");
    assert_eq!(doctor().status, Some(0), "{}", doctor().stdout);

    // An empty list would be interpreted as a library name.
    cluster.execute(&url, "ALTER SYSTEM SET shared_preload_libraries = 'auto_explain'");
    cluster.crash();
    cluster.resume();
    let output = doctor();
    assert_eq!(output.status, Some(1));
    assert!(output.stdout.contains("its server has not loaded it"), "{}", output.stdout);
    let refused = vault.run(&["init"]).refused();
    assert!(refused.stderr.contains("has not loaded it"), "{}", refused.stderr);
    cluster.execute(&url, "ALTER SYSTEM SET shared_preload_libraries = 'citus'");
    cluster.crash();
    cluster.resume();

    while started.elapsed() < Duration::from_secs(125) {
        thread::sleep(Duration::from_secs(1));
    }
    let output = doctor();
    assert_eq!(output.status, Some(1));
    assert!(output.stdout.contains("1 transaction has been pending for more than two minutes"), "{}", output.stdout);
    cluster.execute_on_worker(1, &url, "ROLLBACK PREPARED 'citus_left_over'");
    let output = doctor();
    assert_eq!(output.status, Some(0), "{}", output.stdout);
}
