//! More logins arrive than the service can hash, in a process limited to 512 MiB, while clients write.

use super::Ground;
use crate::report::Report;
use crate::rig::Rig;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use vault_tests::Client;

/// Memory limit of the process, in bytes.
const LIMIT: u64 = 512 << 20;
/// Memory for connections and request bodies, in addition to the memory of the idle process and of the hashes.
const SLACK: u64 = 64 << 20;
/// Memory of a password hash.
const HASH: u64 = 19 << 20;
/// Parallel logins: more than can wait for a hash.
const LOGINS: usize = 256;
/// Duration of a storm, and of a storm in a campaign with `--rounds`.
const STORM: Duration = Duration::from_secs(60);
const SHORT_STORM: Duration = Duration::from_secs(4);

pub(super) fn happen(ground: &Ground<'_>) -> Report {
    let lasts = if ground.options.rounds.is_some() { SHORT_STORM } else { STORM };
    let group = Group::new();
    let mut rig = Rig::new("login-storm", ground);
    let (mut away, mut hashed, mut most) = (Vec::new(), Vec::new(), 0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    for _ in 0..ground.options.rounds(1) {
        rig.server.take().expect("its server runs").stop();
        rig.serve_by(group.as_ref().map(Group::program));
        rig.wait_until_it_writes();
        let process = rig.running().id();
        let base = rig.running().resident_bytes();
        let client = rig.client();
        let answers = rig.work(|| storm(&client, lasts));
        let peak = highest(process);
        let bound = base + threads as u64 * HASH + SLACK;
        if peak > bound {
            rig.report.losses.push(format!("the process had {peak} bytes, more than {bound}"));
        }
        if !rig.server.as_mut().expect("its server runs").is_alive() {
            rig.report.losses.push("the server ended in a storm".to_owned());
        }
        most = most.max(peak.saturating_sub(base));
        for (status, took) in answers {
            match status {
                429 | 503 => away.push(took),
                401 => hashed.push(took),
                status => rig.report.losses.push(format!("a stranger's login was answered {status}")),
            }
        }
        rig.check();
    }
    if away.is_empty() {
        rig.report.losses.push("no login was turned away, so nothing was tested".to_owned());
    }
    let rate = |count: usize| format!("{:.0}", count as f64 / (lasts.as_secs_f64() * rig.report.rounds as f64));
    let (offered, done) = (rate(away.len() + hashed.len()), rate(hashed.len()));
    rig.report.figure("logins per second", format!("{offered} offered, {done} hashed, others turned away"));
    away.sort();
    let soon = |part: usize| {
        away.get((away.len() * part / 100).min(away.len().saturating_sub(1))).copied().unwrap_or_default()
    };
    rig.report
        .figure("until turned away", format!("median {} ms, 99 % {} ms", soon(50).as_millis(), soon(99).as_millis()));
    rig.report.figure(
        "memory beyond that at rest",
        format!("{} MiB of {} allowed", most >> 20, (threads as u64 * HASH + SLACK) >> 20),
    );
    let limited =
        if group.is_some() { "512 MiB for the process" } else { "none: no group of processes could be limited here" };
    rig.report.figure("limit", limited);
    rig.finish()
}

/// Logs in to unknown accounts in parallel. Returns the status, or 0 without a response, and the time of each login.
fn storm(client: &Client, lasts: Duration) -> Vec<(u16, Duration)> {
    let started = Instant::now();
    std::thread::scope(|scope| {
        let stranger = |number: usize| {
            let email = format!("stranger.{number}@example.com");
            let login = json!({"email": email, "password": "wrong wrong wrong", "passcode": "000000"});
            let mut answers = Vec::new();
            while started.elapsed() < lasts {
                let asked = Instant::now();
                let answer = client.request("POST", "/v1/login").json(&login).try_send();
                answers.push((answer.map_or(0, |answer| answer.status), asked.elapsed()));
            }
            answers
        };
        let strangers: Vec<_> = (0..LOGINS).map(|number| scope.spawn(move || stranger(number))).collect();
        strangers.into_iter().flat_map(|stranger| stranger.join().unwrap()).collect()
    })
}

/// Returns the peak resident memory of the process, in bytes.
fn highest(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// A control group with a memory limit. Removed after its processes have exited.
struct Group(PathBuf);

impl Group {
    /// Creates a group of cgroup version 1 or 2, if this is possible.
    fn new() -> Option<Self> {
        let name = format!("orgvault-faults-{}", std::process::id());
        let made = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        made.into_iter().find_map(|(parent, limit)| {
            let group = Self(Path::new(parent).join(&name));
            fs::create_dir(&group.0).ok()?;
            fs::write(group.0.join(limit), LIMIT.to_string()).ok()?;
            Some(group)
        })
    }

    /// Creates a command that runs another program in the group.
    fn program(&self) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.0.join("cgroup.procs"));
        shell
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
