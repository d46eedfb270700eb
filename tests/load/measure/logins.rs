//! Logins with password and passcode. Each code is used once.

use super::pool::Pool;
use super::{Ground, evaluate, mean};
use crate::account::{Account, LOGINS};
use crate::client::{Answer, Next, Sample, Verdict, Workload, run};
use crate::report::{Bound, Rate, Report, Target};
use crate::{Result, note, request};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Upper limit of the expected logins per second.
const MOST_LOGINS: u64 = 120;
/// Time that a connection waits if no account has an unused code.
const DROUGHT: Duration = Duration::from_millis(100);

struct Logins<'a> {
    address: SocketAddr,
    pool: Pool<'a>,
    /// `true` if the codes ran out, which makes the rate meaningless.
    drought: bool,
}

impl<'a> Logins<'a> {
    fn new(address: SocketAddr, accounts: &'a mut [Account], connections: usize) -> Self {
        Self { address, pool: Pool::new(accounts, connections), drought: false }
    }
}

impl Workload for Logins<'_> {
    fn next(&mut self, slot: usize, request: &mut Vec<u8>, now: Instant) -> Next {
        let Some(login) = self.pool.ask(slot, usize::MAX) else {
            self.drought = true;
            return Next::Wait(now + DROUGHT);
        };
        *request = request::login(self.address, &login);
        Next::Ask
    }

    fn answered(&mut self, slot: usize, answer: &Answer<'_>) -> Verdict {
        let verdict = evaluate(answer, 200);
        self.pool.settle(slot, !matches!(verdict, Verdict::Throttled(_)));
        verdict
    }

    fn lost(&mut self, slot: usize) {
        self.pool.settle(slot, true);
    }
}

/// Measures logins between rounds of only the hash, on as many threads as can be busy.
pub(crate) fn logins(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    let options = ground.options;
    let most = options.connections.iter().copied().max().unwrap_or(1);
    let wanted = options.seconds * MOST_LOGINS * options.connections.len() as u64;
    let count = (usize::try_from(wanted)? / LOGINS).max(most) + 16;
    note(&format!("making {count} accounts"));
    ground.vault.run(&["org", "create", "Logins"])?;
    let mut accounts = Account::create_many(ground.vault, "Logins", count)?;
    let cores = std::thread::available_parallelism()?.get();
    for connections in options.connections.iter().copied() {
        let plan = ground.round(connections);
        let mut sample = Sample::empty()?;
        let (mut rates, mut costs) = (Vec::new(), Vec::new());
        let mut drought = false;
        for _ in 0..options.rounds {
            let mut workload = Logins::new(plan.address, &mut accounts, connections);
            sample.add(run(&plan, &mut workload)?)?;
            drought |= workload.drought;
            let (rate, cost) = ground.references.hashes(connections.min(cores), options.round())?;
            rates.push(rate);
            costs.push(cost);
        }
        let hashes = mean(&rates)?;
        let target = (connections == 64).then(|| Target::new("≥ 0.95 of argon2id", sample.rate() >= 0.95 * hashes));
        let what = if drought { "login (codes ran out)" } else { "login" }.to_owned();
        let references = vec![Bound { cost: Some(mean(&costs)?), ..Bound::new("argon2id", hashes) }];
        report.rate(Rate { what, connections, sample, references, target });
    }
    Ok(())
}
