//! The measurements, with one file per subject.

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

/// The environment of a measurement.
pub(crate) struct Ground<'a> {
    /// The options of the program.
    pub(crate) options: &'a Options,
    pub(crate) vault: &'a Vault,
    pub(crate) server: &'a Server,
    /// The references that bound the results.
    pub(crate) references: &'a References,
    /// The database server, or `None` for the embedded database.
    pub(crate) cluster: Option<&'a Cluster>,
}

impl Ground<'_> {
    /// Returns `true` if the vault uses the embedded database.
    fn embedded(&self) -> bool {
        self.cluster.is_none()
    }

    /// Analyses the tables, which PostgreSQL does automatically within a minute of many changes. Until then it plans
    /// for nearly empty tables.
    fn analyse(&self) {
        if let (Some(cluster), Some(url)) = (self.cluster, &self.vault.database_url) {
            cluster.execute(url, "ANALYZE");
        }
    }

    /// Returns the plan of one round.
    fn round(&self, connections: usize) -> Plan {
        let length = Length::For { warm_up: Duration::from_millis(300), counted: self.options.round() };
        Plan { length, ..self.to_the_end(connections) }
    }

    /// Returns the plan of a load that ends when its workload has no more requests.
    fn to_the_end(&self, connections: usize) -> Plan {
        let watched = self.server.watched().to_vec();
        Plan { address: self.server.address, connections, length: Length::UntilEnd, watched }
    }
}

/// Sends one request repeatedly. A rejected request is repeated immediately.
struct Flood {
    request: Vec<u8>,
    /// The expected status of the responses.
    expected_status: u16,
}

impl Flood {
    /// Runs `of` while the flood runs on `plan`. Returns the result of `of` and the sample of the flood.
    fn under_load(&mut self, plan: &Plan, of: impl FnOnce() -> Result<Sample>) -> Result<(Sample, Sample)> {
        thread::scope(|scope| {
            // Errors cross threads as text because they are not `Send`.
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
        match evaluate(answer, self.expected_status) {
            Verdict::Throttled(_) => Verdict::Throttled(Duration::ZERO),
            verdict => verdict,
        }
    }
}

/// Classifies a response that should have the status `expected_status`.
fn evaluate(answer: &Answer<'_>, expected_status: u16) -> Verdict {
    match answer.status {
        status if status == expected_status => Verdict::Good,
        429 | 503 => {
            let seconds = answer.header("retry-after").and_then(|text| text.parse().ok()).unwrap_or(1);
            Verdict::Throttled(Duration::from_secs(seconds))
        }
        _ => Verdict::Bad,
    }
}

/// Returns the mean rate of the rounds of a reference.
fn mean(rates: &[f64]) -> Result<f64> {
    if rates.is_empty() {
        return Err("a reference without a round".into());
    }
    Ok(rates.iter().sum::<f64>() / rates.len() as f64)
}
