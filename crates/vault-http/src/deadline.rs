//! A deadline that is set and cleared for every request without resetting the timer.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::time::{Instant, Sleep, sleep_until};

/// A deadline that is cheap to set and clear. Its timer may fire too early but not too late. When it fires, the
/// deadline is compared with the current time.
#[derive(Default)]
pub(crate) struct Deadline {
    at: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    /// Sets the deadline unless it is already set.
    pub(crate) fn set_once(&mut self, deadline: impl FnOnce() -> Instant) {
        self.at.get_or_insert_with(deadline);
    }

    pub(crate) fn clear(&mut self) {
        self.at = None;
    }

    /// Returns `Ready` after the deadline has passed, and wakes the task then.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.at else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if timer.deadline() > deadline {
            timer.as_mut().reset(deadline);
        }
        while timer.as_mut().poll(context).is_ready() {
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}
