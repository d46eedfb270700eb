//! A deadline that moves at every request without touching the timer.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::time::{Instant, Sleep, sleep_until};

/// A deadline that may be set, moved and lifted cheaply. The timer behind it only ever runs too early: when it goes
/// off, the deadline decides.
#[derive(Default)]
pub(crate) struct Watch {
    deadline: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Watch {
    /// Sets the deadline, unless there is one.
    pub(crate) fn begin(&mut self, deadline: impl FnOnce() -> Instant) {
        self.deadline.get_or_insert_with(deadline);
    }

    /// Sets the deadline, whatever it was.
    pub(crate) fn set(&mut self, deadline: Instant) {
        self.deadline = Some(deadline);
    }

    /// Lifts the deadline.
    pub(crate) fn lift(&mut self) {
        self.deadline = None;
    }

    /// Ready once the deadline has passed. The task is woken then.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.deadline else { return Poll::Pending };
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
