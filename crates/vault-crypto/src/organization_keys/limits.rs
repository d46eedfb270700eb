//! How often a key is used, and how much is remembered.

/// Bounds on the use of organization keys. The defaults are the most that is allowed; anything higher counts as
/// the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUseLimits {
    /// How many uses are taken from a key's row at once.
    pub block: i64,
    /// The uses after which a key is replaced.
    pub replace_at: i64,
    /// The uses after which a key seals no more, even if it could not be replaced. One in 16 of the bound for
    /// random nonces (2^32, NIST SP 800-38D section 8.3).
    pub stop_at: i64,
    /// How many organizations' keys are kept in memory.
    pub organizations: usize,
}

impl KeyUseLimits {
    const MOST: Self = Self { block: 65_536, replace_at: 1 << 24, stop_at: 1 << 28, organizations: 10_000 };

    pub(super) fn within_bounds(self) -> Self {
        Self {
            block: self.block.clamp(1, Self::MOST.block),
            replace_at: self.replace_at.clamp(1, Self::MOST.replace_at),
            stop_at: self.stop_at.clamp(1, Self::MOST.stop_at),
            organizations: self.organizations.clamp(1, Self::MOST.organizations),
        }
    }
}

impl Default for KeyUseLimits {
    fn default() -> Self {
        Self::MOST
    }
}
