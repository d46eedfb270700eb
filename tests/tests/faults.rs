//! The program that has faults happen, a few rounds of each fault that costs little. Moments come from a seed; what must hold
//! does whatever they are.

#![allow(clippy::print_stdout, reason = "a test that cannot run says so")]

use serde_json::Value;
use std::process::Command;

/// Has a fault happen for so many rounds; whatever it finds lost or wrong fails the test.
#[track_caller]
fn happens(fault: &str, database: &str, rounds: &str) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_faults"));
    program.args([fault, "--database", database, "--rounds", rounds, "--json", "--dir"]).arg(std::env::temp_dir());
    let output = program.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let report = &report["reports"][0];
    if let Some(why) = report["figures"]["skipped"].as_str() {
        println!("SKIPPED: {why}");
        return;
    }
    assert!(report["rounds"].as_u64().unwrap() > 0 && report["acknowledged"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(report["lost"], 0, "{said}");
}

#[test]
fn r01_killed_at_any_moment() {
    happens("kill", "sqlite", "4");
    happens("kill", "postgres", "2");
}

#[test]
fn r02_killed_at_a_system_call() {
    happens("kill-at-syscalls", "sqlite", "3");
}

#[test]
fn r03_the_power_is_cut() {
    happens("power-cut", "sqlite", "8");
}

#[test]
fn r04_a_sync_fails() {
    happens("failed-syncs", "sqlite", "3");
}

#[test]
fn r06_a_write_finds_the_disk_full() {
    happens("full-at-syscalls", "sqlite", "3");
}

#[test]
fn r08_no_descriptors_are_left() {
    happens("descriptors", "sqlite", "1");
}

#[test]
fn r11_connections_end() {
    happens("connections", "postgres", "2");
}

#[test]
fn r12_postgresql_is_killed() {
    happens("database", "postgres", "2");
}

#[test]
fn r13_the_answer_to_a_commit_is_lost() {
    happens("lost-commits", "postgres", "1");
}

#[test]
fn r26_no_memory_is_left() {
    happens("no-memory", "sqlite", "1");
}

#[test]
fn r28_replicas_are_restarted_in_turn() {
    happens("rolling-restart", "postgres", "2");
}

#[test]
fn r30_stored_bytes_change() {
    happens("bit-rot", "sqlite", "4");
}
