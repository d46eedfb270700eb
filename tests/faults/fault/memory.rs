//! The process gets no more memory. A password hash, the largest allocation of the process, fails and the process
//! continues.

use super::Ground;
use crate::report::Report;
use crate::rig::Rig;
use serde_json::json;
use std::process::Command;

/// Memory that the process can still allocate, in bytes: less than a hash.
const SPARE: u64 = 12 << 20;
/// Parallel logins. The number of hashing threads is the number of processors.
const LOGINS: usize = 8;

pub(super) fn happen(ground: &Ground<'_>) -> Report {
    let mut rig = Rig::new("no-memory", ground);
    let mut refused = 0_usize;
    for _ in 0..ground.options.rounds(5) {
        // A new process has not yet allocated the memory of a hash.
        rig.server.take().expect("its server runs").stop();
        rig.serve();
        rig.wait_until_it_writes();
        let process = rig.running().id();
        limit(process, &format!("{}:", size(process) + SPARE));
        let client = rig.client();
        let stranger = json!({"email": "unknown@example.com", "password": "wrong wrong wrong", "passcode": "000000"});
        // In parallel, so that every thread hashes. A login of an unknown account also needs a hash.
        let answers: Vec<_> = std::thread::scope(|scope| {
            let log_in = || client.request("POST", "/v1/login").json(&stranger).try_send();
            let logins: Vec<_> = (0..LOGINS).map(|_| scope.spawn(log_in)).collect();
            logins.into_iter().map(|login| login.join().unwrap()).collect()
        });
        for answer in answers {
            match answer {
                Ok(answer) if answer.status == 503 && answer.header("retry-after").is_some() => refused += 1,
                Ok(answer) if answer.status == 401 => {}
                answer => rig.report.losses.push(format!("a login without memory was answered {answer:?}")),
            }
        }
        if !rig.can_read() || !rig.try_write().0 {
            rig.report.losses.push("without memory for hashes, lists and writes do not continue".to_owned());
        }
        limit(process, "unlimited:");
        let answer = client.log_in(&stranger);
        if answer.status != 401 {
            rig.report.losses.push(format!("with memory again, a login was answered {}", answer.status));
        }
        if rig.running().id() != process || !rig.server.as_mut().expect("its server runs").is_alive() {
            rig.report.losses.push("the server ended for want of memory".to_owned());
        }
        rig.check();
    }
    rig.report.figure("logins refused for want of memory", refused);
    if refused == 0 {
        rig.report.losses.push("no login was refused, so nothing was tested".to_owned());
    }
    rig.finish()
}

/// Returns the data memory of the process, in bytes.
fn size(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:")).expect("VmData");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

fn limit(process: u32, limits: &str) {
    let mut prlimit = Command::new("prlimit");
    let status = prlimit.arg(format!("--pid={process}")).arg(format!("--data={limits}")).status().unwrap();
    assert!(status.success(), "prlimit failed");
}
