//! What is measured, one file per subject.

mod activations;
mod cold;
mod commands;
mod console;
mod deletes;
mod fairness;
mod growth;
mod life;
mod lists;
mod logins;
mod pool;
mod receivers;
mod rotation;
mod saves;
mod storm;
mod tenants;
mod timing;

pub(crate) use activations::activations;
pub(crate) use cold::cold_start;
pub(crate) use commands::commands;
pub(crate) use console::console;
pub(crate) use deletes::deletes;
pub(crate) use fairness::fairness;
pub(crate) use growth::growth;
pub(crate) use life::life;
pub(crate) use lists::lists;
pub(crate) use logins::logins;
pub(crate) use receivers::receivers;
pub(crate) use rotation::rotation;
pub(crate) use saves::saves;
pub(crate) use storm::storm;
pub(crate) use tenants::tenants;
pub(crate) use timing::timing;

use crate::Result;
use crate::client::{Answer, Length, Next, Plan, Sample, Verdict, Workload, run};
use crate::options::Options;
use crate::reference::References;
use crate::vault::{Server, Vault};
use std::thread;
use std::time::{Duration, Instant};
use vault_testkit::postgres::Cluster;

/// What a measurement has to work with.
pub(crate) struct Ground<'a> {
    /// What was asked for.
    pub(crate) options: &'a Options,
    /// The vault.
    pub(crate) vault: &'a Vault,
    /// Its server.
    pub(crate) server: &'a Server,
    /// What bounds the figures.
    pub(crate) references: &'a References,
    /// Where the vault lies, if not in the embedded file.
    pub(crate) cluster: Option<&'a Cluster>,
}

impl Ground<'_> {
    /// Whether the vault lies in the embedded file.
    fn embedded(&self) -> bool {
        self.cluster.is_none()
    }

    /// Has PostgreSQL look at the tables, as it does by itself within a minute of many changes. Until then it plans for
    /// tables that are nearly empty.
    fn analyse(&self) {
        if let (Some(cluster), Some(url)) = (self.cluster, &self.vault.database_url) {
            cluster.execute(url, "ANALYZE");
        }
    }

    /// The plan of one round.
    fn round(&self, connections: usize) -> Plan {
        let length = Length::For { warm_up: Duration::from_millis(300), counted: self.options.round() };
        Plan { length, ..self.to_the_end(connections) }
    }

    /// The plan of a load that has an end of its own.
    fn to_the_end(&self, connections: usize) -> Plan {
        let watched = self.server.watched().to_vec();
        Plan { address: self.server.address, connections, length: Length::UntilEnd, watched }
    }
}

/// One request, again and again. What is turned away is asked again at once.
struct Flood {
    request: Vec<u8>,
    /// The status of its answers.
    wished: u16,
}

impl Flood {
    /// Measures by `of` while the flood runs on `plan`; gives the sample of the flood, too.
    fn beside(&mut self, plan: &Plan, of: impl FnOnce() -> Result<Sample>) -> Result<(Sample, Sample)> {
        thread::scope(|scope| {
            // Its error crosses threads as text.
            let flood = scope.spawn(|| run(plan, self).map_err(|error| error.to_string()));
            thread::sleep(Duration::from_millis(200));
            let sample = of()?;
            Ok((sample, flood.join().map_err(|_| "the flood panicked")??))
        })
    }
}

impl Workload for Flood {
    fn next(&mut self, _slot: usize, request: &mut Vec<u8>, _now: Instant) -> Next {
        request.extend_from_slice(&self.request);
        Next::Ask
    }

    fn answered(&mut self, _slot: usize, answer: &Answer<'_>) -> Verdict {
        match judge(answer, self.wished) {
            Verdict::Throttled(_) => Verdict::Throttled(Duration::ZERO),
            verdict => verdict,
        }
    }
}

/// What an answer means that should have had the status `wished`.
fn judge(answer: &Answer<'_>, wished: u16) -> Verdict {
    match answer.status {
        status if status == wished => Verdict::Good,
        429 | 503 => {
            let seconds = answer.header("retry-after").and_then(|text| text.parse().ok()).unwrap_or(1);
            Verdict::Throttled(Duration::from_secs(seconds))
        }
        _ => Verdict::Bad,
    }
}

/// The mean of what the rounds of a reference came to.
fn mean(rates: &[f64]) -> Result<f64> {
    if rates.is_empty() {
        return Err("a reference without a round".into());
    }
    Ok(rates.iter().sum::<f64>() / rates.len() as f64)
}
