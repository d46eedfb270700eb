//! Deletes.

use super::saves::{Id, fill};
use super::{Ground, evaluate, mean};
use crate::Result;
use crate::account::Organization;
use crate::client::{Answer, Next, Sample, Verdict, Workload, run};
use crate::report::{Bound, Rate, Report};
use crate::request::Template;
use crate::shuffle::Shuffler;
use std::time::{Duration, Instant};

/// The number of credentials to create allows for this number of deletes per second.
const RATES: [(usize, u64); 2] = [(1, 6_000), (usize::MAX, 30_000)];
/// Limits the time to create credentials, as a multiple of the measured time: deletes are not much faster than saves.
const FILLING: u64 = 4;

struct Deletes {
    template: Template,
    ids: Vec<Id>,
}

impl Workload for Deletes {
    fn next(&mut self, _slot: usize, request: &mut Vec<u8>, _now: Instant) -> Next {
        let Some(id) = self.ids.pop() else { return Next::End };
        self.template.write(&id, request);
        Next::Ask
    }

    fn answered(&mut self, _slot: usize, answer: &Answer<'_>) -> Verdict {
        evaluate(answer, 204)
    }
}

/// Measures deletes in random order, neither oldest nor newest first. On the embedded database, the rounds alternate
/// with rounds of a loop that deletes the same rows and of a loop that saves them.
pub(crate) fn deletes(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    let organization = Organization::create(ground.vault, ground.server, "Deletes")?;
    let mut shuffler = Shuffler::new();
    for connections in ground.options.connections.iter().copied() {
        let rate = RATES.iter().find(|(most, _)| connections <= *most).map_or(0, |(_, rate)| *rate);
        let count = rate * ground.options.seconds;
        let patience = Duration::from_secs(FILLING * ground.options.seconds);
        let mut ids = fill(ground, &organization, count, patience, true)?.ids;
        shuffler.shuffle(&mut ids);
        let plan = ground.round(connections);
        let mut workload = Deletes { template: Template::delete(plan.address, &organization.token), ids };
        let (mut sample, rows) = (Sample::empty()?, workload.ids.len());
        let (mut loop_rates, mut save_rates) = (Vec::new(), Vec::new());
        for _ in 0..ground.options.rounds {
            if !workload.ids.is_empty() {
                sample.add(run(&plan, &mut workload)?)?;
            }
            if ground.embedded() {
                loop_rates.push(ground.references.delete_rate(connections, rows, ground.options.round())?);
                save_rates.push(ground.references.save_rate(connections, ground.options.round())?);
            }
        }
        let mut references = Vec::new();
        if ground.embedded() {
            references.push(Bound::new("bare loop", mean(&loop_rates)?));
            references.push(Bound::new("bare loop of saves", mean(&save_rates)?));
        }
        report.rate(Rate { what: "delete".to_owned(), connections, sample, references, target: None });
    }
    Ok(())
}
