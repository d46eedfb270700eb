//! List requests of one organization while another organization sends a flood of its largest lists.

use super::lists::FirstPage;
use super::saves::fill;
use super::{Flood, Ground};
use crate::account::Organization;
use crate::client::{Sample, run};
use crate::report::{Bound, Rate, Report};
use crate::{Result, request};
use std::time::Duration;

/// Number of rows of the reader's list.
const FEW: u64 = 10;
/// Number of rows of a list of the flood, which is the maximum of one page.
const MANY: u64 = 1_000;
/// Numbers of connections of the flood.
const FLOODS: [usize; 3] = [16, 200, 1_500];

/// Measures one reader without other load, then with each flood.
pub(crate) fn fairness(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    let address = ground.server.address;
    let reading = Organization::create(ground.vault, ground.server, "Reader")?;
    let flooding = Organization::create(ground.vault, ground.server, "Flood")?;
    fill(ground, &reading, FEW, Duration::from_secs(10), false)?;
    fill(ground, &flooding, MANY, Duration::from_secs(30), false)?;
    ground.analyse();
    let reader = || run(&ground.round(1), &mut FirstPage::new(address, &reading.token, FEW)?);
    let mut alone = Sample::empty()?;
    for _ in 0..ground.options.rounds {
        alone.add(reader()?)?;
    }
    let bound = |name| Bound::new(name, alone.rate());
    let mut rates = Vec::new();
    for connections in FLOODS {
        let target = format!("/v1/organization-vault?limit={MANY}");
        let mut flood = Flood { request: request::list_at(address, &flooding.token, &target), expected_status: 200 };
        let mut sample = Sample::empty()?;
        for _ in 0..ground.options.rounds {
            sample.add(flood.under_load(&ground.round(connections), reader)?.0)?;
        }
        let what = format!("list {FEW} during {connections} connections of another organization that list {MANY}");
        let references = vec![bound("alone")];
        rates.push(Rate { what, connections: 1, sample, references, target: None });
    }
    report.rate(Rate {
        what: format!("list {FEW} alone"),
        connections: 1,
        sample: alone,
        references: Vec::new(),
        target: None,
    });
    rates.into_iter().for_each(|rate| report.rate(rate));
    Ok(())
}
