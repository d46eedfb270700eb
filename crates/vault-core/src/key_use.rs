//! How often one organization key may seal.
//!
//! Each seal draws a random 96-bit nonce, and the chance that two are equal limits a key to 2^32 seals (NIST SP 800-38D,
//! section 8.3). Uses are taken from the key's row in blocks before they are needed, so neither a crash nor another
//! replica can use one twice.

/// The limits on the use of one organization key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUseLimits {
    block: i64,
    replace_at: i64,
    stop_at: i64,
}

/// How a caller gets further uses of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUseDecision {
    /// Take the next block.
    Take,
    /// Replace the key. If that fails, take the next block.
    ReplaceOrTake,
    /// Replace the key: no whole block is left.
    Replace,
}

impl KeyUseLimits {
    /// The highest limits: blocks of 65,536 uses, a replacement from 2^24 uses on, none after 2^28. The last is a
    /// sixteenth of what NIST allows.
    pub const MOST: Self = Self { block: 65_536, replace_at: 1 << 24, stop_at: 1 << 28 };

    /// Lower limits than [`KeyUseLimits::MOST`], in uses. Higher values, and values below 1, are brought into range.
    pub fn new(block: i64, replace_at: i64, stop_at: i64) -> Self {
        Self {
            block: block.clamp(1, Self::MOST.block),
            replace_at: replace_at.clamp(1, Self::MOST.replace_at),
            stop_at: stop_at.clamp(1, Self::MOST.stop_at),
        }
    }

    /// How many uses to take at once.
    pub const fn block(self) -> i64 {
        self.block
    }

    /// From how many uses on a save replaces the key.
    pub const fn replace_at(self) -> i64 {
        self.replace_at
    }

    /// After how many uses the key seals nothing more.
    pub const fn stop_at(self) -> i64 {
        self.stop_at
    }

    /// How much of its uses a key has had of which `taken` are taken: at 1 it seals nothing more.
    pub fn part_used(self, taken: i64) -> f64 {
        // The limit fits: it is 2^28 at most.
        let number = |uses: i64| f64::from(i32::try_from(uses).unwrap_or(i32::MAX));
        number(taken) / number(self.stop_at)
    }

    /// Decides for a key of which `taken` uses are taken.
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
