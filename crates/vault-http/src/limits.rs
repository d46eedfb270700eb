//! Limits of the rate of expensive requests, and of concurrent requests per caller. A rate limit alone is not sufficient: if a
//! storage provider or database does not respond, a request lasts until its deadline, even if its client has disconnected.
//!
//! Rejections during a flood are delayed. Otherwise, clients that ignore `Retry-After` would use the processor time for password
//! hashing, which has the lowest priority. Rejections at a low rate are not delayed.

use crate::settings::Rate;
use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use std::collections::HashMap;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use vault_core::network::Network;

/// Number of requests after which idle entries are removed.
const FORGET_EVERY: u32 = 1_024;

/// Returns the network for rate limits: an IPv4 /24, or the IPv6 /48 that contains `network`. Login attempts are
/// counted per smaller IPv6 network, of which a site with a /48 has 256.
pub(crate) fn limited_network(network: Network) -> Network {
    match network {
        Network::V4(_) => network,
        Network::V6([a, b, c, d, e, f, _]) => Network::V6([a, b, c, d, e, f, 0]),
    }
}

/// Counts requests per `K` for all workers.
pub(crate) struct Limiter<K: Clone + Eq + Hash, C: Clock + Clone = DefaultClock> {
    clock: C,
    counts: RateLimiter<K, HashMapStateStore<K>, C, NoOpMiddleware<C::Instant>>,
    since_forgotten: AtomicU32,
}

impl<K: Clone + Eq + Hash> Limiter<K> {
    pub(crate) fn new(rate: Rate) -> Self {
        Self::with_clock(rate, DefaultClock::default())
    }
}

impl<K: Clone + Eq + Hash, C: Clock + Clone> Limiter<K, C> {
    fn with_clock(rate: Rate, clock: C) -> Self {
        let quota = Quota::per_second(rate.per_second).allow_burst(rate.burst);
        let counts = RateLimiter::hashmap_with_clock(quota, clock.clone());
        Self { clock, counts, since_forgotten: AtomicU32::new(0) }
    }

    /// Counts a request of `key`, unless its limit is reached.
    ///
    /// # Errors
    /// The number of seconds until the next request is accepted.
    pub(crate) fn check(&self, key: K) -> Result<(), u32> {
        self.forget_idle();
        self.counts.check_key(&key).map_err(|early| whole_seconds(early.wait_time_from(self.clock.now())))
    }

    /// Removes idle entries, so that memory is proportional to the number of limited keys and recent requests.
    fn forget_idle(&self) {
        if self.since_forgotten.fetch_add(1, Ordering::Relaxed) >= FORGET_EVERY {
            self.since_forgotten.store(0, Ordering::Relaxed);
            self.counts.retain_recent();
            self.counts.shrink_to_fit();
        }
    }
}

/// Rounds up to whole seconds, so that a client that waits for the stated time is accepted.
fn whole_seconds(wait: Duration) -> u32 {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    u32::try_from(seconds).unwrap_or(u32::MAX).max(1)
}

/// Maximum number of concurrent requests per caller to storage providers.
pub(crate) const STORAGE_REQUESTS: usize = 8;

type Counts<K> = Arc<Mutex<HashMap<K, usize>>>;

/// Counts concurrent requests per caller.
pub(crate) struct ConcurrencyLimit<K: Eq + Hash> {
    limit: usize,
    counts: Counts<K>,
}

impl<K: Copy + Eq + Hash> ConcurrencyLimit<K> {
    /// Creates a limit of `limit` concurrent requests per caller.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, counts: Counts::default() }
    }

    /// Counts a request of `caller` until the permit is dropped. Returns `None` at the limit.
    pub(crate) fn acquire(&self, caller: K) -> Option<Permit<K>> {
        let mut counts = lock(&self.counts);
        let count = counts.entry(caller).or_default();
        if *count >= self.limit {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(Permit { counts: Arc::clone(&self.counts), caller })
    }
}

/// A request in progress. It moves to the task that does the work, so that the request counts until that has ended.
pub(crate) struct Permit<K: Eq + Hash> {
    counts: Counts<K>,
    caller: K,
}

impl<K: Eq + Hash> Drop for Permit<K> {
    fn drop(&mut self) {
        let mut counts = lock(&self.counts);
        if let Some(count) = counts.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.caller);
            }
        }
    }
}

fn lock<K>(counts: &Mutex<HashMap<K, usize>>) -> MutexGuard<'_, HashMap<K, usize>> {
    // Each change is a single step, so a poisoned lock can still be used.
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Rejections per second without delay. They cost a few percent of a core.
const UNDELAYED: NonZeroU32 = NonZeroU32::new(100).unwrap();
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
        let quota = Quota::per_second(UNDELAYED).allow_burst(BURST);
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
    use std::num::NonZeroU32;

    fn limiter(per_second: u32, burst: u32) -> (Limiter<Network, FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        let (Some(per_second), Some(burst)) = (NonZeroU32::new(per_second), NonZeroU32::new(burst)) else {
            panic!("a rate is not nothing")
        };
        (Limiter::with_clock(Rate { per_second, burst }, clock.clone()), clock)
    }

    fn network(address: &str) -> Network {
        limited_network(address.parse().map(Network::of).unwrap_or(Network::V4([0; 3])))
    }

    #[test]
    fn network_is_limited_by_burst_and_rate() {
        let (limiter, clock) = limiter(2, 3);
        let ask = |address: &str| limiter.check(network(address)).map_err(|_| "too many");
        let refused = Err("too many");
        for last in 1..=3 {
            assert_eq!(ask(&format!("192.0.2.{last}")), Ok(()));
        }
        assert_eq!(ask("192.0.2.200"), refused, "the whole /24 is one");
        assert_eq!(ask("::ffff:192.0.2.1"), refused, "however it is written");
        assert_eq!(ask("192.0.3.1"), Ok(()), "the next is another");
        clock.advance(Duration::from_millis(499));
        assert_eq!(ask("192.0.2.1"), refused);
        clock.advance(Duration::from_millis(1));
        assert_eq!(ask("192.0.2.1"), Ok(()));
        assert_eq!(ask("192.0.2.1"), refused);
        for address in ["2001:db8:0:1::1", "2001:db8:0:ff00::1", "2001:db8::1"] {
            assert_eq!(ask(address), Ok(()));
        }
        assert_eq!(ask("2001:db8:0:7::1"), refused, "a /48 is one, and each /56 of it no more");
        assert_eq!(ask("2001:db8:1::1"), Ok(()), "the next is another");
    }

    #[test]
    fn lockouts_are_reported_in_whole_seconds() {
        for (millis, seconds) in [(0, 1), (1, 1), (1_000, 1), (1_001, 2), (59_999, 60), (u64::MAX, u32::MAX)] {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds);
        }
        let (limiter, clock) = limiter(1, 1);
        assert!(limiter.check(network("192.0.2.1")).is_ok());
        clock.advance(Duration::from_millis(1));
        assert_eq!(limiter.check(network("192.0.2.1")), Err(1));
    }

    #[test]
    fn replenished_networks_are_evicted() {
        let (limiter, clock) = limiter(10, 10);
        for number in 0..100_000_u32 {
            let [_, a, b, c] = number.to_be_bytes();
            assert!(limiter.check(Network::V4([a, b, c])).is_ok());
            clock.advance(Duration::from_millis(1));
            assert!(limiter.counts.len() <= 2 * FORGET_EVERY as usize + 1_100);
        }
    }

    #[test]
    fn request_limit_is_per_caller_and_excludes_finished_requests() {
        let limit = ConcurrencyLimit::new(3);
        let mut permits: Vec<_> = std::iter::from_fn(|| limit.acquire(1)).collect();
        assert_eq!(permits.len(), 3);
        assert!(limit.acquire(2).is_some(), "another one is not affected");
        permits.pop();
        let again = limit.acquire(1);
        assert!(again.is_some() && limit.acquire(1).is_none());
        drop((again, permits));
        assert!(lock(&limit.counts).is_empty(), "nothing is kept of those that have nothing under way");
    }

    #[tokio::test(start_paused = true)]
    async fn permitted_requests_are_not_delayed() {
        let clock = FakeRelativeClock::default();
        let throttle = Throttle::new(1, clock.clone());
        for _ in 0..BURST.get() {
            assert!(throttle.delay().now_or_never().is_some());
        }
        assert!(throttle.delay().now_or_never().is_none());
        clock.advance(Duration::from_secs(1));
        for _ in 0..UNDELAYED.get() {
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
