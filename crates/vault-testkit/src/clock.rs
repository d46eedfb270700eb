//! Clocks, IDs, randomness and events under the control of a test.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use uuid::Uuid;
use vault_core::audit::AuditAction;
use vault_core::port::{Clock, Entropy, Event, EventSink, IdGenerator, NoEntropy};
use vault_core::time::Timestamp;

/// A clock that a test moves.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// The initial time of a clock: 2030-01-01T00:00:00Z.
    pub const START: Timestamp = Timestamp::from_millis(1_893_456_000_000);

    /// Creates a clock that shows `now`.
    pub const fn at(now: Timestamp) -> Self {
        Self(AtomicI64::new(now.as_millis()))
    }

    /// Sets the clock, forwards or backwards.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_millis(), Ordering::SeqCst);
    }

    /// Moves the clock by `seconds`, backwards if negative.
    pub fn advance_seconds(&self, seconds: i64) {
        self.advance_millis(seconds * 1000);
    }

    /// Moves the clock by `milliseconds`, backwards if negative.
    pub fn advance_millis(&self, milliseconds: i64) {
        self.0.fetch_add(milliseconds, Ordering::SeqCst);
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::at(Self::START)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// IDs from a counter: the same in every run, and valid UUIDs of the right version. Different seeds produce different
/// IDs.
#[derive(Debug)]
pub struct SequentialIds {
    seed: u64,
    /// The time of the latest ordered ID, and the number of ordered IDs.
    ordered: Mutex<(u64, u64)>,
    random: AtomicU64,
}

impl SequentialIds {
    /// Creates the IDs of `seed`, of which 42 bits are used.
    pub const fn seeded(seed: u64) -> Self {
        Self { seed, ordered: Mutex::new((0, 0)), random: AtomicU64::new(0) }
    }
}

impl Default for SequentialIds {
    fn default() -> Self {
        Self::seeded(0)
    }
}

impl IdGenerator for SequentialIds {
    fn ordered(&self, now: Timestamp) -> Uuid {
        let mut latest = lock(&self.ordered);
        // A clock that was moved back must not create an ID that sorts before an earlier one.
        latest.0 = latest.0.max(u64::try_from(now.as_millis()).unwrap_or(0)) & 0xffff_ffff_ffff;
        latest.1 += 1;
        let (millis, count) = *latest;
        // RFC 9562 section 5.7: 48 bits of time, version, 12 bits, variant, 62 bits. 32 bits count, 42 are the seed.
        let high = (millis << 16) | 0x7000 | ((count >> 20) & 0xfff);
        let low = (0b10 << 62) | ((count & 0xf_ffff) << 42) | (self.seed & 0x3ff_ffff_ffff);
        Uuid::from_u64_pair(high, low)
    }

    fn random(&self) -> Uuid {
        let count = self.random.fetch_add(1, Ordering::SeqCst);
        let high = scramble(self.seed ^ scramble(count));
        let low = scramble(high ^ count);
        // RFC 9562 section 5.4.
        Uuid::from_u64_pair((high & !0xf000) | 0x4000, (low & !(0b11 << 62)) | (0b10 << 62))
    }
}

/// Bytes that look random and are the same in every run.
#[derive(Debug)]
pub struct SeededEntropy {
    state: AtomicU64,
    exhausted: AtomicBool,
}

impl SeededEntropy {
    /// Creates the bytes of `seed`.
    pub const fn seeded(seed: u64) -> Self {
        Self { state: AtomicU64::new(seed), exhausted: AtomicBool::new(false) }
    }

    /// Makes the following requests for randomness fail (`true`) or succeed (`false`).
    pub fn exhaust(&self, exhausted: bool) {
        self.exhausted.store(exhausted, Ordering::SeqCst);
    }
}

impl Default for SeededEntropy {
    fn default() -> Self {
        Self::seeded(0)
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        if self.exhausted.load(Ordering::SeqCst) {
            return Err(NoEntropy);
        }
        for chunk in bytes.chunks_mut(8) {
            let word = scramble(self.state.fetch_add(1, Ordering::SeqCst)).to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        Ok(())
    }
}

/// Records every event.
#[derive(Debug, Default)]
pub struct RecordingEvents(Mutex<Vec<Event>>);

impl RecordingEvents {
    /// Returns the events so far.
    pub fn events(&self) -> Vec<Event> {
        lock(&self.0).clone()
    }

    /// Returns and removes the events so far.
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut lock(&self.0))
    }

    /// Returns how often this audit action was recorded.
    pub fn recorded(&self, action: AuditAction) -> usize {
        let of = |event: &&Event| matches!(event, Event::Recorded(record) if record.action == action);
        lock(&self.0).iter().filter(of).count()
    }

    /// Returns how often exactly this event was emitted.
    pub fn count(&self, event: &Event) -> usize {
        lock(&self.0).iter().filter(|emitted| *emitted == event).count()
    }
}

impl EventSink for RecordingEvents {
    fn emit(&self, event: Event) {
        lock(&self.0).push(event);
    }
}

/// The finaliser of SplitMix64: a permutation of all 64-bit words.
pub(crate) const fn scramble(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Locks the mutex, even after a test panicked with the lock held.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ordered_ids_ascend_when_clock_moves_back() {
        let ids = SequentialIds::seeded(7);
        let times = [5_000, 5_000, 4_000, 6_000, 0];
        let created: Vec<Uuid> = times.iter().map(|at| ids.ordered(Timestamp::from_millis(*at))).collect();
        assert!(created.is_sorted_by(|a, b| a < b));
        assert!(created.iter().all(|id| id.get_version_num() == 7 && id.get_variant() == uuid::Variant::RFC4122));
        assert_eq!(created[0].as_u64_pair().0 >> 16, 5_000);
    }

    #[test]
    fn random_ids_are_version_4_all_different_and_the_same_in_every_run() {
        let make = |seed| {
            let ids = SequentialIds::seeded(seed);
            (0..1_000).map(|_| ids.random()).collect::<Vec<_>>()
        };
        let (first, second) = (make(1), make(2));
        assert_eq!(first, make(1));
        assert!(first.iter().all(|id| id.get_version_num() == 4 && id.get_variant() == uuid::Variant::RFC4122));
        assert_eq!(first.iter().chain(&second).collect::<HashSet<_>>().len(), 2_000);
    }

    #[test]
    fn entropy_repeats_with_its_seed_and_fails_when_exhausted() {
        let fill = |seed| {
            let mut bytes = [0; 20];
            SeededEntropy::seeded(seed).fill(&mut bytes).unwrap();
            bytes
        };
        assert_eq!(fill(1), fill(1));
        assert_ne!(fill(1), fill(2));
        let entropy = SeededEntropy::default();
        entropy.exhaust(true);
        assert_eq!(entropy.fill(&mut [0; 4]), Err(NoEntropy));
    }

    #[test]
    fn clock_is_set_and_advanced() {
        let clock = ManualClock::default();
        clock.advance_seconds(30);
        clock.advance_millis(-1);
        assert_eq!(clock.now().millis_since(ManualClock::START), 29_999);
        clock.set(Timestamp::from_millis(5));
        assert_eq!(clock.now(), Timestamp::from_millis(5));
    }
}
