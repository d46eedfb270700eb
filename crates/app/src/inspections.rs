//! What is stored, inspected by the server by and by: nobody need ask for it.

use crate::background::{Background, Stopped};
use crate::failure::Failure;
use crate::receivers::{Alarm, Alarms};
use crate::settings::Settings;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use vault_core::port::Opener;
use vault_core::receiver::EventKind;
use vault_core::usecase::{InspectionRound, Inspector, RowFinding};
use vault_embed::OpenVault;

/// How many rows are inspected at a time.
const AT_A_TIME: usize = 32;
/// How much longer than the rows took the pause after them is: requests come first.
const PAUSE: u32 = 9;
/// The shortest pause.
const SHORTEST: Duration = Duration::from_millis(50);
/// How long a failure of the store is left alone.
const AFTER_FAILURE: Duration = Duration::from_secs(60);
/// How many findings of one round are logged. All of them are counted.
const LOGGED: u64 = 100;

/// Rows that were inspected.
pub(crate) const ROWS: &str = "orgvault_inspected_rows_total";
/// What the last complete inspection found.
pub(crate) const FINDINGS: &str = "orgvault_inspection_findings";
/// When the last inspection was complete.
pub(crate) const COMPLETED: &str = "orgvault_inspection_completed_timestamp_seconds";

/// Begins, unless the settings turn it off. With `opener` the data of credentials is opened, too.
pub(crate) fn start(
    settings: &Settings,
    vault: &OpenVault,
    opener: Option<Arc<dyn Opener>>,
    alarms: &Alarms,
) -> Option<Background> {
    let every = Duration::from_secs(settings.server.inspect_every.unsigned_abs());
    let inspector = vault.inspector(opener).recording();
    let alarm = alarms.of(EventKind::InspectionFound);
    (!every.is_zero()).then(|| Background::start(|stopped| work(inspector, every, alarm, stopped)))
}

async fn work(inspector: Inspector, every: Duration, alarm: Alarm, mut stopped: Stopped) {
    metrics::counter!(ROWS).absolute(0);
    loop {
        let wait = tokio::select! {
            _ = &mut stopped => return,
            found = inspect(&inspector) => {
                alarm.set(found > 0).await;
                every
            }
        };
        tokio::select! {
            _ = &mut stopped => return,
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// One way through all rows. How much was found.
async fn inspect(inspector: &Inspector) -> u64 {
    let (mut round, mut found, mut told) = (inspector.begin(), 0_u64, 0);
    loop {
        let began = std::time::Instant::now();
        let more = step(&mut round, &mut found).await;
        metrics::counter!(ROWS).increment(round.rows() - told);
        told = round.rows();
        let wait = match more {
            Ok(true) => (began.elapsed() * PAUSE).max(SHORTEST),
            Ok(false) => break,
            Err(error) => {
                let error = Failure::from(error);
                tracing::warn!(
                    "inspecting the stored rows failed: {error}. It continues in {} s",
                    AFTER_FAILURE.as_secs()
                );
                AFTER_FAILURE
            }
        };
        tokio::time::sleep(wait).await;
    }
    metrics::gauge!(FINDINGS).set(f64::from(u32::try_from(found).unwrap_or(u32::MAX)));
    if let Ok(now) = SystemTime::UNIX_EPOCH.elapsed() {
        metrics::gauge!(COMPLETED).set(now.as_secs_f64());
    }
    let rows = round.rows();
    match found {
        0 => tracing::info!(rows, "inspected the stored rows: no findings"),
        _ => tracing::error!(
            rows,
            findings = found,
            "inspected the stored rows: some were changed outside OrgVault or are damaged. Run `orgvault doctor --deep`"
        ),
    }
    found
}

async fn step(round: &mut InspectionRound, found: &mut u64) -> Result<bool, vault_core::Error> {
    let mut report = |finding: RowFinding| {
        *found += 1;
        if *found <= LOGGED {
            tracing::error!("{finding}");
        }
    };
    round.step(AT_A_TIME, &mut report).await
}
