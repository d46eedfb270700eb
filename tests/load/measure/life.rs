//! Replacement of data, and lists by label.

use super::saves::{Id, Saves, fill_with};
use super::{Ground, evaluate, mean};
use crate::Result;
use crate::account::Organization;
use crate::client::{Answer, Next, Sample, Verdict, Workload, run};
use crate::report::{Bound, Rate, Report, Target, grouped};
use crate::request::{self, Template};
use std::time::{Duration, Instant};

/// Labels of a credential whose data is replaced.
const LABELS: &str = r#"{"team":"data","env":"production","tier":"1"}"#;
/// Number of credentials that are replaced, round-robin.
const REPLACED: u64 = 2_000;
/// Number of replacements after which each credential has the maximum number of versions.
const VERSIONS: usize = 5;
/// Time limit for creating the credentials of an organization. If it is exceeded, the organization has fewer.
const FILLING: Duration = Duration::from_secs(300);
/// Number of credentials that have both of two common labels.
const OVERLAP: u64 = 10;

/// Replaces the data of credentials, round-robin.
pub(super) struct Replacements {
    template: Template,
    ids: Vec<Id>,
    next: usize,
    /// Number of replacements that remain, or `None` for no limit.
    left: Option<usize>,
}

impl Replacements {
    /// Limits the number of replacements that remain.
    pub(super) fn left(&mut self, count: usize) {
        self.left = Some(count);
    }
}

impl Workload for Replacements {
    fn next(&mut self, _slot: usize, request: &mut Vec<u8>, _now: Instant) -> Next {
        if self.left == Some(0) {
            return Next::End;
        }
        self.left = self.left.map(|left| left - 1);
        let id = &self.ids[self.next % self.ids.len()];
        self.next += 1;
        self.template.write(id, request);
        Next::Ask
    }

    fn answered(&mut self, _slot: usize, answer: &Answer<'_>) -> Verdict {
        evaluate(answer, 201)
    }
}

/// Requests the same page repeatedly.
struct Page(Vec<u8>);

impl Workload for Page {
    fn next(&mut self, _slot: usize, request: &mut Vec<u8>, _now: Instant) -> Next {
        request.extend_from_slice(&self.0);
        Next::Ask
    }

    fn answered(&mut self, _slot: usize, answer: &Answer<'_>) -> Verdict {
        evaluate(answer, 200)
    }
}

/// Measures replacements and lists by label.
pub(crate) fn life(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    replacements(ground, report)?;
    labels(ground, report)
}

/// Measures replacements of credentials with three labels and five versions, between rounds of saves. On the embedded
/// database, also between rounds of a loop that replaces the same rows and of a loop that saves them.
fn replacements(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    let organization = Organization::create(ground.vault, ground.server, "Replacements")?;
    let address = ground.server.address;
    let mut workload = replacements_of(ground, &organization, REPLACED)?;
    let saving = Organization::create(ground.vault, ground.server, "DuringReplacements")?;
    for connections in ground.options.connections.iter().copied() {
        let plan = ground.round(connections);
        let (mut sample, mut saves, mut labelled) = (Sample::empty()?, Sample::empty()?, Sample::empty()?);
        let (mut loop_rates, mut save_rates) = (Vec::new(), Vec::new());
        for _ in 0..ground.options.rounds {
            sample.add(run(&plan, &mut workload)?)?;
            saves.add(run(&plan, &mut Saves::endless(address, &saving.token))?)?;
            let template = Template::save_labelled(address, &saving.token, LABELS);
            labelled.add(run(&plan, &mut Saves::endless_of(template))?)?;
            if ground.embedded() {
                loop_rates.push(ground.references.replacement_rate(connections, ground.options.round())?);
                save_rates.push(ground.references.save_rate(connections, ground.options.round())?);
            }
        }
        let (rate, save) = (sample.rate(), saves.rate());
        let target = (connections == 64).then(|| Target::new("≥ 0.8 of saves", rate >= 0.8 * save));
        let mut references = vec![Bound::new("save", save), Bound::new("save with labels", labelled.rate())];
        if ground.embedded() {
            references.push(Bound::new("bare loop", mean(&loop_rates)?));
            references.push(Bound::new("bare loop of saves", mean(&save_rates)?));
        }
        report.rate(Rate { what: "replace, 5 versions".to_owned(), connections, sample, references, target });
    }
    Ok(())
}

/// Creates `count` credentials with five versions each, and returns an unlimited load of replacements.
pub(super) fn replacements_of(ground: &Ground<'_>, organization: &Organization, count: u64) -> Result<Replacements> {
    let (address, token) = (ground.server.address, &organization.token);
    let template = Template::save_labelled(address, token, LABELS);
    let ids = fill_with(ground, organization, template, count, FILLING, true)?.ids;
    let mut workload = Replacements { template: Template::replace(address, token), ids, next: 0, left: None };
    workload.left = Some(workload.ids.len() * VERSIONS);
    run(&ground.to_the_end(64), &mut workload)?;
    ground.analyse();
    workload.left = None;
    Ok(workload)
}

/// Measures lists of 100 by a label that all credentials have, by namespace, and by two common labels that few
/// credentials have together.
fn labels(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    let organization = Organization::create(ground.vault, ground.server, "Labels")?;
    let (address, token) = (ground.server.address, &organization.token);
    let most = ground.options.rows.iter().copied().max().unwrap_or(0).max(2 * OVERLAP);
    let labelled = |labels: &str, count| {
        fill_with(ground, &organization, Template::save_labelled(address, token, labels), count, FILLING, false)
    };
    let mut rows = labelled(r#"{"all":"1","one":"1","two":"1"}"#, OVERLAP)?.count;
    rows += labelled(r#"{"all":"1","one":"1"}"#, most / 2 - OVERLAP)?.count;
    rows += labelled(r#"{"all":"1","two":"1"}"#, most / 2 - OVERLAP)?.count;
    let lists =
        [("a namespace", "namespace=labelled"), ("a label", "label=all:1"), ("two labels", "label=one:1&label=two:1")];
    for connections in ground.options.connections.iter().copied() {
        let plan = ground.round(connections);
        let mut samples: Vec<Sample> = lists.iter().map(|_| Sample::empty()).collect::<Result<_>>()?;
        for _ in 0..ground.options.rounds {
            for ((_, query), sample) in lists.iter().zip(&mut samples) {
                let target = format!("/v1/organization-vault?limit=100&{query}");
                sample.add(run(&plan, &mut Page(request::list_at(address, token, &target)))?)?;
            }
        }
        let namespace = samples.first().map_or(0.0, Sample::rate);
        for ((what, _), sample) in lists.iter().zip(samples) {
            let (rate, slow) = (sample.rate(), sample.quantile(0.99));
            let target = match *what {
                "a label" => Some(Target::new("≥ 0.9 of a namespace", rate >= 0.9 * namespace)),
                "two labels" if connections == 1 => Some(Target::new("p99 ≤ 50 ms", slow <= 50.0)),
                _ => None,
            };
            let what = format!("list 100 of {what}, {} rows", grouped(rows as f64));
            let references = vec![Bound::new("namespace", namespace)];
            report.rate(Rate { what, connections, sample, references, target });
        }
    }
    Ok(())
}
