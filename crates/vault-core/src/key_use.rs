//! Limits of the number of seals per organization key.
//!
//! Each seal uses a random 96-bit nonce, and the probability that two are equal limits a key to 2^32 seals (NIST SP
//! 800-38D, section 8.3). Uses are reserved in the key's row in blocks before they are needed, so that neither a crash
//! nor another replica can use one twice.

/// Limits of the uses of one organization key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUseLimits {
    block: i64,
    replace_at: i64,
    stop_at: i64,
}

/// How to get further uses of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUseDecision {
    /// Reserve the next block.
    Take,
    /// Replace the key. If that fails, reserve the next block.
    ReplaceOrTake,
    /// Replace the key, because no complete block remains.
    Replace,
}

impl KeyUseLimits {
    /// Highest limits: blocks of 65,536 uses, replacement from 2^24 uses, and no use after 2^28. The last is a
    /// sixteenth of what NIST permits.
    pub const MOST: Self = Self { block: 65_536, replace_at: 1 << 24, stop_at: 1 << 28 };

    /// Creates lower limits than [`KeyUseLimits::MOST`], in uses. Values outside 1 to that maximum are clamped.
    pub fn new(block: i64, replace_at: i64, stop_at: i64) -> Self {
        Self {
            block: block.clamp(1, Self::MOST.block),
            replace_at: replace_at.clamp(1, Self::MOST.replace_at),
            stop_at: stop_at.clamp(1, Self::MOST.stop_at),
        }
    }

    /// Returns the number of uses per block.
    pub const fn block(self) -> i64 {
        self.block
    }

    /// Returns the number of uses from which a save replaces the key.
    pub const fn replace_at(self) -> i64 {
        self.replace_at
    }

    /// Returns the number of uses after which the key seals nothing.
    pub const fn stop_at(self) -> i64 {
        self.stop_at
    }

    /// Returns the used fraction of a key with `taken` reserved uses. At 1, it seals nothing.
    pub fn part_used(self, taken: i64) -> f64 {
        // The limit is at most 2^28, so it fits.
        let number = |uses: i64| f64::from(i32::try_from(uses).unwrap_or(i32::MAX));
        number(taken) / number(self.stop_at)
    }

    /// Decides for a key with `taken` reserved uses.
    pub const fn decide(self, taken: i64) -> KeyUseDecision {
        if taken.saturating_add(self.block) > self.stop_at {
            KeyUseDecision::Replace
        } else if taken >= self.replace_at {
            KeyUseDecision::ReplaceOrTake
        } else {
            KeyUseDecision::Take
        }
    }
}

impl Default for KeyUseLimits {
    fn default() -> Self {
        Self::MOST
    }
}
