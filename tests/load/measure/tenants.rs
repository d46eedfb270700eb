//! Concurrent saves in many organizations, and saves of one organization during load of another.

use super::saves::Saves;
use super::{Ground, evaluate};
use crate::Result;
use crate::account::Organization;
use crate::client::{Answer, Next, Plan, Sample, Verdict, Workload, run};
use crate::report::{Bound, Rate, Report, Target};
use crate::request::Template;
use std::net::SocketAddr;
use std::thread;
use std::time::Instant;

/// Up to this number of organizations, each connection saves in one organization.
const SHARED: usize = 256;
/// Distance between consecutive organizations of a connection.
const STEP: usize = 7_919;
/// Number of organizations that save concurrently.
const ORGANIZATIONS: usize = 64;
/// Number of connections of each of two organizations that save concurrently.
const EACH: usize = 32;

/// Distributes the requests over the organizations, round-robin if there are more organizations than connections.
pub(super) struct Spread {
    saves: Vec<Saves>,
    /// The next organization of each connection.
    turns: Vec<usize>,
}

impl Spread {
    /// Creates an unlimited load of saves in all of these organizations.
    pub(super) fn endless(address: SocketAddr, organizations: &[Organization]) -> Self {
        let saves = organizations.iter().map(|one| Saves::endless(address, &one.token)).collect();
        Self { saves, turns: Vec::new() }
    }

    fn of(&mut self, slot: usize) -> &mut Saves {
        let place = self.turns[slot] % self.saves.len();
        &mut self.saves[place]
    }
}

impl Workload for Spread {
    fn next(&mut self, slot: usize, request: &mut Vec<u8>, now: Instant) -> Next {
        while self.turns.len() <= slot {
            self.turns.push(self.turns.len());
        }
        // No number of organizations in use divides the step, so all of them are used.
        self.turns[slot] += if self.saves.len() > SHARED { STEP } else { 0 };
        self.of(slot).next(slot, request, now)
    }

    fn answered(&mut self, slot: usize, answer: &Answer<'_>) -> Verdict {
        self.of(slot).answered(slot, answer)
    }
}

/// Saves with an idempotency key that an earlier request has used for other data. The store rejects each of them.
struct Refused(Saves);

impl Workload for Refused {
    fn next(&mut self, slot: usize, request: &mut Vec<u8>, now: Instant) -> Next {
        self.0.next(slot, request, now)
    }

    fn answered(&mut self, _slot: usize, answer: &Answer<'_>) -> Verdict {
        evaluate(answer, 422)
    }
}

/// Measures saves in many organizations and saves of one organization during load of another.
pub(crate) fn tenants(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    let one = Organization::create(ground.vault, ground.server, "One")?;
    spread(ground, &one, report)?;
    under_load(ground, &one, report)
}

fn spread(ground: &Ground<'_>, one: &Organization, report: &mut Report) -> Result<()> {
    let address = ground.server.address;
    let organizations = (1..=ORGANIZATIONS)
        .map(|number| Organization::create(ground.vault, ground.server, &format!("Of{ORGANIZATIONS}-{number}")))
        .collect::<Result<Vec<_>>>()?;
    let mut many = Spread::endless(address, &organizations);
    for connections in ground.options.connections.iter().copied() {
        let plan = ground.round(connections);
        let (mut sample, mut alone) = (Sample::empty()?, Sample::empty()?);
        for _ in 0..ground.options.rounds {
            sample.add(run(&plan, &mut many)?)?;
            alone.add(run(&plan, &mut Saves::endless(address, &one.token))?)?;
        }
        let what = format!("save in {ORGANIZATIONS} organizations");
        let references = vec![Bound::new("one organization", alone.rate())];
        report.rate(Rate { what, connections, sample, references, target: None });
    }
    Ok(())
}

/// Measures saves of one organization while those of another are all rejected, and while they all succeed.
fn under_load(ground: &Ground<'_>, one: &Organization, report: &mut Report) -> Result<()> {
    let other = Organization::create(ground.vault, ground.server, "Other")?;
    let plan = ground.round(EACH);
    let (mut refused, mut made, mut refusals) = (Sample::empty()?, Sample::empty()?, Sample::empty()?);
    for _ in 0..ground.options.rounds {
        let other_saves = || Saves::endless(plan.address, &other.token);
        made.add(side_by_side(&plan, &one.token, other_saves())?.0)?;
        let template = Template::save_under_one_key(plan.address, &other.token);
        let (saved, neighbours) = side_by_side(&plan, &one.token, Refused(Saves::endless_of(template)))?;
        refused.add(saved)?;
        refusals.add(neighbours)?;
    }
    let (rate, required) = (refused.rate(), 0.9 * made.rate());
    let target = Target::new("≥ 0.9 of rate next to accepted saves", rate >= required);
    let references = vec![Bound::new("during saves", made.rate()), Bound::new("refusals", refusals.rate())];
    let what = "save during refused saves of another organization".to_owned();
    report.rate(Rate { what, connections: EACH, sample: refused, references, target: Some(target) });
    Ok(())
}

/// Runs saves of one organization concurrently with `other`. Returns both samples.
fn side_by_side(plan: &Plan, token: &str, mut other: impl Workload + Send) -> Result<(Sample, Sample)> {
    thread::scope(|scope| {
        // Errors cross threads as text because they are not `Send`.
        let neighbour = scope.spawn(|| run(plan, &mut other).map_err(|error| error.to_string()));
        let saved = run(plan, &mut Saves::endless(plan.address, token))?;
        let concurrent = neighbour.join().map_err(|_| "the other's load panicked")??;
        Ok((saved, concurrent))
    })
}
