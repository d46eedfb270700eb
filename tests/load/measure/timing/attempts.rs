//! Sequential logins and the response time of each rejection.

use crate::client::{Answer, Next, Verdict, Workload, run};
use crate::measure::{Ground, evaluate};
use crate::metrics::Metrics;
use crate::{Result, request};
use std::net::SocketAddr;
use std::time::Instant;

/// A login of one of the compared kinds.
pub(super) struct Attempt {
    kind: usize,
    request: Vec<u8>,
}

impl Attempt {
    /// Creates a login with this body.
    pub(super) fn new(kind: usize, address: SocketAddr, body: &str) -> Self {
        Self { kind, request: request::login(address, body) }
    }
}

/// Attempts in a given order on one connection.
struct Attempts<'a> {
    attempts: &'a [Attempt],
    /// The remaining attempts, last first.
    order: Vec<usize>,
    /// The first request on the connection, so that no attempt opens it.
    greeting: Option<Vec<u8>>,
    asked: Option<(usize, Instant)>,
    times: Vec<(usize, f64)>,
}

impl<'a> Attempts<'a> {
    fn new(address: SocketAddr, attempts: &'a [Attempt], order: Vec<usize>) -> Self {
        let times = Vec::with_capacity(order.len());
        let greeting = Some(request::get(address, "/readyz"));
        Self { attempts, order, greeting, asked: None, times }
    }
}

impl Workload for Attempts<'_> {
    fn next(&mut self, _slot: usize, request: &mut Vec<u8>, _now: Instant) -> Next {
        if let Some(greeting) = self.greeting.take() {
            *request = greeting;
            return Next::Ask;
        }
        let Some(attempt) = self.order.pop().map(|place| &self.attempts[place]) else { return Next::End };
        request.extend_from_slice(&attempt.request);
        // Start the clock after the request is built.
        self.asked = Some((attempt.kind, Instant::now()));
        Next::Ask
    }

    fn answered(&mut self, _slot: usize, answer: &Answer<'_>) -> Verdict {
        let now = Instant::now();
        let Some((kind, asked)) = self.asked.take() else { return evaluate(answer, 200) };
        self.times.push((kind, now.duration_since(asked).as_secs_f64() * 1000.0));
        evaluate(answer, 401)
    }
}

/// Results of attempts.
pub(super) struct Taken {
    /// Kind and response time, in milliseconds, of each attempt.
    pub(super) times: Vec<(usize, f64)>,
    before: Metrics,
    after: Metrics,
}

impl Taken {
    /// Sends these attempts in this order, last first.
    pub(super) fn take(ground: &Ground<'_>, attempts: &[Attempt], order: Vec<usize>) -> Result<Self> {
        let mut workload = Attempts::new(ground.server.address, attempts, order);
        let before = Metrics::read(ground.server)?;
        run(&ground.to_the_end(1), &mut workload)?;
        Ok(Self { times: workload.times, before, after: Metrics::read(ground.server)? })
    }

    /// Returns the number of passwords that were compared with a stored hash.
    pub(super) fn evaluations(&self) -> u64 {
        self.after.evaluations() - self.before.evaluations()
    }

    /// Returns the number of logins with this outcome.
    pub(super) fn logins(&self, outcome: &str) -> u64 {
        self.after.logins(outcome) - self.before.logins(outcome)
    }
}
