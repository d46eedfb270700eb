//! Unlimited logins of accounts and of unknown addresses.

use crate::account::{Account, wrong_login};
use crate::client::{Answer, Next, Verdict, Workload};
use crate::measure::evaluate;
use crate::measure::pool::Pool;
use crate::request;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Length of the passwords of unknown addresses, which is that of generated passwords.
const PASSWORD_LENGTH: usize = 24;

/// On every other connection an account logs in if it has an unused code. All other connections use unknown addresses,
/// each of them once.
pub(super) struct Logins<'a> {
    address: SocketAddr,
    pool: Pool<'a>,
    strangers: &'a mut u64,
    connections: usize,
    /// `true` if a throttled connection waits for the returned time, `false` if it retries immediately.
    waits: bool,
    /// Number of responses by status.
    pub(super) statuses: BTreeMap<u16, u64>,
}

impl<'a> Logins<'a> {
    /// Creates the logins of one round. `strangers` counts the used addresses.
    pub(super) fn new(
        address: SocketAddr,
        connections: usize,
        waits: bool,
        accounts: &'a mut [Account],
        strangers: &'a mut u64,
    ) -> Self {
        let pool = Pool::new(accounts, connections);
        Self { address, pool, strangers, connections, waits, statuses: BTreeMap::new() }
    }

    fn stranger(&mut self) -> String {
        *self.strangers += 1;
        wrong_login(&format!("stranger-{}@example.com", self.strangers), PASSWORD_LENGTH)
    }
}

impl Workload for Logins<'_> {
    fn next(&mut self, slot: usize, request: &mut Vec<u8>, _now: Instant) -> Next {
        // Try one account only, because a storm asks often. Codes become available with time.
        let account = if slot.is_multiple_of(2) { self.pool.ask(slot, 1) } else { None };
        let login = account.unwrap_or_else(|| self.stranger());
        *request = request::login(self.address, &login);
        Next::Ask
    }

    fn answered(&mut self, slot: usize, answer: &Answer<'_>) -> Verdict {
        *self.statuses.entry(answer.status).or_default() += 1;
        let verdict = match evaluate(answer, 200) {
            Verdict::Throttled(_) if !self.waits => Verdict::Throttled(Duration::ZERO),
            // Wait up to twice the required time: all were throttled at the same moment and should not return at the
            // same moment.
            Verdict::Throttled(wait) => Verdict::Throttled(wait.mul_f64(1.0 + slot as f64 / self.connections as f64)),
            Verdict::Bad if answer.status == 401 => Verdict::Good,
            verdict => verdict,
        };
        self.pool.settle(slot, !matches!(verdict, Verdict::Throttled(_)));
        verdict
    }

    fn lost(&mut self, slot: usize) {
        self.pool.settle(slot, true);
    }
}
