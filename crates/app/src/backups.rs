//! Periodic backups by the server, and their retention.

use crate::background::{Background, Stopped};
use crate::command::backup::failure;
use crate::receivers::{Alarm, Alarms};
use crate::root_key;
use crate::settings::Settings;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;
use vault_cli::failure::Failure;
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

/// Registers the descriptions of the metrics.
pub(crate) fn describe() {
    metrics::describe_counter!(TOTAL, "Backups of the server, by `outcome`: `succeeded`, `failed`");
    metrics::describe_gauge!(
        AGE,
        metrics::Unit::Seconds,
        "Age of the newest scheduled backup. Only with `--backup-every`"
    );
    metrics::describe_gauge!(
        INTERVAL,
        metrics::Unit::Seconds,
        "Interval of the scheduled backups. Only with `--backup-every`"
    );
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
            "--backup-every: the vault is on PostgreSQL, which this setting does not back up. Use pg_dump or physical backups: {}",
            crate::command::backup::POSTGRES_PAGE
        )));
    }
    if !directory.is_dir() {
        return Err(Failure::new(format!(
            "--backup-to: {} is not a directory. Create it, accessible only to the service's user",
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
    let started = Instant::now();
    metrics::counter!(TOTAL, "outcome" => "failed").absolute(0);
    metrics::gauge!(INTERVAL).set(plan.every.as_secs_f64());
    let look = || newest(&plan.directory, &vault).ok().flatten();
    let mut newest = look();
    let mut next = Instant::now() + newest.map_or(Duration::ZERO, |made| plan.every.saturating_sub(age(made)));
    let mut turn = tokio::time::interval(SHOW_EVERY);
    loop {
        tokio::select! {
            _ = &mut stopped => return,
            _ = turn.tick() => {
                if let Some(made) = newest {
                    metrics::gauge!(AGE).set(age(made).as_secs_f64());
                }
                continue;
            }
            () = tokio::time::sleep_until(next) => {}
        }
        let wait = match make(&settings, &vault, &plan).await {
            Ok(()) => {
                metrics::counter!(TOTAL, "outcome" => "succeeded").increment(1);
                newest = look();
                metrics::gauge!(AGE).set(0.0);
                failed.set(false).await;
                overdue.set(false).await;
                plan.every
            }
            Err(error) => {
                metrics::counter!(TOTAL, "outcome" => "failed").increment(1);
                let wait = AFTER_FAILURE.min(plan.every);
                tracing::error!("{error}. The next attempt is in {} s", wait.as_secs());
                failed.set(true).await;
                let age = newest.map_or_else(|| started.elapsed(), age);
                overdue.set(is_overdue(age, plan.every)).await;
                wait
            }
        };
        next = Instant::now() + wait;
    }
}

/// How often the age of the newest backup is shown.
const SHOW_EVERY: Duration = Duration::from_secs(15);
/// The age of the newest backup of the schedule.
const AGE: &str = "orgvault_backup_age_seconds";
/// The interval of the schedule.
const INTERVAL: &str = "orgvault_backup_interval_seconds";

/// When the schedule's newest backup of `vault` in `directory` was made.
pub(crate) fn newest(directory: &Path, vault: &OpenVault) -> io::Result<Option<SystemTime>> {
    let newest = newest_scheduled(directory, vault.instance())?;
    newest.map(|path| path.metadata()?.modified()).transpose()
}

/// How long ago that was. Zero if the clock was moved back.
pub(crate) fn age(made: SystemTime) -> Duration {
    made.elapsed().unwrap_or_default()
}

/// A backup is overdue after two intervals.
pub(crate) fn is_overdue(age: Duration, every: Duration) -> bool {
    age >= every * 2
}

/// Metric: number of the server's backups, by outcome.
const TOTAL: &str = "orgvault_backups_total";

async fn make(settings: &Settings, vault: &OpenVault, plan: &Plan) -> Result<(), Failure> {
    let root_key = root_key::load(settings).await?;
    let made = backup(vault, root_key, BackupTarget::Scheduled(&plan.directory), &mut |_| {}).await.map_err(failure)?;
    let rows: u64 = made.rows.iter().map(|table| table.rows).sum();
    let removed = keep_newest(&plan.directory, vault.instance(), plan.keep).map_err(|error| {
        Failure::new(format!("created a backup, but cannot delete older ones in {}: {error}", plan.directory.display()))
    })?;
    tracing::info!(backup = %made.path.display(), bytes = made.size, rows, removed = removed.len(), "created and checked a backup");
    Ok(())
}
