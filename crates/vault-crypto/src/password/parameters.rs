//! The cost of a password hash (RFC 9106 section 3.1).

use argon2::Params;
use std::fmt;
use std::str::FromStr;
use vault_core::field::Invalid;

/// The cost of one argon2id hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Argon2Parameters {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
}

/// The error for parameters out of bounds or in another spelling.
pub(super) const OUT_OF_BOUNDS: Invalid =
    Invalid("argon2id parameters out of range: 19456 to 65536 KiB of memory, 2 to 10 passes, 1 to 4 lanes");

impl Argon2Parameters {
    /// The minimum for new hashes (OWASP Password Storage Cheat Sheet): 19 MiB, 2 passes, 1 lane.
    pub const LEAST: Self = Self { memory_kib: 19_456, passes: 2, lanes: 1 };
    /// The maximum, also for stored hashes: it bounds the memory and time that a row can cost.
    pub const MOST: Self = Self { memory_kib: 65_536, passes: 10, lanes: 4 };

    /// Creates parameters for new hashes.
    ///
    /// # Errors
    /// Below [`Argon2Parameters::LEAST`] or above [`Argon2Parameters::MOST`] in any part.
    pub const fn new(memory_kib: u32, passes: u32, lanes: u32) -> Result<Self, Invalid> {
        let parameters = Self { memory_kib, passes, lanes };
        if parameters.lags_behind(Self::LEAST) { Err(OUT_OF_BOUNDS) } else { parameters.capped() }
    }

    const fn capped(self) -> Result<Self, Invalid> {
        if Self::MOST.lags_behind(self) || self.lanes == 0 || self.passes == 0 || self.memory_kib < 8 * self.lanes {
            Err(OUT_OF_BOUNDS)
        } else {
            Ok(self)
        }
    }

    /// Returns whether any parameter is less than that of `other`.
    pub(super) const fn lags_behind(self, other: Self) -> bool {
        self.memory_kib < other.memory_kib || self.passes < other.passes || self.lanes < other.lanes
    }

    pub(super) fn to_argon2(self) -> Result<Params, argon2::Error> {
        Params::new(self.memory_kib, self.passes, self.lanes, Some(super::verifier::HASH))
    }
}

/// As in a PHC string: `m=19456,t=2,p=1`.
impl fmt::Display for Argon2Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { memory_kib, passes, lanes } = self;
        write!(f, "m={memory_kib},t={passes},p={lanes}")
    }
}

/// The parameters of a stored hash, in the spelling of [`Display`](fmt::Display) only. They may be below
/// [`Argon2Parameters::LEAST`], not above [`Argon2Parameters::MOST`].
impl FromStr for Argon2Parameters {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let mut parts = text.split(',');
        let mut next = |name: &str| -> Result<u32, Invalid> {
            let digits = parts.next().and_then(|part| part.strip_prefix(name)).ok_or(OUT_OF_BOUNDS)?;
            digits.parse().map_err(|_| OUT_OF_BOUNDS)
        };
        let parameters = Self { memory_kib: next("m=")?, passes: next("t=")?, lanes: next("p=")? }.capped()?;
        // `parse` also takes a sign and leading zeros, and there may be more parts.
        if parameters.to_string() == text { Ok(parameters) } else { Err(OUT_OF_BOUNDS) }
    }
}

impl Default for Argon2Parameters {
    fn default() -> Self {
        Self::LEAST
    }
}
