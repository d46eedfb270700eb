//! A storm: many more logins than the cores can hash, with concurrent lists.
//!
//! The processor time in the row of a storm includes the concurrent lists and the rejected logins.

mod logins;
mod outcome;
mod reading;

use super::Ground;
use super::lists::PAGE;
use super::saves::fill;
use crate::account::{Account, Organization};
use crate::client::{Sample, run};
use crate::metrics::Metrics;
use crate::report::{Rate, Report};
use crate::{Result, note};
use logins::Logins;
use outcome::{Bounds, Outcome};
use std::thread;
use std::time::Duration;

/// Number of accounts that log in. Each has codes for a dozen logins at the start and for two more per minute.
const ACCOUNTS: usize = 64;
/// Pauses between lists: the pause of a person, and none, which leaves no processor time for hashing.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::ZERO];

/// One kind of storm.
struct Storm {
    connections: usize,
    /// `true` if throttled clients wait for the returned time.
    waits: bool,
    /// Index of the pause in [`PAUSES`].
    pause: usize,
}

/// All kinds of storms.
const STORMS: [Storm; 5] = [
    Storm { connections: 64, waits: true, pause: 0 },
    Storm { connections: 256, waits: true, pause: 0 },
    Storm { connections: 64, waits: false, pause: 0 },
    Storm { connections: 256, waits: false, pause: 0 },
    Storm { connections: 64, waits: true, pause: 1 },
];

/// Measures storms, between rounds of only the hash and of only lists.
pub(crate) fn storm(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    let organization = Organization::create(ground.vault, ground.server, "Reading")?;
    fill(ground, &organization, PAGE, Duration::from_secs(10), false)?;
    note(&format!("making {ACCOUNTS} accounts"));
    ground.vault.run(&["org", "create", "Storm"])?;
    let mut accounts = Account::create_many(ground.vault, "Storm", ACCOUNTS)?;
    let mut strangers = 0;
    let cores = thread::available_parallelism()?.get();
    let mut idle = [Sample::empty()?, Sample::empty()?];
    let mut outcomes = STORMS.iter().map(|_| Outcome::new()).collect::<Result<Vec<_>>>()?;
    for _ in 0..ground.options.rounds {
        for (idle, pause) in idle.iter_mut().zip(PAUSES) {
            idle.add(reading::list(ground, &organization, pause)?)?;
        }
        for (storm, outcome) in STORMS.iter().zip(&mut outcomes) {
            outcome.add_reference(ground.references.hashes(cores, ground.options.round())?);
            round(ground, &organization, storm, (&mut accounts, &mut strangers), outcome)?;
        }
    }
    let bounds = idle.each_ref().map(Bounds::of);
    for (sample, pause) in idle.into_iter().zip(PAUSES) {
        let (what, connections) = (format!("list 100 alone, {}", pace(pause)), reading::CONNECTIONS);
        report.rate(Rate { what, connections, sample, references: Vec::new(), target: None });
    }
    for (storm, outcome) in STORMS.iter().zip(outcomes) {
        outcome.report(storm, &bounds[storm.pause], report)?;
    }
    Ok(())
}

/// Runs one round of one storm with concurrent lists.
fn round(
    ground: &Ground<'_>,
    organization: &Organization,
    storm: &Storm,
    (accounts, strangers): (&mut [Account], &mut u64),
    outcome: &mut Outcome,
) -> Result<()> {
    let plan = ground.round(storm.connections);
    let mut workload = Logins::new(plan.address, storm.connections, storm.waits, accounts, strangers);
    let before = Metrics::read(ground.server)?;
    let (logins, lists) = thread::scope(|scope| {
        let lists =
            scope.spawn(|| reading::list(ground, organization, PAUSES[storm.pause]).map_err(|error| error.to_string()));
        (run(&plan, &mut workload), lists.join())
    });
    let evaluated = Metrics::read(ground.server)?.evaluations() - before.evaluations();
    outcome.add(logins?, lists.map_err(|_| "the lists panicked")??, workload.statuses, evaluated)
}

/// Describes the pause.
fn pace(pause: Duration) -> String {
    if pause.is_zero() { "without pause".to_owned() } else { format!("every {} ms each", pause.as_millis()) }
}
