//! Periodic backups by the server, and their retention.

use crate::background::{Background, Stopped};
use crate::command::backup::failure;
use crate::compose;
use crate::failure::Failure;
use crate::receivers::{Alarm, Alarms};
use crate::settings::Settings;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vault_core::receiver::EventKind;
use vault_embed::{BackupTarget, OpenVault, backup, keep_newest, newest_scheduled};

/// Maximum pause after a failed backup.
const AFTER_FAILURE: Duration = Duration::from_secs(300);

/// Schedule and destination of the backups.
struct Plan {
    every: Duration,
    directory: PathBuf,
    keep: usize,
}

/// Starts periodic backups, if the settings enable them. On shutdown, a backup in progress is completed.
///
/// # Errors
/// The vault does not use the embedded database, or the directory does not exist.
pub(crate) fn start(
    settings: &Arc<Settings>,
    vault: &OpenVault,
    alarms: &Alarms,
) -> Result<Option<Background>, Failure> {
    let server = &settings.server;
    let (Some(every), Some(directory)) = (server.backup_every, &server.backup_to) else { return Ok(None) };
    if settings.database.file().is_none() {
        return Err(Failure::usage(format!(
            "--backup-every: the vault is on PostgreSQL, which this does not back up. Use pg_dump or physical backups: {}",
            crate::command::backup::POSTGRES_PAGE
        )));
    }
    if !directory.is_dir() {
        return Err(Failure::new(format!(
            "--backup-to: {} is not a directory. Create it, for the service's user alone",
            directory.display()
        )));
    }
    let directory = std::path::absolute(directory)?;
    let plan = Plan { every: Duration::from_secs(every.unsigned_abs()), directory, keep: server.backup_keep as usize };
    let (settings, vault) = (Arc::clone(settings), vault.clone());
    let alarms = [alarms.of(EventKind::BackupFailed), alarms.of(EventKind::BackupOverdue)];
    Ok(Some(Background::start(|stopped| work(settings, vault, plan, alarms, stopped))))
}

async fn work(
    settings: Arc<Settings>,
    vault: OpenVault,
    plan: Plan,
    [failed, overdue]: [Alarm; 2],
    mut stopped: Stopped,
) {
    let mut succeeded_at = Instant::now();
    metrics::counter!(TOTAL, "outcome" => "failed").absolute(0);
    let mut wait = due(&plan, &vault);
    loop {
        tokio::select! {
            _ = &mut stopped => return,
            () = tokio::time::sleep(wait) => {}
        }
        wait = match make(&settings, &vault, &plan).await {
            Ok(()) => {
                metrics::counter!(TOTAL, "outcome" => "succeeded").increment(1);
                succeeded_at = Instant::now();
                failed.set(false).await;
                overdue.set(false).await;
                plan.every
            }
            Err(error) => {
                metrics::counter!(TOTAL, "outcome" => "failed").increment(1);
                let wait = AFTER_FAILURE.min(plan.every);
                tracing::error!("{error}. The next attempt is in {} s", wait.as_secs());
                failed.set(true).await;
                overdue.set(succeeded_at.elapsed() >= plan.every * 2).await;
                wait
            }
        };
    }
}

/// Metric: number of the server's backups, by outcome.
pub(crate) const TOTAL: &str = "orgvault_backups_total";

async fn make(settings: &Settings, vault: &OpenVault, plan: &Plan) -> Result<(), Failure> {
    let root_key = compose::root_key(settings)?;
    let made = backup(vault, root_key, BackupTarget::Scheduled(&plan.directory), &mut |_| {}).await.map_err(failure)?;
    let rows: u64 = made.rows.iter().map(|table| table.rows).sum();
    let removed = keep_newest(&plan.directory, vault.instance(), plan.keep).map_err(|error| {
        Failure::new(format!("a backup was made, but older ones in {} stay: {error}", plan.directory.display()))
    })?;
    tracing::info!(backup = %made.path.display(), bytes = made.size, rows, removed = removed.len(), "backup made and checked");
    Ok(())
}

/// Returns the time until the next backup, based on the newest periodic one.
fn due(plan: &Plan, vault: &OpenVault) -> Duration {
    let newest = newest_scheduled(&plan.directory, vault.instance()).ok().flatten();
    let age = newest.and_then(|path| path.metadata().ok()?.modified().ok()?.elapsed().ok());
    age.map_or(Duration::ZERO, |age| plan.every.saturating_sub(age))
}
