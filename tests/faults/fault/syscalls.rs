//! The service is killed at each of its system calls that change files, or the call fails. Both use `strace`.

use super::{Ground, Outcome, possible};
use crate::ledger::Outcome as Written;
use crate::report::Report;
use crate::rig::{Rig, starts};
use crate::workers::Tally;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use vault_tests::earlier::Earlier;
use vault_tests::{Database, Vault, binary};

/// System calls that change files.
const WRITING: [&str; 6] = ["pwrite64", "fdatasync", "fsync", "ftruncate", "unlink", "rename"];
const SYNCING: [&str; 2] = ["fdatasync", "fsync"];
/// Number of writes in each run.
const WRITES: usize = 8;
/// Time limit for a start.
const LIMIT: Duration = Duration::from_secs(60);

/// The effect on a system call.
#[derive(Clone, Copy)]
enum Injection {
    Kill,
    Fail(&'static str),
}

/// Kills the service, and commands with many changes, at each of their system calls.
pub(super) fn killed(ground: &Ground<'_>) -> Outcome {
    let mut report = each_call(ground, &WRITING, Injection::Kill, &[0, WRITES], |_, _| {})?;
    let directory = &ground.options.shared.dir;
    let fresh = || Vault::absent_in(directory, None);
    command(ground, &mut report, "first start", &["init"], fresh);
    let made = || {
        let vault = fresh().set_up();
        vault.organization("Acme");
        vault
    };
    command(ground, &mut report, "key rotation", &["key", "rotate", "--organization", "Acme"], made);
    for earlier in Earlier::all() {
        let made = || earlier.restored_in(directory, Database::Sqlite).vault;
        command(ground, &mut report, "migration", &["migrate"], made);
    }
    Ok(report)
}

/// Each sync fails once. The affected write is not acknowledged, and a server with a failed commit exits.
pub(super) fn failed_syncs(ground: &Ground<'_>) -> Outcome {
    let mut ended = 0_usize;
    let mut report = each_call(ground, &SYNCING, Injection::Fail("EIO"), &[WRITES], |run, losses| {
        ended += usize::from(run.ended);
        if run.ended && run.indeterminate == 0 && run.acknowledged == WRITES {
            losses.push("a server ended, and every write was acknowledged".to_owned());
        }
    })?;
    report.figure("servers that stopped", ended);
    Ok(report)
}

/// Each write to a file fails once because the disk is full. The server continues to run.
pub(super) fn full(ground: &Ground<'_>) -> Outcome {
    each_call(ground, &["pwrite64"], Injection::Fail("ENOSPC"), &[WRITES], |run, losses| {
        if run.ready && run.ended {
            losses.push("a server ended for want of space".to_owned());
        }
    })
}

/// The result of one run.
#[derive(Default)]
struct Run {
    /// `true` if the system call was affected.
    happened: bool,
    /// `true` if the server became ready.
    ready: bool,
    /// `true` if the server exited without a signal.
    ended: bool,
    acknowledged: usize,
    indeterminate: usize,
}

/// Runs `scenarios`. Each one is a start, a login, this number of writes, and a stop.
fn each_call(
    ground: &Ground<'_>,
    calls: &[&str],
    injection: Injection,
    scenarios: &[usize],
    mut evaluate: impl FnMut(&Run, &mut Vec<String>),
) -> Outcome {
    possible(cannot_trace())?;
    let mut rig = Rig::new(ground);
    rig.stop();
    let mut places: BTreeMap<(usize, &str), usize> = BTreeMap::new();
    let mut random = ground.random();
    let mut step = |rig: &mut Rig<'_>, writes: usize, call: &str, place: usize| {
        let run = run(rig, writes, call, place, injection);
        evaluate(&run, &mut rig.report.losses);
        rig.serve();
        rig.check();
        rig.stop();
        run.happened
    };
    match ground.options.rounds {
        // A random selection of the calls.
        Some(rounds) => {
            for _ in 0..rounds.get() {
                let writes = scenarios[random.below(scenarios.len())];
                let call = calls[random.below(calls.len())];
                let place = 1 + random.below(if call == "pwrite64" { 100 } else { 12 });
                if step(&mut rig, writes, call, place) {
                    *places.entry((writes, call)).or_default() += 1;
                }
            }
        }
        None => {
            for &writes in scenarios {
                for &call in calls {
                    let mut place = 1;
                    while step(&mut rig, writes, call, place) {
                        place += 1;
                    }
                    places.insert((writes, call), place - 1);
                }
            }
        }
    }
    rig.serve();
    for &writes in scenarios {
        let of_it = places.iter().filter(|((of, _), _)| *of == writes);
        let of_it: Vec<String> = of_it.map(|((_, call), count)| format!("{call} {count}")).collect();
        let what = if writes == 0 { "a login alone".to_owned() } else { format!("a login and {writes} writes") };
        rig.report.figure(&format!("places of {what}"), of_it.join(", "));
    }
    rig.finish()
}

/// Starts the server, logs in, makes the writes and stops the server, with the effect on the call at `place`.
fn run(rig: &mut Rig<'_>, writes: usize, call: &str, place: usize, injection: Injection) -> Run {
    let trace = rig.vault.scratch("trace");
    let mut run = Run::default();
    let mut server = rig.spawn_by(Some(strace(&trace, call, place, injection)));
    if starts(&mut server) {
        run.ready = true;
        let client = rig.client();
        let mut tally = Tally::default();
        rig.workers.logins.log_in_and_out(&client, &rig.log, &mut tally);
        for _ in 0..writes {
            match rig.workers.writers[0].write(&client, &rig.log, &mut tally) {
                Written::Done => run.acknowledged += 1,
                Written::Refused => {}
                Written::Indeterminate => run.indeterminate += 1,
            }
        }
        rig.report.losses.append(&mut tally.wrong);
        rig.report.tally.add(tally);
        // A server that fails exits shortly after its response.
        let started = Instant::now();
        while run.indeterminate > 0 && started.elapsed() < Duration::from_millis(300) && server.is_alive() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    run.ended = !server.is_alive();
    server.ask_to_stop();
    server.wait();
    run.happened = was_done(&trace, server.id());
    run
}

/// Returns `true` if the trace shows the effect on process `id`. strace writes its last line shortly after the exit of
/// the process.
fn was_done(trace: &Path, id: u32) -> bool {
    let started = Instant::now();
    loop {
        let text = fs::read_to_string(trace).unwrap_or_default();
        let ended = |line: &str| line.split_whitespace().next() == Some(&*id.to_string()) && line.contains(" +++ ");
        if text.lines().any(ended) {
            return text.contains("(INJECTED)") || text.contains("killed by SIGKILL");
        }
        assert!(started.elapsed() < LIMIT, "the tracer does not tell how {id} ended: {text}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Kills a command at each of its calls, and repeats it.
fn command(ground: &Ground<'_>, report: &mut Report, what: &str, arguments: &[&str], make: impl Fn() -> Vault) {
    let mut random = ground.random();
    let mut places = 0;
    for call in WRITING {
        for count in 1.. {
            let place = if ground.options.rounds.is_some() { 1 + random.below(6) } else { count };
            let vault = make();
            assert_eq!(vault.database(), Database::Sqlite);
            let trace = vault.scratch("trace");
            let mut strace = strace(&trace, call, place, Injection::Kill);
            strace.arg(binary::path());
            let mut run = vault.on_this(binary::isolated(strace), arguments);
            let mut child = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let ended = child.wait().unwrap();
            if !was_done(&trace, child.id()) {
                break;
            }
            places += 1;
            if ended.success() {
                report.losses.push(format!("{what}: killed at {call} {place}, and succeeded"));
            }
            let second = vault.run(arguments);
            let doctor = vault.run(&["doctor", "--deep"]);
            // A start that was killed after its last change is rejected as already done.
            let is_done = what == "first start" && second.stderr.contains("already exists");
            if second.status != Some(0) && !is_done || doctor.status != Some(0) {
                report.losses.push(format!("{what}: killed at {call} {place}: {second:?}; {doctor:?}"));
            }
            report.rounds += 1;
            if ground.options.rounds.is_some() {
                break;
            }
        }
    }
    report.figure(&format!("places of a {what}"), places);
}

/// Returns the reason why system calls cannot be traced on this host.
pub(super) fn cannot_trace() -> Option<String> {
    let mut strace = Command::new("strace");
    strace.args(["-D", "-f", "-qq", "-o", "/dev/null", "true"]).stdout(Stdio::null()).stderr(Stdio::null());
    match strace.status() {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("strace: {status}")),
        Err(error) => Some(format!("strace: {error}")),
    }
}

/// Creates a command that runs another program under the tracer. The other program is a child of this process, not of
/// the tracer.
fn strace(trace: &Path, call: &str, place: usize, injection: Injection) -> Command {
    let injection = match injection {
        Injection::Kill => "signal=KILL".to_owned(),
        Injection::Fail(error) => format!("error={error}"),
    };
    let _ = fs::remove_file(trace);
    tracing(trace, call, &format!("{injection}:when={place}"))
}

/// Creates a command that runs another program whose syncs do nothing and succeed.
pub(super) fn without_sync() -> Command {
    tracing(Path::new("/dev/null"), &SYNCING.join(","), "retval=0")
}

fn tracing(trace: &Path, calls: &str, injection: &str) -> Command {
    let mut strace = Command::new("strace");
    strace.args(["-D", "-f", "-o"]).arg(trace);
    strace.args(["-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:{injection}")]);
    strace
}
