//! How busy a store is.

use crate::failure::Reports;
use crate::turns::{Closed, Turn, Turns};
use std::time::Instant;
use tracing::{Span, trace_span};
use vault_core::id::OrganizationId;
use vault_core::port::Event;
use vault_core::trace::TARGET;

/// How busy a store is at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreLoad {
    /// Changes that wait for the one writer of the embedded database, without those that it is making. On PostgreSQL:
    /// saves, changes and deletes that wait to share a transaction; others wait for a connection.
    pub waiting: usize,
    /// Connections that are used now. Of the embedded database only readers are counted.
    pub in_use: usize,
    /// Connections that are open and wait for use.
    pub idle: usize,
    /// The most connections that are used at once.
    pub limit: usize,
}

/// The span of a read, which `Q` asks for.
pub(crate) fn reading<Q>() -> Span {
    trace_span!(target: TARGET, "store.read", otel.kind = "client", query = subject::<Q>())
}

/// The span of a change, which `C` describes, with the wait for its turn.
pub(crate) fn writing<C>() -> Span {
    trace_span!(target: TARGET, "store.write", otel.kind = "client", command = subject::<C>())
}

/// The last name in the name of a type: that of the act, where it is a command.
fn subject<T>() -> &'static str {
    let name = std::any::type_name::<T>().trim_end_matches(['>', ')', ',']);
    name.rsplit(|letter: char| !(letter.is_alphanumeric() || letter == '_')).next().unwrap_or_default()
}

/// The right to use a connection for a request of this organization, when its turn has come. Reports how long that took,
/// if it was not there at once; a caller that gives up reports it too.
pub(crate) async fn turn(
    turns: &Turns,
    organization: Option<OrganizationId>,
    reports: &Reports,
) -> Result<Turn, Closed> {
    if let Some(turn) = turns.try_take()? {
        return Ok(turn);
    }
    let mut wait = Wait { began: Instant::now(), obtained: false, reports };
    let turn = turns.take(organization).await;
    wait.obtained = turn.is_ok();
    turn
}

struct Wait<'a> {
    began: Instant,
    obtained: bool,
    reports: &'a Reports,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.reports.tell(Event::ConnectionAwaited { waited: self.began.elapsed(), obtained: self.obtained });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use std::sync::{Arc, Mutex};
    use vault_core::port::EventSink;

    #[derive(Clone, Default)]
    struct Waits(Arc<Mutex<Vec<bool>>>);

    impl EventSink for Waits {
        fn emit(&self, event: Event) {
            let Event::ConnectionAwaited { obtained, .. } = event else { panic!("{event:?}") };
            self.0.lock().expect("nothing panics").push(obtained);
        }
    }

    #[test]
    fn a_span_names_the_act_of_its_command() {
        use vault_core::Command;
        use vault_core::port::SaveCredential;
        assert_eq!(subject::<Command<SaveCredential>>(), "SaveCredential");
        assert_eq!(subject::<SaveCredential>(), "SaveCredential");
        assert_eq!((subject::<()>(), subject::<Vec<u8>>()), ("", "u8"));
    }

    #[tokio::test]
    async fn whoever_must_wait_is_reported_with_the_outcome() {
        let (waits, reports, turns) = (Waits::default(), Reports::default(), Turns::new(1));
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
