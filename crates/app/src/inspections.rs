//! The server's background integrity check.

use crate::background::{Background, Stopped};
use crate::receivers::{Alarm, Alarms};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use vault_cli::failure::Failure;
use vault_core::port::Opener;
use vault_core::receiver::EventKind;
use vault_core::usecase::{InspectionRound, Inspector, RowFinding};
use vault_embed::OpenVault;

/// Pause between two checks.
const EVERY: Duration = Duration::from_secs(24 * 3_600);
/// Number of rows per batch.
const AT_A_TIME: usize = 32;
/// Pause after a batch, as a multiple of its duration, so that requests have priority.
const PAUSE: u32 = 9;
/// Minimum pause between batches.
const SHORTEST: Duration = Duration::from_millis(50);
/// Pause after a failure of the database.
const AFTER_FAILURE: Duration = Duration::from_secs(60);
/// Maximum number of logged findings per round. All findings are counted.
const LOGGED: u64 = 100;

/// Metric: number of inspected rows.
pub(crate) const ROWS: &str = "orgvault_inspected_rows_total";
/// Metric: number of findings of the last complete round.
pub(crate) const FINDINGS: &str = "orgvault_inspection_findings";
/// Metric: completion time of the last round.
pub(crate) const COMPLETED: &str = "orgvault_inspection_completed_timestamp_seconds";

/// Starts the integrity check. With `opener`, it also decrypts credential data.
pub(crate) fn start(vault: &OpenVault, opener: Option<Arc<dyn Opener>>, alarms: &Alarms) -> Background {
    let (inspector, alarm) = (vault.inspector(opener), alarms.of(EventKind::InspectionFound));
    Background::start(|stopped| work(inspector, alarm, stopped))
}

async fn work(inspector: Inspector, alarm: Alarm, mut stopped: Stopped) {
    metrics::counter!(ROWS).absolute(0);
    loop {
        tokio::select! {
            _ = &mut stopped => return,
            found = inspect(&inspector) => alarm.set(found > 0).await,
        }
        tokio::select! {
            _ = &mut stopped => return,
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

/// Checks all rows once and returns the number of findings.
async fn inspect(inspector: &Inspector) -> u64 {
    let (mut round, mut found, mut reported) = (inspector.begin(), 0_u64, 0);
    loop {
        let began = std::time::Instant::now();
        let more = step(&mut round, &mut found).await;
        metrics::counter!(ROWS).increment(round.rows() - reported);
        reported = round.rows();
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
