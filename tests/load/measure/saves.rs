//! Saves. Each is acknowledged when it is on disk.

use super::{Ground, evaluate, mean};
use crate::account::Organization;
use crate::client::{Answer, Next, Sample, Verdict, Workload, run};
use crate::report::{Bound, Rate, Report, Target, grouped};
use crate::request::Template;
use crate::{Result, note};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The ID of a credential, as text.
pub(super) type Id = [u8; 36];

/// A load of saves that all differ.
pub(super) struct Saves {
    template: Template,
    number: u32,
    /// Number of saves that remain, or `None` for no limit.
    left: Option<u64>,
    /// Time limit of the load.
    until: Option<Instant>,
    /// The IDs of the saved credentials, if they are collected.
    pub(super) ids: Option<Vec<Id>>,
}

impl Saves {
    /// Creates an unlimited load of saves.
    pub(super) fn endless(address: SocketAddr, token: &str) -> Self {
        Self::endless_of(Template::save(address, token))
    }

    /// Creates an unlimited load of saves with this request.
    pub(super) fn endless_of(template: Template) -> Self {
        Self { template, number: 0, left: None, until: None, ids: None }
    }

    /// Creates a load of `count` saves that is stopped after `patience`.
    fn counted(template: Template, count: u64, patience: Duration) -> Self {
        Self { template, number: 0, left: Some(count), until: Some(Instant::now() + patience), ids: None }
    }

    /// Returns `true` if all saves have been sent. Otherwise reserves the next one.
    fn has_ended(&mut self, now: Instant) -> bool {
        if self.until.is_some_and(|until| now >= until) {
            return true;
        }
        match &mut self.left {
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        }
    }

    /// Adds a save that replaces a failed one.
    fn again(&mut self) {
        if let Some(left) = &mut self.left {
            *left += 1;
        }
    }
}

impl Workload for Saves {
    fn next(&mut self, _slot: usize, request: &mut Vec<u8>, now: Instant) -> Next {
        if self.has_ended(now) {
            return Next::End;
        }
        self.number = self.number.wrapping_add(1);
        self.template.write_number(self.number, request);
        Next::Ask
    }

    fn answered(&mut self, _slot: usize, answer: &Answer<'_>) -> Verdict {
        let verdict = evaluate(answer, 201);
        match (&verdict, &mut self.ids) {
            (Verdict::Good, Some(ids)) => ids.extend(id(answer.body)),
            (Verdict::Good, None) => {}
            _ => self.again(),
        }
        verdict
    }

    fn lost(&mut self, _slot: usize) {
        self.again();
    }
}

/// Extracts the ID from the response to a save.
pub(super) fn id(body: &[u8]) -> Option<Id> {
    let name = br#""id":""#;
    let start = body.windows(name.len()).position(|window| window == name)? + name.len();
    body.get(start..start + 36)?.try_into().ok()
}

/// The result of filling an organization.
pub(super) struct Filled {
    /// Number of saved credentials.
    pub(super) count: u64,
    /// The IDs of the credentials, if they were collected.
    pub(super) ids: Vec<Id>,
}

/// Saves `count` credentials as fast as the server accepts them, or fewer if `patience` ends before.
pub(super) fn fill(
    ground: &Ground<'_>,
    organization: &Organization,
    count: u64,
    patience: Duration,
    ids: bool,
) -> Result<Filled> {
    let template = Template::save(ground.server.address, &organization.token);
    fill_with(ground, organization, template, count, patience, ids)
}

/// Fills an organization with saves of this request.
pub(super) fn fill_with(
    ground: &Ground<'_>,
    organization: &Organization,
    template: Template,
    count: u64,
    patience: Duration,
    ids: bool,
) -> Result<Filled> {
    let mut workload = Saves::counted(template, count, patience);
    workload.ids = ids.then(Vec::new);
    let connections = if count < 1_000 { 4 } else { 64 };
    let sample = run(&ground.to_the_end(connections), &mut workload)?;
    let (filled, rate) = (sample.count(), grouped(sample.rate()));
    note(&format!("filled {} with {filled} credentials at {rate}/s", organization.name));
    if sample.error_count() > 0 {
        return Err(format!("the fill had errors: {:?}", sample.errors).into());
    }
    ground.analyse();
    Ok(Filled { count: filled, ids: workload.ids.unwrap_or_default() })
}

/// Measures saves, between rounds of a loop that commits the same rows and of the minimal service.
pub(crate) fn saves(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    let organization = Organization::create(ground.vault, ground.server, "Saves")?;
    let service = ground.references.service(&ground.vault.database_processes)?;
    for connections in ground.options.connections.iter().copied() {
        let plan = ground.round(connections);
        let (mut sample, mut bare) = (Sample::empty()?, Sample::empty()?);
        let mut loop_rates = Vec::new();
        for _ in 0..ground.options.rounds {
            sample.add(run(&plan, &mut Saves::endless(plan.address, &organization.token))?)?;
            bare.add(service.measure(&plan, &mut Saves::endless(service.address, &service.token))?)?;
            loop_rates.push(ground.references.save_rate(connections, ground.options.round())?);
        }
        let references = vec![Bound::of("bare service", &bare), Bound::new("bare loop", mean(&loop_rates)?)];
        let target = match (ground.embedded(), connections) {
            (true, 64) => {
                let met = sample.rate() >= bare.rate() && sample.cost() <= 1.25 * bare.cost();
                Some(Target::new("≥ the bare service, ≤ 1.25 of its processor time", met))
            }
            (false, 64) => Some(Target::new("≥ 0.6 of the bare loop", sample.rate() >= 0.6 * mean(&loop_rates)?)),
            _ => None,
        };
        report.rate(Rate { what: "save".to_owned(), connections, sample, references, target });
    }
    Ok(())
}
