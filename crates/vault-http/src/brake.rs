//! Holding refusals back for a moment, in a flood of them. Clients that ignore `Retry-After` and ask again at once would
//! otherwise take the processor time that is left for hashing, which is the least urgent work there is. Refusals that come
//! no faster than they can be afforded are answered at once.

use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use std::num::NonZeroU32;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How many refusals a second are answered at once: a few hundredths of one core.
const AT_ONCE: NonZeroU32 = NonZeroU32::new(100).unwrap();
/// How many more after a rest.
const BURST: NonZeroU32 = NonZeroU32::new(500).unwrap();
/// How long any other refusal is held back.
const HOLD: Duration = Duration::from_millis(100);
/// How many are held back at once; more are answered without delay, so that a flood costs no memory either.
const HELD: usize = 1_024;

/// Holds refusals back.
pub(crate) struct Brake<C: Clock = DefaultClock> {
    affordable: RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<C::Instant>>,
    held: Semaphore,
}

impl Default for Brake {
    fn default() -> Self {
        Self::new(HELD, DefaultClock::default())
    }
}

impl<C: Clock> Brake<C> {
    fn new(held: usize, clock: C) -> Self {
        let quota = Quota::per_second(AT_ONCE).allow_burst(BURST);
        Self { affordable: RateLimiter::direct_with_clock(quota, clock), held: Semaphore::new(held) }
    }

    /// Waits a moment, unless there are few refusals, or too many wait already.
    pub(crate) async fn hold(&self) {
        if self.affordable.check().is_ok() {
            return;
        }
        if let Ok(_held) = self.held.try_acquire() {
            tokio::time::sleep(HOLD).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use governor::clock::FakeRelativeClock;

    #[tokio::test(start_paused = true)]
    async fn what_can_be_afforded_is_answered_at_once() {
        let clock = FakeRelativeClock::default();
        let brake = Brake::new(1, clock.clone());
        for _ in 0..BURST.get() {
            assert!(brake.hold().now_or_never().is_some());
        }
        assert!(brake.hold().now_or_never().is_none());
        clock.advance(Duration::from_secs(1));
        for _ in 0..AT_ONCE.get() {
            assert!(brake.hold().now_or_never().is_some());
        }
        assert!(brake.hold().now_or_never().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_wait_and_no_more() {
        let brake = Brake::new(3, FakeRelativeClock::default());
        while brake.affordable.check().is_ok() {}
        let mut held: Vec<_> = (0..3).map(|_| Box::pin(brake.hold())).collect();
        assert!(held.iter_mut().all(|hold| hold.now_or_never().is_none()));
        assert!(brake.hold().now_or_never().is_some());
        tokio::time::advance(2 * HOLD).await;
        assert!(held.iter_mut().all(|hold| hold.now_or_never().is_some()));
        assert!(brake.hold().now_or_never().is_none());
    }
}
