//! Each allocation of the service for a request fails once: those of Rust, of SQLite and of the cipher library. The
//! service is started with the library `failing_malloc` (`tests/simulator/examples`), which makes them fail.

use super::{Ground, Outcome, possible};
use crate::ledger::Outcome as Written;
use crate::rig::Rig;
use crate::worker::Act;
use crate::workers::Tally;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// Time limit for an aborting service to exit after its client has seen the connection close.
const ENDING: Duration = Duration::from_secs(10);
/// Maximum number of credentials before a request.
const MOST: usize = 8;
/// The last allocation that can be chosen at random.
const FAR: usize = 600;
/// The signal of `abort(3)`.
const ABORTED: i32 = 6;

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Save,
    Replace,
    Delete,
    Activation,
    Login,
}

const ALL: [What; 5] = [What::Save, What::Replace, What::Delete, What::Activation, What::Login];

/// Each allocation of each kind of request fails. With `--rounds`, a random selection of them.
pub(super) fn fail(ground: &Ground<'_>) -> Outcome {
    let library = library();
    let why = || format!("{} is not there: cargo build -p vault-simulator --examples", library.display());
    possible((!library.is_file()).then(why))?;
    let mut random = ground.random();
    let mut memory = Memory::new(ground, library);
    match ground.options.rounds {
        Some(rounds) => {
            for round in 0..rounds.get() {
                let place = 1 + random.below(FAR);
                memory.fail(ALL[round % ALL.len()], place);
            }
        }
        None => {
            for what in ALL {
                // Background work may hit the allocation now and then, so one request without a failure does not prove
                // that there are no more allocations.
                let (mut place, mut missed) = (1, 0);
                while missed < 3 {
                    missed = if memory.fail(what, place) { 0 } else { missed + 1 };
                    place += 1;
                }
            }
        }
    }
    memory.finish()
}

/// Returns the path of the library, next to the examples of this program.
fn library() -> PathBuf {
    let program = std::env::current_exe().expect("this program");
    program.with_file_name("examples").join("libfailing_malloc.so")
}

/// A service with failing allocations.
struct Memory<'a> {
    rig: Rig<'a>,
    library: PathBuf,
    /// The file through which this program and the library communicate.
    words: PathBuf,
    /// Number of requests with a failed allocation, and of those that aborted the service, by kind.
    hit: BTreeMap<What, (usize, usize)>,
    /// Number of rejected requests.
    refused: usize,
    acknowledged: usize,
    /// `true` if an allocation of the previous request failed and the service still ran after it. The thread with the
    /// failure may abort the service later, during the next request.
    may_abort: bool,
}

impl<'a> Memory<'a> {
    fn new(ground: &Ground<'a>, library: PathBuf) -> Self {
        let mut rig = Rig::new(ground);
        rig.stop();
        let words = rig.vault.scratch("failing-malloc");
        File::create(&words).and_then(|file| file.set_len(4_096)).expect("a file of words");
        let mut memory =
            Self { rig, library, words, hit: BTreeMap::new(), refused: 0, acknowledged: 0, may_abort: false };
        memory.serve();
        memory
    }

    fn serve(&mut self) {
        let mut program = Command::new("env");
        program.arg(format!("LD_PRELOAD={}", self.library.display()));
        program.arg(format!("FAILING_MALLOC={}", self.words.display()));
        // A service that starts while the value is 0 has no failing allocations.
        self.set(0);
        self.rig.serve_by(Some(program));
    }

    /// Makes the allocation at `place`, counted from now, fail. With 0, none fails.
    fn set(&self, place: usize) {
        let file = File::options().write(true).open(&self.words).expect("a file of words");
        file.write_all_at(&(place as u64).to_ne_bytes(), 0).expect("a word");
    }

    /// Returns the number of failed allocations.
    fn failed(&self) -> u64 {
        let mut word = [0; 8];
        File::open(&self.words).and_then(|file| file.read_exact_at(&mut word, 8)).expect("a word");
        u64::from_ne_bytes(word)
    }

    /// Makes a request during which the allocation at `place` fails, and checks the data. Returns `true` if an
    /// allocation failed.
    fn fail(&mut self, what: What, place: usize) -> bool {
        self.prepare(what);
        let before = self.failed();
        self.set(place);
        let (outcome, mut tally) = self.request(what);
        self.set(0);
        let hit = self.failed() > before;
        let unanswered = tally.statuses.contains_key(&0);
        let ended = self.ended(unanswered);
        let is_late = !hit && self.may_abort && matches!(ended, Some(Ok(())));
        if outcome == Written::Refused && !is_late {
            tally.wrong.push(format!("{what:?} was refused"));
        }
        match outcome {
            Written::Done => self.acknowledged += 1,
            Written::Refused | Written::Indeterminate => self.refused += 1,
        }
        for wrong in std::mem::take(&mut tally.wrong) {
            self.rig.lose(format!("{what:?} at allocation {place}: {wrong}"));
        }
        self.rig.report.tally.add(tally);
        self.may_abort = hit && ended.is_none();
        if hit {
            let (hits, ends) = self.hit.entry(what).or_default();
            *hits += 1;
            *ends += usize::from(ended.is_some());
        }
        match ended {
            None if unanswered => {
                self.rig.lose(format!("{what:?} at allocation {place}: no answer, and the service continues"));
            }
            None => {}
            Some(Ok(())) if hit || is_late => self.serve(),
            Some(how) => {
                self.rig.lose(format!("{what:?} at allocation {place}: the service ended, {how:?}"));
                self.serve();
            }
        }
        self.rig.check();
        hit
    }

    /// Returns `None` if the service runs. An exited service is valid if it aborted because of a failed allocation and
    /// reported it.
    fn ended(&mut self, unanswered: bool) -> Option<Result<(), String>> {
        let server = self.rig.server.as_mut().expect("its server runs");
        let started = Instant::now();
        while unanswered && server.is_alive() && started.elapsed() < ENDING {
            std::thread::sleep(Duration::from_millis(5));
        }
        if server.is_alive() {
            return None;
        }
        let status = self.rig.server.take().expect("its server ran").status();
        let log = self.rig.vault.log();
        let last = log.lines().rev().find(|line| line.contains("memory allocation of"));
        Some(match (status.signal(), last) {
            (Some(ABORTED), Some(_)) => Ok(()),
            _ => Err(format!("{status}: {}", log.lines().rev().take(5).collect::<Vec<_>>().join(" / "))),
        })
    }

    /// Creates the data that a request needs.
    fn prepare(&mut self, what: What) {
        let client = self.rig.client();
        let mut tally = Tally::default();
        if what == What::Login {
            self.rig.workers.logins.refill(&self.rig.vault);
        } else {
            let worker = &mut self.rig.workers.writers[0];
            worker.clear(MOST, &client, &self.rig.log, &mut tally);
            if worker.expected().is_empty() {
                worker.make(Act::Save, &client, &self.rig.log, &mut tally);
            }
        }
        self.rig.report.losses.append(&mut tally.wrong);
        self.rig.report.tally.add(tally);
    }

    fn request(&mut self, what: What) -> (Written, Tally) {
        let client = self.rig.client();
        let mut tally = Tally::default();
        let act = match what {
            What::Save => Act::Save,
            What::Replace => Act::Replace,
            What::Delete => Act::Delete,
            What::Login => {
                let outcome = self.rig.workers.logins.log_in_and_out(&client, &self.rig.log, &mut tally);
                return (outcome, tally);
            }
            What::Activation => {
                let started = Instant::now();
                let answer = self.rig.try_activation();
                let outcome = tally.count(&answer, started.elapsed());
                return (outcome, tally);
            }
        };
        let outcome = self.rig.workers.writers[0].make(act, &client, &self.rig.log, &mut tally);
        (outcome.expect("there is a credential"), tally)
    }

    fn finish(mut self) -> Outcome {
        if self.may_abort {
            drop(self.rig.server.take());
            self.serve();
        }
        let exported = self.rig.vault.run(&["audit", "list", "--json-lines"]).done().stdout;
        match self.rig.listed() {
            Ok(listed) => self.rig.report.losses.extend(half_done(&listed, &exported)),
            Err(answer) => self.rig.lose(format!("the list cannot be read: {answer:?}")),
        }
        for (what, (hit, ended)) in std::mem::take(&mut self.hit) {
            let figure = format!("{hit}, the service ended at {ended}");
            self.rig.report.figure(&format!("{what:?}, allocations that failed"), figure);
        }
        self.rig.report.figure("requests acknowledged all the same", self.acknowledged);
        self.rig.report.figure("requests not acknowledged", self.refused);
        self.rig.finish()
    }
}

/// Returns credentials without the audit entries of their changes, and audit entries without their changes.
fn half_done(listed: &[Value], exported: &str) -> Vec<String> {
    let mut reported: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for line in exported.lines() {
        let entry: Value = serde_json::from_str(line).expect("an entry");
        let subject = entry["subject"].as_str().and_then(|subject| subject.strip_prefix("credential:"));
        if let (Some(id), Some(action)) = (subject, entry["action"].as_str()) {
            *reported.entry(id.to_owned()).or_default().entry(action.to_owned()).or_default() += 1;
        }
    }
    let mut losses = Vec::new();
    for item in listed {
        let reported = reported.remove(item["id"].as_str().expect("an id")).unwrap_or_default();
        let count = |action: &str| reported.get(action).copied().unwrap_or_default();
        let (saved, replaced, deleted) =
            (count("credential.saved"), count("credential.replaced"), count("credential.deleted"));
        if (saved, deleted) != (1, 0) || item["version"].as_u64() != Some(1 + replaced) {
            losses.push(format!("{item}: audited {saved} saves, {replaced} replacements, {deleted} deletions"));
        }
    }
    for (id, reported) in reported {
        if reported.get("credential.deleted") != Some(&1) {
            losses.push(format!("{id} is not there, and the audit has {reported:?}"));
        }
    }
    losses
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn half_done_operations_are_detected() {
        let entry =
            |id: &str, what: &str| format!("{}\n", json!({"subject": format!("credential:{id}"), "action": what}));
        let saved = |id| entry(id, "credential.saved");
        let listed = [json!({"id": "a", "version": 2}), json!({"id": "b", "version": 1})];
        let whole =
            [saved("a"), saved("b"), saved("c"), entry("a", "credential.replaced"), entry("c", "credential.deleted")];
        assert_eq!(half_done(&listed, &whole.concat()), Vec::<String>::new());
        for missing in 0..whole.len() {
            let left: Vec<_> =
                whole.iter().enumerate().filter(|(n, _)| *n != missing).map(|(_, line)| &**line).collect();
            // A deletion alone can belong to a credential that was saved before the exported entries.
            let found = half_done(&listed, &left.concat()).len();
            assert_eq!(found, usize::from(missing != 2), "without line {missing}");
        }
        assert_eq!(half_done(&listed[..1], &whole.concat()).len(), 1);
    }
}
