//! A transaction that is queued for the writer.

use super::severity::classify;
use crate::failure::{Severity, fault};
use crate::rows::Kept;
use crate::work::{End, MovedWork};
use diesel::SqliteConnection;
use futures_util::FutureExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;
use tokio::sync::oneshot;
use vault_core::port::StoreError;

/// Outcome of a task, as far as the batch needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ran {
    /// Its changes are to be committed.
    Kept,
    /// Its changes are to be undone.
    Undone,
    /// It failed. Its changes are to be undone, and the connection may have to be replaced.
    Failed(Severity),
}

/// The work with its outcome, or why it was not committed.
type Returned = Result<Box<dyn MovedWork>, StoreError>;

/// A transaction with everything it needs, including its caller.
pub(super) struct Task {
    work: Box<dyn MovedWork>,
    result: Option<Result<(), StoreError>>,
    reply: oneshot::Sender<Returned>,
    queued_at: Instant,
}

impl Task {
    pub(super) fn new(work: Box<dyn MovedWork>) -> (Self, oneshot::Receiver<Returned>) {
        let (reply, answer) = oneshot::channel();
        (Self { work, result: None, reply, queued_at: Instant::now() }, answer)
    }

    /// Runs the task in the open transaction and stores its result. May be called again.
    pub(super) fn run(&mut self, connection: &mut SqliteConnection, kept: &Kept) -> Ran {
        let work = &mut self.work;
        let run = AssertUnwindSafe(|| work.run(connection, kept).now_or_never());
        let (result, ran) = match catch_unwind(run) {
            Ok(Some(Ok(End::RollBack))) => (Ok(()), Ran::Undone),
            Ok(Some(Ok(End::Commit | End::Unchanged))) => (Ok(()), Ran::Kept),
            Ok(Some(Err(failure))) => {
                let severity = failure.severity(classify);
                (Err(failure.into_store_error(classify)), Ran::Failed(severity))
            }
            Ok(None) => (Err(fault("a decision waited")), Ran::Failed(Severity::BrokenElsewhere)),
            Err(_) => (Err(fault("a decision panicked")), Ran::Failed(Severity::Broken)),
        };
        self.result = Some(result);
        ran
    }

    /// Sends the work with its outcome to the caller, after the commit.
    pub(super) fn answer(self) {
        let result = self.result.unwrap_or_else(|| Err(fault("a decision was not run")));
        // The caller may have been dropped. The transaction is committed either way.
        let _ = self.reply.send(result.map(|()| self.work));
    }

    /// Sends an error to the caller: the stored one, or `failure` if there is none.
    pub(super) fn give_up(self, failure: StoreError) {
        let failure = self.result.and_then(Result::err).unwrap_or(failure);
        let _ = self.reply.send(Err(failure));
    }

    /// Returns when the caller queued the task.
    pub(super) const fn queued_at(&self) -> Instant {
        self.queued_at
    }
}
