//! How much work a password hash is (RFC 9106 section 3.1).

use argon2::Params;

/// The cost of one argon2id hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argon2Parameters {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
}

/// Parameters weaker than the least or heavier than the most that is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("argon2id takes 19456 to 65536 KiB of memory, 2 to 10 passes and 1 to 4 lanes")]
pub struct ParametersOutOfBounds;

impl Argon2Parameters {
    /// The least for new hashes (OWASP Password Storage Cheat Sheet): 19 MiB, 2 passes, 1 lane.
    pub const LEAST: Self = Self { memory_kib: 19_456, passes: 2, lanes: 1 };
    /// The most, for stored hashes too: what a row says is not allowed to take more memory or time.
    pub const MOST: Self = Self { memory_kib: 65_536, passes: 10, lanes: 4 };

    /// Parameters for new hashes.
    ///
    /// # Errors
    /// Below [`Argon2Parameters::LEAST`] or above [`Argon2Parameters::MOST`] in any part.
    pub const fn new(memory_kib: u32, passes: u32, lanes: u32) -> Result<Self, ParametersOutOfBounds> {
        let parameters = Self { memory_kib, passes, lanes };
        if parameters.lags_behind(Self::LEAST) { Err(ParametersOutOfBounds) } else { parameters.capped() }
    }

    /// The parameters of a stored hash, which may be weaker than today's least but not heavier than the most.
    pub(super) const fn stored(memory_kib: u32, passes: u32, lanes: u32) -> Result<Self, ParametersOutOfBounds> {
        Self { memory_kib, passes, lanes }.capped()
    }

    const fn capped(self) -> Result<Self, ParametersOutOfBounds> {
        if Self::MOST.lags_behind(self) || self.lanes == 0 || self.passes == 0 || self.memory_kib < 8 * self.lanes {
            Err(ParametersOutOfBounds)
        } else {
            Ok(self)
        }
    }

    /// Whether any part is less than `other`'s.
    pub(super) const fn lags_behind(self, other: Self) -> bool {
        self.memory_kib < other.memory_kib || self.passes < other.passes || self.lanes < other.lanes
    }

    pub(super) const fn parts(self) -> [u32; 3] {
        [self.memory_kib, self.passes, self.lanes]
    }

    pub(super) fn to_argon2(self) -> Result<Params, argon2::Error> {
        Params::new(self.memory_kib, self.passes, self.lanes, Some(super::verifier::HASH))
    }
}

impl Default for Argon2Parameters {
    fn default() -> Self {
        Self::LEAST
    }
}
