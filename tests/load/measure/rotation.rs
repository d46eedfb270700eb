//! The rotation of an organization's key, idle and beside saves.

use super::Ground;
use super::saves::{Saves, fill};
use crate::Result;
use crate::account::Organization;
use crate::client::{Sample, run};
use crate::report::{Report, Target, grouped};
use std::thread;
use std::time::{Duration, Instant};

/// How long the organization is filled at most; where that does not do, it stays smaller.
const FILLING: Duration = Duration::from_secs(300);
/// How many connections save beside the rotation.
const BESIDE: usize = 16;

/// Measures how many rows a second `key rotate` moves: once beside a server that has nothing to do, once beside saves of another
/// organization.
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

    let other = Organization::create(ground.vault, ground.server, "BesideRotation")?;
    let plan = ground.round(BESIDE);
    let (beside, saves) = thread::scope(|scope| -> Result<(f64, f64)> {
        // Its error crosses threads as text.
        let rotating = scope.spawn(|| rotate().map_err(|error| error.to_string()));
        let mut saves = Sample::empty()?;
        while !rotating.is_finished() {
            saves.add(run(&plan, &mut Saves::endless(plan.address, &other.token))?)?;
        }
        let rate = rotating.join().map_err(|_| "the rotation panicked")??;
        Ok((rate, saves.rate()))
    })?;
    let target = ground.embedded().then(|| Target::new("≥ 10,000", beside >= 10_000.0));
    let what = format!("key rotation of {} credentials beside {} saves/s", grouped(rows), grouped(saves));
    report.quantity(what, beside, "rows/s", target);
    Ok(())
}
