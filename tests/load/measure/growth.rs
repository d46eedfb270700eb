//! Rates as a function of the number of connections, credentials and organizations.

use super::Ground;
use super::lists::FirstPage;
use super::saves::{Saves, fill};
use super::tenants::Spread;
use crate::account::Organization;
use crate::client::{Workload, run};
use crate::report::{Axis, Rate, Report};
use crate::{Result, note};
use std::time::Duration;

/// Numbers of connections.
const CONNECTIONS: [usize; 6] = [1, 4, 16, 64, 256, 1_024];
/// Numbers of organizations that save.
const ORGANIZATIONS: [usize; 6] = [1, 8, 64, 256, 1_024, 10_000];
/// Maximum number of connections that save in many organizations.
const MOST: usize = 256;
/// Number of connections while another number grows.
const USUAL: usize = 64;
/// Time limit for creating the credentials of an organization. If it is exceeded, the organization has fewer.
const FILLING: Duration = Duration::from_secs(200);

/// Measures all three curves.
pub(crate) fn growth(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    let address = ground.server.address;
    let one = Organization::create(ground.vault, ground.server, "Growth")?;
    let mut rows = fill(ground, &one, 1_000, FILLING, false)?.count;
    for connections in CONNECTIONS {
        let mut lists = FirstPage::new(address, &one.token, rows)?;
        measure(ground, report, "list", Axis::Connections, connections as f64, connections, &mut lists)?;
    }
    let saving = Organization::create(ground.vault, ground.server, "GrowthSaves")?;
    for connections in CONNECTIONS {
        let mut saves = Saves::endless(address, &saving.token);
        measure(ground, report, "save", Axis::Connections, connections as f64, connections, &mut saves)?;
    }
    let most = ground.options.rows.iter().copied().max().unwrap_or(0);
    for size in [1_000, 10_000, 100_000, 1_000_000].into_iter().filter(|size| *size <= most) {
        if size > rows {
            rows += fill(ground, &one, size - rows, FILLING, false)?.count;
        }
        let mut lists = FirstPage::new(address, &one.token, rows)?;
        measure(ground, report, "list", Axis::Credentials, size as f64, USUAL, &mut lists)?;
        // Except at the smallest size, the saved rows are few compared with the existing ones.
        let mut saves = Saves::endless(address, &one.token);
        rows += measure(ground, report, "save", Axis::Credentials, size as f64, USUAL, &mut saves)?;
    }
    let mut organizations = Vec::new();
    for count in ORGANIZATIONS.into_iter().filter(|count| *count <= ground.options.organizations) {
        note(&format!("{count} organizations"));
        organizations.extend(Organization::create_many(
            ground.vault,
            ground.server,
            "Growth",
            organizations.len()..count,
        )?);
        let mut saves = Spread::endless(address, &organizations);
        measure(ground, report, "save", Axis::Organizations, count as f64, count.clamp(USUAL, MOST), &mut saves)?;
    }
    Ok(())
}

/// Measures one point of a curve. Returns the number of successful responses.
fn measure(
    ground: &Ground<'_>,
    report: &mut Report,
    what: &'static str,
    axis: Axis,
    at: f64,
    connections: usize,
    workload: &mut impl Workload,
) -> Result<u64> {
    let sample = run(&ground.round(connections), workload)?;
    let count = sample.count();
    report.point(what, axis, at, sample.rate());
    let what = format!("{what}, {at:.0} {}", axis.name());
    report.rate(Rate { what, connections, sample, references: Vec::new(), target: None });
    Ok(count)
}
