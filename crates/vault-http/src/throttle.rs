//! Delay of rejections during a flood. Otherwise, clients that ignore `Retry-After` would use the processor time for
//! password hashing, which has the lowest priority. Rejections at a low rate are not delayed.

use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use std::num::NonZeroU32;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Rejections per second without delay. They cost a few percent of a core.
const AT_ONCE: NonZeroU32 = NonZeroU32::new(100).unwrap();
/// Additional rejections without delay in a burst.
const BURST: NonZeroU32 = NonZeroU32::new(500).unwrap();
/// Delay of other rejections.
const DELAY: Duration = Duration::from_millis(100);
/// Maximum number of concurrently delayed rejections. Others are sent immediately, which limits the memory use of a
/// flood.
const DELAYED: usize = 1_024;

/// Delays rejections.
pub(crate) struct Throttle<C: Clock = DefaultClock> {
    affordable: RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<C::Instant>>,
    delayed: Semaphore,
}

impl Default for Throttle {
    fn default() -> Self {
        Self::new(DELAYED, DefaultClock::default())
    }
}

impl<C: Clock> Throttle<C> {
    fn new(delayed: usize, clock: C) -> Self {
        let quota = Quota::per_second(AT_ONCE).allow_burst(BURST);
        Self { affordable: RateLimiter::direct_with_clock(quota, clock), delayed: Semaphore::new(delayed) }
    }

    /// Delays a rejection, unless the rate is low or too many are already delayed.
    pub(crate) async fn delay(&self) {
        if self.affordable.check().is_ok() {
            return;
        }
        if let Ok(_delayed) = self.delayed.try_acquire() {
            tokio::time::sleep(DELAY).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use governor::clock::FakeRelativeClock;

    #[tokio::test(start_paused = true)]
    async fn permitted_requests_are_not_delayed() {
        let clock = FakeRelativeClock::default();
        let throttle = Throttle::new(1, clock.clone());
        for _ in 0..BURST.get() {
            assert!(throttle.delay().now_or_never().is_some());
        }
        assert!(throttle.delay().now_or_never().is_none());
        clock.advance(Duration::from_secs(1));
        for _ in 0..AT_ONCE.get() {
            assert!(throttle.delay().now_or_never().is_some());
        }
        assert!(throttle.delay().now_or_never().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn delayed_requests_are_limited() {
        let throttle = Throttle::new(3, FakeRelativeClock::default());
        while throttle.affordable.check().is_ok() {}
        let mut delayed: Vec<_> = (0..3).map(|_| Box::pin(throttle.delay())).collect();
        assert!(delayed.iter_mut().all(|delay| delay.now_or_never().is_none()));
        assert!(throttle.delay().now_or_never().is_some());
        tokio::time::advance(2 * DELAY).await;
        assert!(delayed.iter_mut().all(|delay| delay.now_or_never().is_some()));
        assert!(throttle.delay().now_or_never().is_none());
    }
}
