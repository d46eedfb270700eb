//! The fault injection program, with a few rounds of each inexpensive fault. A seed determines the moments, and the
//! assertions are independent of them.

#![allow(clippy::print_stdout, reason = "a test that cannot run says so")]

use serde_json::Value;
use std::process::Command;

/// Injects a fault for this number of rounds. Any lost or wrong data fails the test.
#[track_caller]
fn happens(fault: &str, database: &str, rounds: &str) {
    let (report, is_clean, said) = report(&[fault, "--database", database, "--rounds", rounds]);
    assert!(is_clean, "{said}");
    let Some(report) = report else { return };
    assert!(report["rounds"].as_u64().unwrap() > 0 && report["acknowledged"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(report["lost"], 0, "{said}");
}

/// Returns the program's report, unless this host does not allow the fault, whether it found no error, and its
/// messages.
#[track_caller]
fn report(arguments: &[&str]) -> (Option<Value>, bool, String) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_faults"));
    let output = program.args(arguments).args(["--json", "--dir"]).arg(std::env::temp_dir()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    let report = &report["reports"][0];
    if let Some(why) = report["figures"]["skipped"].as_str() {
        println!("SKIPPED: {why}");
        return (None, output.status.success(), said);
    }
    (Some(report.clone()), output.status.success(), said)
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
fn the_power_is_cut() {
    happens("power-cut", "sqlite", "8");
}

#[test]
fn the_power_is_cut_under_postgresql() {
    happens("postgres-power-cut", "postgres", "6");
}

/// The same program with a service, or a PostgreSQL, whose syncs do nothing.
#[test]
fn what_is_not_synced_is_seen_to_be_lost() {
    for [fault, rounds] in [["power-cut", "60"], ["postgres-power-cut", "10"]] {
        let (report, is_clean, said) = report(&[fault, "--rounds", rounds, "--without-sync"]);
        let Some(report) = report else { continue };
        assert!(!is_clean && report["lost"].as_u64().unwrap() > 0, "{said}");
    }
}

#[test]
fn a_sync_fails() {
    happens("failed-syncs", "sqlite", "3");
}

#[test]
fn sectors_of_the_disk_fail() {
    happens("bad-sectors", "sqlite", "4");
}

#[test]
fn a_write_finds_the_disk_full() {
    happens("full-at-syscalls", "sqlite", "3");
}

#[test]
fn no_descriptors_are_left() {
    happens("descriptors", "sqlite", "1");
}

#[test]
fn a_read_does_not_end() {
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
fn the_answer_to_a_commit_is_lost() {
    happens("lost-commits", "postgres", "1");
}

#[test]
fn the_standby_takes_over() {
    happens("failover", "postgres", "2");
}

#[test]
fn packets_are_lost_and_come_twice() {
    happens("lossy-network", "postgres", "2");
}

#[test]
fn a_direction_of_the_network_is_cut() {
    happens("one-way-cut", "postgres", "2");
}

#[test]
fn keys_are_replaced_under_saves() {
    happens("rotation", "sqlite", "3");
    happens("rotation", "postgres", "3");
}

#[test]
fn two_faults_happen_at_once() {
    happens("pairs", "postgres", "6");
}

#[test]
fn a_pooler_is_killed() {
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
fn no_memory_is_left() {
    happens("no-memory", "sqlite", "1");
}

#[test]
fn an_allocation_fails() {
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
