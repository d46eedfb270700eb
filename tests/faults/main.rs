//! Causes faults while clients write to the real binary, and then checks that no acknowledged write is lost, undone or
//! unreadable:
//!
//! ```text
//! cargo build --release --workspace --bins
//! cargo run --release -p vault-tests --bin faults -- kill --rounds 1000
//! ```
//!
//! - [`ledger`]: the possible states of a key after its acknowledged writes. [`workers`]: the clients, each the only
//!   writer of its keys. [`login_client`]: one that logs in and out.
//! - [`shared`]: clients that write the same credentials, and the check of their histories.
//! - [`rig`]: a vault with its servers and its workers, and the checks of its data. [`report`]: the results.
//!   [`branches`]: the branches that the service executed.
//! - [`fault`]: the faults, with a file for each family. [`proxy`], [`network`]: networks that fail completely and in
//!   part. [`image`]: a disk that fails. [`record`]: a disk that is recorded, and the disks that a power cut can leave.
//!   [`cluster`]: two PostgreSQL servers, of which one follows the other.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a campaign ends where its rig fails")]

mod branches;
mod cluster;
mod fault;
mod image;
mod ledger;
mod log;
mod login_client;
mod network;
mod options;
mod proxy;
mod record;
mod report;
mod rig;
mod shared;
mod worker;
mod workers;

use clap::Parser;
use options::Options;
use report::Report;
use std::io::{Write, stderr, stdout};
use std::process::{Command, ExitCode, Stdio};
use vault_tests::machine::Machine;

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(code) = with_own_mounts() {
        return code;
    }
    // Killed servers leave orphans, which this process must reap.
    let _ = rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1));
    let machine = Machine::look(&options.shared.dir).unwrap();
    let mut reports: Vec<Report> = Vec::new();
    for fault in options.faults() {
        for database in options.databases(fault) {
            note(&format!("--- {}, {database:?}", fault.name));
            let report = fault.happen(&options, database);
            note(&report.text());
            reports.push(report);
        }
    }
    if reports.is_empty() {
        note("error: these faults cannot be caused on the chosen database: leave --database out");
        return ExitCode::FAILURE;
    }
    let mut out = stdout().lock();
    if options.shared.json {
        let reports: Vec<_> = reports.iter().map(Report::json).collect();
        writeln!(out, "{:#}", serde_json::json!({"machine": machine.json(), "seed": options.seed, "reports": reports}))
            .unwrap();
    } else {
        writeln!(out, "{}; seed {}\n\n{}", machine.line(), options.seed, report::table(&reports)).unwrap();
    }
    if reports.iter().all(Report::is_clean) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Set in the process that has private mounts.
const WITHIN: &str = "ORGVAULT_FAULTS_WITHIN_MOUNTS";

/// Runs this program again in namespaces for mounts and networks, if the host allows that. They disappear with it.
/// Returns its exit code.
fn with_own_mounts() -> Option<ExitCode> {
    const MOUNTS: [&str; 3] = ["--mount", "--propagation", "private"];
    const NETWORK: [&str; 4] = ["--net", "--mount", "--propagation", "private"];
    // A new network namespace has no active loopback device.
    const WITH_LOOPBACK: [&str; 4] = ["sh", "-c", "ip link set lo up && exec \"$@\"", "sh"];
    if std::env::var_os(WITHIN).is_some() || !rustix::process::getuid().is_root() {
        return None;
    }
    let unshare = |words: &[&[&str]]| {
        let mut unshare = Command::new("unshare");
        unshare.args(words.concat());
        unshare
    };
    let may = |words: &[&[&str]]| {
        let status = unshare(words).arg("true").stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    let mut again = if may(&[&NETWORK, &WITH_LOOPBACK]) {
        let mut again = unshare(&[&NETWORK, &WITH_LOOPBACK]);
        again.env(network::OWN, "1");
        again
    } else if may(&[&MOUNTS]) {
        unshare(&[&MOUNTS])
    } else {
        return None;
    };
    again.arg(std::env::current_exe().unwrap()).args(std::env::args_os().skip(1)).env(WITHIN, "1");
    let code = again.status().unwrap().code().and_then(|code| u8::try_from(code).ok());
    Some(ExitCode::from(code.unwrap_or(1)))
}

/// Reports progress on standard error.
fn note(text: &str) {
    let _ = writeln!(stderr(), "{text}"); // standard error may be closed
}
