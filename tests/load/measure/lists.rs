//! Lists of 100 credentials in organizations of several sizes.

use super::{Ground, evaluate, mean};
use crate::account::Organization;
use crate::client::{Answer, Next, Sample, Verdict, Workload, exchange, run};
use crate::measure::saves::fill;
use crate::report::{Bound, Rate, Report, Target, grouped};
use crate::{Result, note, request};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Number of credentials in a list.
pub(super) const PAGE: u64 = 100;
/// Time limit for creating the credentials of an organization. If it is exceeded, the organization has fewer.
const FILLING: Duration = Duration::from_secs(300);

/// Requests the newest page repeatedly.
pub(super) struct FirstPage {
    request: Vec<u8>,
    /// Length of the response, which is constant while nothing is saved.
    length: usize,
}

impl FirstPage {
    /// Requests the page once and checks that it shows an organization with `rows` credentials.
    pub(super) fn new(address: SocketAddr, token: &str, rows: u64) -> Result<Self> {
        let request = request::list(address, token);
        let (status, _, body) = exchange(address, &request)?;
        if status != 200 {
            return Err(format!("a list of {rows} credentials was answered with {status}").into());
        }
        let items: Value = serde_json::from_slice(&body)?;
        let shown = items.as_array().map_or(0, Vec::len) as u64;
        if shown != rows.min(PAGE) {
            return Err(format!("a list of {rows} credentials showed {shown}").into());
        }
        Ok(Self { request, length: body.len() })
    }
}

impl Workload for FirstPage {
    fn next(&mut self, _slot: usize, request: &mut Vec<u8>, _now: Instant) -> Next {
        request.extend_from_slice(&self.request);
        Next::Ask
    }

    fn answered(&mut self, _slot: usize, answer: &Answer<'_>) -> Verdict {
        if answer.status == 200 && answer.body_length != self.length { Verdict::Bad } else { evaluate(answer, 200) }
    }
}

/// Each connection follows the links from page to page.
struct Pages {
    address: SocketAddr,
    token: String,
    /// The next target of each connection, or `None` for the first page.
    targets: Vec<Option<String>>,
}

impl Workload for Pages {
    fn next(&mut self, slot: usize, request: &mut Vec<u8>, _now: Instant) -> Next {
        *request = match &self.targets[slot] {
            Some(target) => request::list_at(self.address, &self.token, target),
            None => request::list(self.address, &self.token),
        };
        Next::Ask
    }

    fn answered(&mut self, slot: usize, answer: &Answer<'_>) -> Verdict {
        self.targets[slot] = answer.header("link").and_then(next_page);
        evaluate(answer, 200)
    }
}

/// Returns the path and query of `<…>; rel="next"`.
fn next_page(link: &str) -> Option<String> {
    let (address, _) = link.strip_prefix('<')?.split_once('>')?;
    let path = address.split_once("://").map_or(address, |(_, rest)| &rest[rest.find('/').unwrap_or(rest.len())..]);
    Some(path.to_owned())
}

/// Measures lists. The sizes alternate, so that other load on the host affects all of them equally.
pub(crate) fn lists(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    let mut organizations = Vec::new();
    for rows in ground.options.rows.iter().copied() {
        let organization = Organization::create(ground.vault, ground.server, &format!("Lists{rows}"))?;
        let filled = fill(ground, &organization, rows, FILLING, false)?;
        organizations.push((filled.count, organization));
    }
    let most = organizations.iter().map(|(rows, _)| *rows).max().unwrap_or(0).max(PAGE);
    let rate = ground.references.fill(most)?;
    note(&format!("filled the bare vault with {most} rows at {}/s", grouped(rate)));
    let service = ground.references.service(&ground.vault.database_processes)?;
    for connections in ground.options.connections.iter().copied() {
        let plan = ground.round(connections);
        let mut samples: Vec<Sample> = organizations.iter().map(|_| Sample::empty()).collect::<Result<_>>()?;
        let (mut bare, mut loop_rates) = (Sample::empty()?, Vec::new());
        for _ in 0..ground.options.rounds {
            for ((rows, organization), sample) in organizations.iter().zip(&mut samples) {
                sample.add(run(&plan, &mut FirstPage::new(plan.address, &organization.token, *rows)?)?)?;
            }
            let mut page = FirstPage::new(service.address, &service.token, PAGE)?;
            bare.add(service.measure(&plan, &mut page)?)?;
            loop_rates.push(ground.references.list_rate(connections, ground.options.round())?);
        }
        let smallest = samples.first().map_or(0.0, Sample::rate);
        for ((rows, _), sample) in organizations.iter().zip(samples) {
            let rate = sample.rate();
            let target = match (*rows, connections) {
                (100, 64) if ground.embedded() => Some(Target::new("≥ the bare service", rate >= bare.rate())),
                (100, 64) => Some(Target::new("≥ 0.8 of the bare loop", rate >= 0.8 * mean(&loop_rates)?)),
                (1_000_000, 64) => Some(Target::new("≥ 0.90 of the rate at 100", rate >= 0.9 * smallest)),
                _ => None,
            };
            let references = vec![
                Bound::of("bare service", &bare),
                Bound::new("bare loop", mean(&loop_rates)?),
                Bound::new("smallest", smallest),
            ];
            let what = format!("list 100 of {}", grouped(*rows as f64));
            report.rate(Rate { what, connections, sample, references, target });
        }
    }
    pages(ground, report, &organizations)
}

/// Measures lists that each continue where the previous page ended.
fn pages(ground: &Ground<'_>, report: &mut Report, organizations: &[(u64, Organization)]) -> Result<()> {
    let connections = 64;
    let Some((rows, organization)) = organizations.iter().max_by_key(|(rows, _)| *rows) else { return Ok(()) };
    let plan = ground.round(connections);
    let mut sample = Sample::empty()?;
    let token = organization.token.clone();
    let mut workload = Pages { address: plan.address, token, targets: vec![None; connections] };
    for _ in 0..ground.options.rounds {
        sample.add(run(&plan, &mut workload)?)?;
    }
    let what = format!("next 100 of {}", grouped(*rows as f64));
    report.rate(Rate { what, connections, sample, references: Vec::new(), target: None });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_leads_to_the_next_page() {
        let path = Some("/v1/organization-vault?cursor=x".to_owned());
        assert_eq!(next_page("</v1/organization-vault?cursor=x>; rel=\"next\""), path);
        assert_eq!(next_page("<http://127.0.0.1:1/v1/organization-vault?cursor=x>; rel=\"next\""), path);
        assert_eq!(next_page("rel"), None);
    }
}
