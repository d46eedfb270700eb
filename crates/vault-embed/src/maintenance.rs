//! Background maintenance of a vault: deletes expired rows, records counts and uses of sessions, and seals audit
//! entries.

use crate::anchor::{Anchored, FollowError};
use crate::vault::OpenVault;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use vault_core::port::KeyedDigester;
use vault_core::usecase::{Accounts, Operator};

/// Interval of the deletion of expired rows.
const EXPIRED_EVERY: Duration = Duration::from_secs(60);
/// Maximum duration of one round of deletion, a tenth of the interval, in milliseconds.
const EXPIRED_MILLIS: i64 = 6_000;
/// Interval at which counts are recorded.
const TALLY_EVERY: Duration = Duration::from_secs(5);
/// Interval at which new audit entries are added to a checkpoint and the anchor is updated.
const SEAL_EVERY: Duration = Duration::from_secs(1);
/// Maximum duration of one round of sealing, in milliseconds.
const SEAL_MILLIS: i64 = 250;

/// The background maintenance, which stops when this is dropped.
pub(crate) struct Maintenance(Mutex<Option<Running>>);

struct Running {
    end: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Maintenance {
    /// Starts the maintenance of `vault`, and updates its anchor, if any.
    pub(crate) fn start(vault: &OpenVault) -> Self {
        let (end, ends) = oneshot::channel();
        let sealing =
            keep_sealed(vault.operator(), vault.anchored.clone(), vault.ports.operations.ports.digester.clone());
        let rest = work(vault.operator(), vault.accounts(), ends);
        let task = tokio::spawn(async {
            // Run them concurrently, because the deletion of expired rows may take seconds.
            tokio::select! {
                () = rest => {}
                () = sealing => {}
            }
        });
        Self(Mutex::new(Some(Running { end, task })))
    }

    /// Stops the maintenance, and waits until pending records are written.
    pub(crate) async fn end(&self) {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Running { end, task }) = running {
            drop(end);
            let _ = task.await; // only a panic, which has been reported
        }
    }
}

/// Once a second, reloads the instance keys, adds new audit entries to checkpoints and updates the anchor.
async fn keep_sealed(operator: Operator, anchored: Option<Arc<Anchored>>, keys: Arc<dyn KeyedDigester>) {
    let mut turn = tokio::time::interval(SEAL_EVERY);
    turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        turn.tick().await;
        if let Err(error) = keys.reload_keys().await {
            let error = &error as &dyn Error;
            tracing::warn!(error, "the instance keys were not read; the next attempt is in a second");
        }
        seal(&operator, anchored.as_deref(), SEAL_MILLIS).await;
    }
}

/// Adds new audit entries to checkpoints for `millis` milliseconds, and updates the anchor. Failures are retried in the
/// next turn.
pub(crate) async fn seal(operator: &Operator, anchored: Option<&Anchored>, millis: i64) {
    if let Err(error) = operator.seal_audit(millis).await {
        tracing::warn!(error = &error as &dyn Error, "audit entries were not sealed; the next attempt is in a second");
    }
    let Some(anchored) = anchored else { return };
    match anchored.follow(operator).await {
        Ok(()) => {}
        Err(error @ FollowError::RolledBack(_)) => tracing::error!("{error}"),
        Err(error) => {
            let error = &error as &dyn Error;
            tracing::warn!(error, "the anchor was not updated; the next attempt is in a second");
        }
    }
}

async fn work(operator: Operator, accounts: Accounts, mut ends: oneshot::Receiver<()>) {
    let mut delete_expired = tokio::time::interval(EXPIRED_EVERY);
    let mut record = tokio::time::interval(TALLY_EVERY);
    loop {
        tokio::select! {
            _ = &mut ends => return,
            _ = delete_expired.tick() => {
                let report = operator.maintain(EXPIRED_MILLIS).await;
                if let Some(skew_ms) = report.skew {
                    tracing::error!(
                        skew_ms,
                        "expired rows were not deleted: the clocks of this host and the database differ. Synchronize the clocks"
                    );
                }
                for (expired, error) in &report.failed {
                    let error = error as &dyn Error;
                    tracing::warn!(error, "expired {} were not deleted; the next attempt is in a minute", expired.as_str());
                }
            }
            _ = record.tick() => {
                if let Err(error) = operator.record_counts(false).await {
                    tracing::warn!(error = &error as &dyn Error, "counted actions were not recorded; the next attempt is in seconds");
                }
                if let Err(error) = accounts.write_session_uses().await {
                    tracing::warn!(error = &error as &dyn Error, "uses of sessions were not written; the next attempt is in seconds");
                }
            }
        }
    }
}
