//! Server start-up.

use crate::report::{Report, Target};
use crate::vault::Vault;
use crate::{Result, note};
use std::time::Instant;

/// Number of starts.
const RUNS: usize = 15;

/// Measures the time from the start of the process to the first response with status 200.
pub(crate) fn cold_start(vault: &Vault, which: &str, report: &mut Report) -> Result<()> {
    note("cold starts");
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let started = Instant::now();
        let server = vault.spawn()?;
        server.first_answer("/readyz")?;
        times.push(started.elapsed().as_secs_f64() * 1000.0);
        server.stop()?;
    }
    times.sort_by(f64::total_cmp);
    let median = times[RUNS / 2];
    let target = Target::new("≤ 50 ms", median <= 50.0);
    report.quantity(format!("cold start to the first 200, {which}, median of {RUNS}"), median, "ms", Some(target));
    report.quantity(format!("the same, slowest of {RUNS}"), times[RUNS - 1], "ms", None);
    Ok(())
}
