//! Delivery of audit entries to a sink, and removal of expired entries.

use super::sink::Sink;
use crate::background::{Background, Stopped};
use crate::receivers::{Alarm, Alarms};
use crate::settings::{Settings, SinkTarget};
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;
use vault_cli::failure::Failure;
use vault_core::port::Clock;
use vault_core::receiver::EventKind;
use vault_core::time::Timestamp;
use vault_core::usecase::{DeliveryError, InspectionRound, Inspector, Operator};
use vault_embed::OpenVault;

/// Interval of deliveries.
const DELIVER_EVERY: Duration = Duration::from_secs(1);
/// Time limit of one delivery in milliseconds.
const DELIVER_MILLIS: i64 = 10_000;
/// Maximum pause after a failed delivery. Pauses double, starting with a second.
const AFTER_FAILURE: Duration = Duration::from_secs(60);
/// Time without a successful delivery after which the instance's receivers are notified.
const BEHIND_AFTER: Duration = Duration::from_secs(900);
/// Interval of removals.
const REMOVE_EVERY: Duration = Duration::from_secs(3_600);
/// Time limit of one removal in milliseconds.
const REMOVE_MILLIS: i64 = 6_000;
/// Number of rows whose states are recorded again in one step.
const RENEWED_ROWS: usize = 64;
/// Time that steps may take together, once a second.
const RENEW_FOR: Duration = Duration::from_millis(100);
/// Interval in which all states are recorded again that would otherwise be removed, in seconds.
const RENEWED_AHEAD: i64 = 86_400;

/// Metric: number of entries that the sink accepted.
pub(crate) const DELIVERED: &str = "orgvault_audit_delivered_total";
/// Metric: number of checkpoints with undelivered entries.
pub(crate) const WAITING: &str = "orgvault_audit_waiting_checkpoints";

/// The delivery and retention of a server.
struct Plan {
    operator: Operator,
    clock: Arc<dyn Clock>,
    sink: Option<(SinkTarget, Sink)>,
    /// Retention of entries in seconds.
    keep: Option<i64>,
    /// ID of this process among those that can deliver.
    holder: Uuid,
    /// Last checkpoint that this process delivered. `None` while another process delivers.
    delivered: Option<i64>,
    inspector: Inspector,
    /// Time before which entries can be removed, because the states in them were recorded again.
    renewed: Option<Timestamp>,
    /// The next such time, and the round that records the states.
    renewal: Option<(Timestamp, InspectionRound)>,
}

/// Starts delivery and removal, if the settings enable them. Entries that are undelivered at shutdown are delivered
/// after the next start.
///
/// # Errors
/// The sink cannot be created, or the database failed.
pub(crate) async fn start(
    settings: &Settings,
    vault: &OpenVault,
    alarms: &Alarms,
) -> Result<Option<Background>, Failure> {
    let (place, keep) = (&settings.server.audit_sink, settings.server.keep_audit);
    if place.is_none() && keep.is_none() {
        return Ok(None);
    }
    let sink = place.clone().map(|place| Sink::of(settings, &place).map(|sink| (place, sink))).transpose()?;
    if let Some((place, _)) = &sink {
        tracing::info!(sink = %place, "new audit entries are delivered");
    }
    // An embedded database has only one server. A fixed holder lets it continue after a crash without waiting for the
    // lease.
    let replicas = settings.database.file().is_none();
    let holder = if replicas { vault.ports().environment.ids.random() } else { *vault.instance().as_uuid() };
    let (operator, clock) = (vault.operator(), vault.ports().environment.clock.clone());
    let inspector = vault.inspector(None);
    let (delivered, renewed, renewal) = (None, None, None);
    let plan = Plan { operator, clock, sink, keep, holder, delivered, inspector, renewed, renewal };
    let behind = alarms.of(EventKind::AuditSinkBehind);
    if plan.sink.is_some() {
        // Register before the first request, so that all entries from now on are delivered.
        plan.operator.begin_delivery(holder).await?;
        metrics::counter!(DELIVERED).absolute(0);
    }
    Ok(Some(Background::start(|stopped| work(plan, behind, stopped))))
}

async fn work(mut plan: Plan, behind: Alarm, mut stopped: Stopped) {
    let (mut wait, mut remove_at, mut accepted_at) = (DELIVER_EVERY, Instant::now(), Instant::now());
    loop {
        tokio::select! {
            _ = &mut stopped => break,
            () = tokio::time::sleep(wait) => {}
        }
        wait = match plan.deliver().await {
            Ok(()) => {
                accepted_at = Instant::now();
                behind.set(false).await;
                DELIVER_EVERY
            }
            Err(error) => {
                behind.set(accepted_at.elapsed() >= BEHIND_AFTER).await;
                let wait = (wait * 2).min(AFTER_FAILURE);
                let place = plan.sink.as_ref().map(|(place, _)| place.to_string()).unwrap_or_default();
                let error = Failure::from(error);
                tracing::error!(sink = place, "{error}. They wait; the next attempt is in {} s", wait.as_secs());
                wait
            }
        };
        if Instant::now() >= remove_at {
            remove_at = match plan.remove().await {
                true => Instant::now(), // more entries remain
                false => Instant::now() + REMOVE_EVERY,
            };
        }
    }
    if plan.delivered.is_some() {
        let ended = plan.operator.end_delivery(plan.holder).await;
        if let Err(error) = ended {
            tracing::debug!("another replica delivers audit entries after a minute: {}", Failure::from(error));
        }
    }
}

impl Plan {
    async fn deliver(&mut self) -> Result<(), DeliveryError> {
        let Some((_, sink)) = &self.sink else { return Ok(()) };
        // Skip the write if there are no new entries.
        if self.delivered.is_some() && self.delivered == Some(self.operator.newest_checkpoint().await?.number) {
            return Ok(());
        }
        let delivered = self.operator.deliver_audit(sink, self.holder, DELIVER_MILLIS).await;
        let waiting = match &delivered {
            Ok(Some(delivered)) => delivered.waiting,
            // Another process delivers, or appears to. Every server reports the number of pending checkpoints.
            Ok(None) => self.operator.delivery_progress().await?.map_or(0, |progress| progress.waiting),
            Err(DeliveryError::Sink { checkpoint, .. }) => {
                self.operator.newest_checkpoint().await?.number - checkpoint + 1
            }
            Err(DeliveryError::Store(_)) => return delivered.map(drop),
        };
        metrics::gauge!(WAITING).set(f64::from(i32::try_from(waiting).unwrap_or(i32::MAX)));
        self.delivered = delivered?.map(|delivered| delivered.checkpoint);
        Ok(())
    }

    /// Records the states of rows again, a part of the rows at a time, so that entries before `until` are not needed.
    /// Returns whether rows remain.
    async fn renew(&mut self, until: Timestamp) -> Result<bool, vault_core::Error> {
        let begin = || (until, self.inspector.clone().renewing(until).begin());
        let (until, round) = self.renewal.get_or_insert_with(begin);
        let started = Instant::now();
        while round.step(RENEWED_ROWS, &mut |_| {}).await? {
            if started.elapsed() > RENEW_FOR {
                return Ok(true);
            }
        }
        self.renewed = Some(*until);
        self.renewal = None;
        Ok(false)
    }

    /// Removes expired entries that were delivered. Returns whether more remain.
    async fn remove(&mut self) -> bool {
        let Some(keep) = self.keep else { return false };
        if self.sink.is_some() && self.delivered.is_none() {
            return false; // the delivering process removes them
        }
        let before = self.clock.now().plus_seconds(-keep);
        let renewed = match self.renewed.is_none_or(|renewed| renewed < before) {
            // A day ahead, so that all rows are read once a day.
            true => self.renew(before.plus_seconds(RENEWED_AHEAD)).await,
            false => Ok(false),
        };
        match renewed {
            Ok(false) => {}
            Ok(true) => return true,
            Err(error) => {
                let error = Failure::from(error);
                tracing::error!("old audit entries were not removed: {error}. The next attempt is in an hour");
                return false;
            }
        }
        let removed = match self.operator.cut_audit(before, self.delivered, REMOVE_MILLIS).await {
            Ok(removed) => removed,
            Err(error) => {
                let error = Failure::from(error);
                tracing::error!("old audit entries were not removed: {error}. The next attempt is in an hour");
                return false;
            }
        };
        if let Some(checkpoint) = removed.damaged {
            tracing::error!(
                checkpoint,
                "old audit entries are kept: a checkpoint or an entry of it is missing or was changed. Run `orgvault audit verify`"
            );
        }
        if removed.entries > 0 {
            tracing::info!(entries = removed.entries, "removed audit entries that are older than --keep-audit");
        }
        removed.more
    }
}
