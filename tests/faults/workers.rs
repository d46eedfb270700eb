//! The clients and the responses to their requests.

use crate::ledger::Outcome;
use crate::log::AckLog;
use crate::login_client::LoginClient;
use crate::shared::{Shared, Sharer};
use crate::worker::Worker;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use vault_tests::{Answer, Client};

/// Pause of a client after a request without a response.
const PAUSE: Duration = Duration::from_millis(10);

/// Counts of the responses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// Acknowledged writes.
    pub(crate) done: u64,
    /// Writes that were rejected without effect.
    pub(crate) refused: u64,
    /// Writes with unknown outcome.
    pub(crate) indeterminate: u64,
    /// Responses by status. 0 represents a missing response.
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// The slowest response.
    pub(crate) slowest: Duration,
    /// Time of the last acknowledgement.
    pub(crate) last_done: Option<Instant>,
    /// Longest time between two acknowledgements of one client, or from its start to its first acknowledgement.
    pub(crate) longest_gap: Duration,
    /// Responses that must never occur.
    pub(crate) wrong: Vec<String>,
}

impl Tally {
    /// Counts the response to a write and returns the outcome of the write.
    pub(crate) fn count(&mut self, answer: &Result<Answer, String>, took: Duration) -> Outcome {
        self.slowest = self.slowest.max(took);
        let status = answer.as_ref().map_or(0, |answer| answer.status);
        *self.statuses.entry(status).or_default() += 1;
        if let Ok(answer) = answer {
            let retry_after = answer.header("retry-after").is_some();
            match status {
                200..300 | 429 => {}
                503 if retry_after => {}
                503 => self.wrong.push(format!("503 without Retry-After: {answer:?}")),
                _ => self.wrong.push(format!("{status}: {}", answer.text())),
            }
        }
        match status {
            200..300 => {
                let now = Instant::now();
                if let Some(last) = self.last_done.replace(now) {
                    self.longest_gap = self.longest_gap.max(now.duration_since(last));
                }
                self.done += 1;
                Outcome::Done
            }
            400..500 => {
                self.refused += 1;
                Outcome::Refused
            }
            // A request that was never sent has no effect.
            0 if answer.as_ref().is_err_and(|error| error.contains("Connection refused")) => {
                self.refused += 1;
                Outcome::Refused
            }
            _ => {
                self.indeterminate += 1;
                Outcome::Indeterminate
            }
        }
    }

    /// Adds the counts of `other`.
    pub(crate) fn add(&mut self, other: Self) {
        self.done += other.done;
        self.refused += other.refused;
        self.indeterminate += other.indeterminate;
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        self.slowest = self.slowest.max(other.slowest);
        self.longest_gap = self.longest_gap.max(other.longest_gap);
        self.wrong.extend(other.wrong);
    }
}

/// All clients of a vault.
pub(crate) struct Workers {
    pub(crate) writers: Vec<Worker>,
    pub(crate) logins: LoginClient,
    /// The clients that share credentials, in faults that use them.
    pub(crate) sharers: Vec<Sharer>,
    pub(crate) shared: Option<Shared>,
    /// Time limit of requests, if it differs from the default.
    pub(crate) patience: Option<Duration>,
}

/// Stops the clients on drop, even if the code that they wait for panics.
pub(crate) struct Stop<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Workers {
    /// Runs the clients on `servers` while `disturbance` runs.
    pub(crate) fn work<T>(
        &mut self,
        servers: &[SocketAddr],
        log: &AckLog,
        disturbance: impl FnOnce() -> T,
    ) -> (T, Tally) {
        let (stop, last, patience) = (AtomicBool::new(false), self.writers.len(), self.patience);
        thread::scope(|scope| {
            let mut clients = Vec::new();
            for (number, worker) in self.writers.iter_mut().enumerate() {
                let mut turn = Turn::new(servers, number, patience);
                let stop = &stop;
                clients.push(scope.spawn(move || {
                    let mut tally = Tally { last_done: Some(Instant::now()), ..Tally::default() };
                    while !stop.load(Ordering::Relaxed) {
                        turn.took(worker.write(turn.client(), log, &mut tally));
                    }
                    tally
                }));
            }
            if let Some(shared) = self.shared.as_ref().filter(|shared| shared.is_ready()) {
                for (number, sharer) in self.sharers.iter_mut().enumerate() {
                    let (mut turn, stop) = (Turn::new(servers, number, patience), &stop);
                    clients.push(scope.spawn(move || {
                        let mut tally = Tally::default();
                        while !stop.load(Ordering::Relaxed) {
                            turn.took(sharer.act(shared, turn.client(), log, &mut tally));
                        }
                        tally
                    }));
                }
            }
            let (logins, mut turn, stopped) = (&mut self.logins, Turn::new(servers, last, patience), &stop);
            clients.push(scope.spawn(move || {
                let mut tally = Tally::default();
                while !stopped.load(Ordering::Relaxed) && logins.has_codes() {
                    turn.took(logins.log_in_and_out(turn.client(), log, &mut tally));
                }
                tally
            }));
            let stopping = Stop(&stop);
            let outcome = disturbance();
            drop(stopping);
            let mut all = Tally::default();
            for client in clients {
                all.add(client.join().unwrap());
            }
            log.sync();
            (outcome, all)
        })
    }
}

/// Chooses the server of a client. A client switches to the next one after a missing response or a response that the
/// server cannot do it.
struct Turn {
    clients: Vec<Client>,
    place: usize,
}

impl Turn {
    fn new(servers: &[SocketAddr], number: usize, patience: Option<Duration>) -> Self {
        let client = |address: &SocketAddr| match patience {
            Some(longest) => Client::impatient(*address, longest),
            None => Client::new(*address),
        };
        Self { clients: servers.iter().map(client).collect(), place: number % servers.len() }
    }

    fn client(&self) -> &Client {
        &self.clients[self.place]
    }

    fn took(&mut self, outcome: Outcome) {
        if outcome != Outcome::Done {
            self.place = (self.place + 1) % self.clients.len();
            thread::sleep(PAUSE);
        }
    }
}
