//! Random numbers that are the same in each run with the same seed.

use std::time::Duration;

/// A random generator (SplitMix64).
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    /// Creates generator `number` of `seed`.
    pub fn of(seed: u64, number: u64) -> Self {
        Self(seed.wrapping_mul(0xD6E8_FEB8_6659_FD93) ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// Returns the next random number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a random number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.draw() % u64::try_from(end).unwrap()).unwrap()
    }

    /// Returns a random duration in this range of milliseconds.
    pub fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.draw() % (to - from))
    }
}
