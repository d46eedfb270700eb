//! The clocks of replicas are wrong (libfaketime).

use super::Ground;
use crate::report::Report;
use crate::rig::Rig;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use vault_tests::Client;
use vault_tests::process::Server;

/// Path of the library on Debian.
const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";
/// Time for which a replica is observed.
const WATCHED: Duration = Duration::from_secs(5);

/// Replicas whose clocks differ from that of the database by more than 2 s are not ready. Replicas with a smaller
/// difference make the same decisions.
pub(super) fn skewed(ground: &Ground<'_>) -> Report {
    if !std::path::Path::new(LIBRARY).exists() {
        return Report::skipped("clocks", ground.database, "libfaketime is not installed (Debian: faketime)");
    }
    let mut rig = Rig::new("clocks", ground).share(ground);
    for _ in 0..ground.options.rounds(2) {
        for offset in ["-3600", "+3600", "-90", "+90"] {
            let mut replica = spawn(&rig, offset);
            let (started, client) = (Instant::now(), Client::new(replica.admin));
            let mut answered = false;
            while started.elapsed() < WATCHED && replica.is_alive() {
                match client.get("/readyz").try_send() {
                    Ok(answer) if answer.status == 200 => {
                        rig.report.losses.push(format!("a replica whose clock is {offset} s off is ready"));
                        break;
                    }
                    Ok(answer) => answered |= answer.text().contains("clock"),
                    Err(_) => {}
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            if !answered && replica.is_alive() {
                rig.report.losses.push(format!("a replica whose clock is {offset} s off does not say so"));
            }
            replica.kill();
            rig.report.rounds += 1;
        }
        let near: Vec<Server> = ["-1", "+1"].into_iter().map(|offset| spawn(&rig, offset)).collect();
        let mut addresses = vec![rig.address];
        for mut replica in near {
            replica.wait_until_ready();
            addresses.push(replica.address);
            rig.work_on(&addresses, || std::thread::sleep(Duration::from_secs(2)));
            let client = replica.client();
            rig.check_by(&client);
            addresses.pop();
        }
    }
    rig.finish()
}

fn spawn(rig: &Rig, offset: &str) -> Server {
    let mut command: Command = rig.replica_command();
    command.env("LD_PRELOAD", LIBRARY).env("FAKETIME", offset).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    command.env("DONT_FAKE_MONOTONIC", "1").stdin(Stdio::null());
    Server::spawn(command, &rig.vault.scratch("output-replica"), &rig.vault.scratch("log"))
}
