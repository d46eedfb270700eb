//! What a server does with audit entries beside writing them: it delivers them outside, and removes those whose time is over.

use super::SinkPlace;
use super::sink::Sink;
use crate::background::{Background, Stopped};
use crate::failure::Failure;
use crate::receivers::{Alarm, Alarms};
use crate::settings::Settings;
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;
use vault_core::port::Clock;
use vault_core::receiver::EventKind;
use vault_core::usecase::{DeliveryError, Operator};
use vault_embed::OpenVault;

/// How often new entries are delivered.
const DELIVER_EVERY: Duration = Duration::from_secs(1);
/// How long is delivered at a time, in milliseconds.
const DELIVER_MILLIS: i64 = 10_000;
/// How long after a failure the next attempt is made, at most. It doubles from a second.
const AFTER_FAILURE: Duration = Duration::from_secs(60);
/// After so long without success the receivers of the instance are told.
const BEHIND_AFTER: Duration = Duration::from_secs(900);
/// How often old entries are removed.
const REMOVE_EVERY: Duration = Duration::from_secs(3_600);
/// How long is removed at a time, in milliseconds.
const REMOVE_MILLIS: i64 = 6_000;

/// Entries that the sink accepted.
pub(crate) const DELIVERED: &str = "orgvault_audit_delivered_total";
/// Checkpoints whose entries wait to be delivered.
pub(crate) const WAITING: &str = "orgvault_audit_waiting_checkpoints";

/// What is to be done.
struct Plan {
    operator: Operator,
    clock: Arc<dyn Clock>,
    sink: Option<(SinkPlace, Sink)>,
    /// For how long entries are kept, in seconds.
    keep: Option<i64>,
    /// This process, among those that could deliver.
    holder: Uuid,
    /// The last checkpoint that this process delivered; none while another one does.
    delivered: Option<i64>,
}

/// Begins, if the settings ask for it. What was not delivered when it ends is delivered after the next start.
///
/// # Errors
/// The sink cannot be set up, or the store failed.
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
    // An embedded vault has one server: after a crash the next one need not wait.
    let replicas = settings.database.file().is_none();
    let holder = if replicas { vault.ports().environment.ids.random() } else { *vault.instance().as_uuid() };
    let (operator, clock) = (vault.operator(), vault.ports().environment.clock.clone());
    let plan = Plan { operator, clock, sink, keep, holder, delivered: None };
    let behind = alarms.of(EventKind::AuditSinkBehind);
    if plan.sink.is_some() {
        // Before the first request: what is written from now on is delivered.
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
                true => Instant::now(), // there is more
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
        // Nothing is written where nothing is new.
        if self.delivered.is_some() && self.delivered == Some(self.operator.newest_checkpoint().await?.number) {
            return Ok(());
        }
        let delivered = self.operator.deliver_audit(sink, self.holder, DELIVER_MILLIS).await;
        let waiting = match &delivered {
            Ok(Some(delivered)) => delivered.waiting,
            // Whoever else delivers, or seems to: what waits is shown by every server.
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

    /// Removes entries whose time is over, as far as they were delivered. Whether there is more to remove.
    async fn remove(&self) -> bool {
        let Some(keep) = self.keep else { return false };
        if self.sink.is_some() && self.delivered.is_none() {
            return false; // whoever delivers removes
        }
        let before = self.clock.now().plus_seconds(-keep);
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
            tracing::info!(
                entries = removed.entries,
                "audit entries removed, because their time is over (--keep-audit)"
            );
        }
        removed.more
    }
}
