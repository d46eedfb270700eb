//! What a vault needs done in the background: expired rows deleted, counted acts and uses of sessions recorded.

use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use vault_core::usecase::{Accounts, Operator};

/// How often expired rows are deleted.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// How long a round of deleting may take: a tenth of the time, in milliseconds.
const SWEEP_MILLIS: i64 = 6_000;
/// How often counted acts are recorded.
const TALLY_EVERY: Duration = Duration::from_secs(5);

/// The background upkeep. It ends when this is dropped.
pub(crate) struct Upkeep(Mutex<Option<Running>>);

struct Running {
    end: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Upkeep {
    pub(crate) fn start(operator: Operator, accounts: Accounts) -> Self {
        let (end, ends) = oneshot::channel();
        Self(Mutex::new(Some(Running { end, task: tokio::spawn(work(operator, accounts, ends)) })))
    }

    /// Ends it, and waits until what it is recording is recorded.
    pub(crate) async fn end(&self) {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Running { end, task }) = running {
            drop(end);
            let _ = task.await; // only a panic, which has been reported
        }
    }
}

async fn work(operator: Operator, accounts: Accounts, mut ends: oneshot::Receiver<()>) {
    let mut sweep = tokio::time::interval(SWEEP_EVERY);
    let mut record = tokio::time::interval(TALLY_EVERY);
    loop {
        tokio::select! {
            _ = &mut ends => return,
            _ = sweep.tick() => {
                for (expired, error) in &operator.tidy(SWEEP_MILLIS).await.failed {
                    let error = error as &dyn Error;
                    tracing::warn!(error, "expired {} were not deleted; the next attempt is in a minute", expired.as_str());
                }
            }
            _ = record.tick() => {
                if let Err(error) = operator.record_counts(false).await {
                    tracing::warn!(error = &error as &dyn Error, "counted acts were not recorded; the next attempt is in seconds");
                }
                if let Err(error) = accounts.write_session_uses().await {
                    tracing::warn!(error = &error as &dyn Error, "uses of sessions were not written; the next attempt is in seconds");
                }
            }
        }
    }
}
