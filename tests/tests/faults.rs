//! The fault injection program, with a few rounds of each inexpensive fault. A seed determines the moments, and the
//! assertions are independent of them.

use serde_json::Value;
use std::process::Command;
use vault_tests::skip;

/// Injects a fault for this number of rounds. Any lost or wrong data fails the test.
#[track_caller]
fn happens(fault: &str, database: &str, rounds: &str) {
    let (report, is_clean, stderr) = report(&[fault, "--database", database, "--rounds", rounds]);
    assert!(is_clean, "{stderr}");
    let Some(report) = report else { return };
    assert!(report["rounds"].as_u64().unwrap() > 0 && report["acknowledged"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(report["lost"], 0, "{stderr}");
}

/// Returns the program's report, unless this host does not allow the fault, whether it found no error, and its
/// messages.
#[track_caller]
fn report(arguments: &[&str]) -> (Option<Value>, bool, String) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_faults"));
    let output = program.args(arguments).args(["--json", "--dir"]).arg(std::env::temp_dir()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"));
    let report = &report["reports"][0];
    if let Some(why) = report["figures"]["skipped"].as_str() {
        skip!(why, (None, output.status.success(), stderr));
    }
    (Some(report.clone()), output.status.success(), stderr)
}

#[test]
fn killed_at_any_moment() {
    happens("kill", "sqlite", "4");
    happens("kill", "postgres", "2");
}

#[test]
fn killed_at_a_system_call() {
    happens("kill-at-syscalls", "sqlite", "3");
}

#[test]
fn power_cuts_lose_no_acknowledged_write() {
    happens("power-cut", "sqlite", "8");
}

#[test]
fn power_cuts_under_postgresql_lose_no_acknowledged_write() {
    happens("postgres-power-cut", "postgres", "6");
}

/// The same program with a service, or a PostgreSQL, whose syncs do nothing.
#[test]
fn unsynced_writes_are_detected_as_lost() {
    for [fault, rounds] in [["power-cut", "60"], ["postgres-power-cut", "10"]] {
        let (report, is_clean, stderr) = report(&[fault, "--rounds", rounds, "--without-sync"]);
        let Some(report) = report else { continue };
        assert!(!is_clean && report["lost"].as_u64().unwrap() > 0, "{stderr}");
    }
}

#[test]
fn sync_fails() {
    happens("failed-syncs", "sqlite", "3");
}

#[test]
fn sectors_of_the_disk_fail() {
    happens("bad-sectors", "sqlite", "4");
}

#[test]
fn disk_full_during_write() {
    happens("full-at-syscalls", "sqlite", "3");
}

#[test]
fn file_descriptors_are_exhausted() {
    happens("descriptors", "sqlite", "1");
}

#[test]
fn read_hangs() {
    happens("long-read", "sqlite", "1");
}

#[test]
fn connections_end() {
    happens("connections", "postgres", "2");
}

#[test]
fn postgresql_is_killed() {
    happens("database", "postgres", "2");
}

#[test]
fn commit_response_is_lost() {
    happens("lost-commits", "postgres", "1");
}

#[test]
fn standby_takes_over() {
    happens("failover", "postgres", "2");
}

#[test]
fn packets_are_lost_and_duplicated() {
    happens("lossy-network", "postgres", "2");
}

#[test]
fn one_network_direction_is_interrupted() {
    happens("one-way-cut", "postgres", "2");
}

#[test]
fn keys_are_replaced_under_saves() {
    happens("rotation", "sqlite", "3");
    happens("rotation", "postgres", "3");
}

#[test]
fn two_faults_happen_concurrently() {
    happens("pairs", "postgres", "6");
}

#[test]
fn pooler_is_killed() {
    happens("pooler", "postgres", "2");
}

#[test]
fn connections_are_few() {
    happens("few-connections", "postgres", "1");
}

#[test]
fn logins_storm() {
    happens("login-storm", "sqlite", "1");
}

#[test]
fn memory_is_exhausted() {
    happens("no-memory", "sqlite", "1");
}

#[test]
fn allocation_fails() {
    happens("failed-allocations", "sqlite", "15");
}

#[test]
fn replicas_are_restarted_in_turn() {
    happens("rolling-restart", "postgres", "2");
}

#[test]
fn stored_bytes_change() {
    happens("bit-rot", "sqlite", "4");
}
