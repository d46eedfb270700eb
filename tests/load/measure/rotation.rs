//! Rotation of an organization's key, on an idle server and during saves.

use super::Ground;
use super::saves::{Saves, fill};
use crate::Result;
use crate::account::Organization;
use crate::client::{Sample, run};
use crate::report::{Report, Target, grouped};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit for creating the credentials of the organization. If it is exceeded, the organization has fewer.
const FILLING: Duration = Duration::from_secs(300);
/// Number of connections that save during the rotation.
const CONCURRENT: usize = 16;

/// Measures the number of rows per second that `key rotate` moves, once on an idle server and once during saves of
/// another organization.
pub(crate) fn rotation(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    let organization = Organization::create(ground.vault, ground.server, "Rotated")?;
    let rows = fill(ground, &organization, ground.options.rotated, FILLING, false)?.count as f64;
    let rotate = || -> Result<f64> {
        let began = Instant::now();
        ground.vault.run(&["key", "rotate", "--organization", &organization.name])?;
        Ok(rows / began.elapsed().as_secs_f64())
    };
    let idle = rotate()?;
    report.quantity(format!("key rotation of {} credentials", grouped(rows)), idle, "rows/s", None);

    let other = Organization::create(ground.vault, ground.server, "DuringRotation")?;
    let plan = ground.round(CONCURRENT);
    let (under_load, saves) = thread::scope(|scope| -> Result<(f64, f64)> {
        // Errors cross threads as text because they are not `Send`.
        let rotating = scope.spawn(|| rotate().map_err(|error| error.to_string()));
        let mut saves = Sample::empty()?;
        while !rotating.is_finished() {
            saves.add(run(&plan, &mut Saves::endless(plan.address, &other.token))?)?;
        }
        let rate = rotating.join().map_err(|_| "the rotation panicked")??;
        Ok((rate, saves.rate()))
    })?;
    let target = ground.embedded().then(|| Target::new("≥ 10,000", under_load >= 10_000.0));
    let what = format!("key rotation of {} credentials during {} saves/s", grouped(rows), grouped(saves));
    report.quantity(what, under_load, "rows/s", target);
    Ok(())
}
