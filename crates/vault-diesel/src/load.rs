//! Load of a store.

use crate::failure::Reports;
use crate::turns::{Closed, FairSemaphore, Permit};
use std::sync::Arc;
use std::time::Instant;
use tracing::{Span, trace_span};
use vault_core::id::OrganizationId;
use vault_core::operation::Work;
use vault_core::port::Event;
use vault_core::trace::TARGET;

/// Load of a store at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreLoad {
    /// Queued changes. On the embedded database these are changes that the writer has not started. On PostgreSQL these
    /// are operations that wait for a shared transaction. Other requests wait for a
    /// connection instead.
    pub waiting: usize,
    /// Connections in use. On the embedded database, only readers are counted.
    pub in_use: usize,
    /// Open connections that are not in use.
    pub idle: usize,
    /// Maximum number of connections in use.
    pub limit: usize,
}

/// Creates the span of an operation, including its wait.
pub(crate) fn operating(work: &dyn Work) -> Span {
    let operation = work.name();
    match work.writes() {
        false => trace_span!(target: TARGET, "store.read", otel.kind = "client", query = operation),
        true => trace_span!(target: TARGET, "store.write", otel.kind = "client", command = operation),
    }
}

/// Waits for a permit of this organization. If none was free, emits how long the wait took and whether it succeeded,
/// even if the caller is cancelled.
pub(crate) async fn turn(
    turns: &FairSemaphore,
    organization: Option<OrganizationId>,
    reports: &Arc<Reports>,
) -> Result<Permit, Closed> {
    if let Some(turn) = turns.try_take()? {
        return Ok(turn);
    }
    let mut wait = Wait::new(Arc::clone(reports));
    let turn = turns.take(organization).await;
    wait.obtained = turn.is_ok();
    turn
}

/// A wait for a connection, which is reported when it ends.
pub(crate) struct Wait {
    began: Instant,
    /// Whether there is a connection.
    pub(crate) obtained: bool,
    reports: Arc<Reports>,
}

impl Wait {
    /// Starts the wait.
    pub(crate) fn new(reports: Arc<Reports>) -> Self {
        Self { began: Instant::now(), obtained: false, reports }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.reports.report(Event::ConnectionAwaited { waited: self.began.elapsed(), obtained: self.obtained });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use std::sync::Mutex;
    use vault_core::port::EventSink;

    #[derive(Clone, Default)]
    struct Waits(Arc<Mutex<Vec<bool>>>);

    impl EventSink for Waits {
        fn emit(&self, event: Event) {
            let Event::ConnectionAwaited { obtained, .. } = event else { panic!("{event:?}") };
            self.0.lock().expect("nothing panics").push(obtained);
        }
    }

    #[tokio::test]
    async fn connection_waits_are_reported_with_outcome() {
        let (waits, reports, turns) = (Waits::default(), Arc::new(Reports::default()), FairSemaphore::new(1));
        reports.to(Arc::new(waits.clone()));
        let seen = || waits.0.lock().expect("nothing panics").clone();
        let first = turn(&turns, None, &reports).await.expect("it is open");
        assert!(seen().is_empty(), "it was free");

        let second = turn(&turns, None, &reports);
        let mut second = std::pin::pin!(second);
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        let second = second.await.expect("it is open");
        assert_eq!(seen(), [true]);

        assert!(turn(&turns, None, &reports).now_or_never().is_none(), "its caller goes away");
        assert_eq!(seen(), [true, false]);
        let third = turn(&turns, None, &reports);
        let mut third = std::pin::pin!(third);
        assert!(third.as_mut().now_or_never().is_none());
        turns.close();
        assert!(third.await.is_err());
        assert_eq!(seen(), [true, false, false]);
        drop(second);
    }
}
