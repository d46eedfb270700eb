//! Commands during other load.

use super::Ground;
use super::saves::Saves;
use crate::account::Organization;
use crate::client::{Answer, Next, Sample, Verdict, Workload, run};
use crate::report::{Report, Target, grouped};
use crate::{Result, note};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// Number of connections that save while the commands run.
const CONNECTIONS: usize = 64;
/// Number of runs of each command.
const RUNS: usize = 8;

/// Saves until it is stopped.
struct UntilStopped<'a> {
    saves: Saves,
    over: &'a AtomicBool,
}

impl Workload for UntilStopped<'_> {
    fn next(&mut self, slot: usize, request: &mut Vec<u8>, now: Instant) -> Next {
        if self.over.load(Ordering::Relaxed) { Next::End } else { self.saves.next(slot, request, now) }
    }

    fn answered(&mut self, slot: usize, answer: &Answer<'_>) -> Verdict {
        self.saves.answered(slot, answer)
    }
}

/// Measures the duration of commands while connections save.
pub(crate) fn commands(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    note("commands during saves");
    let organization = Organization::create(ground.vault, ground.server, "Commands")?;
    let over = AtomicBool::new(false);
    let saves = Saves::endless(ground.server.address, &organization.token);
    let mut workload = UntilStopped { saves, over: &over };
    let (load, slowest) = thread::scope(|scope| {
        let load =
            scope.spawn(|| run(&ground.to_the_end(CONNECTIONS), &mut workload).map_err(|error| error.to_string()));
        let slowest = run_all(ground);
        over.store(true, Ordering::Relaxed);
        (load.join(), slowest)
    });
    let sample: Sample = load.map_err(|_| "the load panicked")??;
    for (command, longest) in slowest? {
        let target = Target::new("≤ 1 s", longest <= 1.0);
        report.quantity(format!("{command}, slowest of {RUNS} during 64 saves"), longest * 1000.0, "ms", Some(target));
    }
    let errors = sample.error_count() + sample.turned_away();
    let what = format!("concurrent saves, {errors} errors, longest {} ms", grouped(sample.longest()));
    report.quantity(what, sample.rate(), "/s", None);
    Ok(())
}

/// Runs every command. Returns the longest duration of each, in seconds.
fn run_all(ground: &Ground<'_>) -> Result<Vec<(&'static str, f64)>> {
    let mut slowest = vec![("account create", 0.0_f64), ("org list", 0.0), ("account passcode", 0.0)];
    for number in 0..RUNS {
        // Use a new account each time: a code of the previous account could only be used again in the next time step.
        let email = format!("command-{number}@example.com");
        let create = ["account", "create", "--org", "Commands", "--email", &email, "--role", "viewer"];
        let passcode = ["account", "passcode", "--email", &email];
        let commands: [&[&str]; 3] = [&create, &["org", "list"], &passcode];
        for (command, (_, longest)) in commands.into_iter().zip(&mut slowest) {
            let started = Instant::now();
            ground.vault.run(command)?;
            *longest = longest.max(started.elapsed().as_secs_f64());
        }
    }
    Ok(slowest)
}
