//! Versions of a credential, and their retention.

use crate::time::Timestamp;
use strum::{EnumString, IntoStaticStr, VariantArray};

/// State of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum VersionState {
    /// The version that activations issue. Every credential has exactly one.
    Current,
    /// Awaits promotion. A credential has at most one.
    Staged,
    /// Was current before, and can be promoted again.
    Previous,
}

named!(VersionState);

/// Limits of the number and retention of versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionLimits {
    /// Maximum number of versions of a credential, including the current and the staged one. At least 2.
    pub versions: usize,
    /// Retention of a previous version after it was replaced, in seconds. 0 keeps none.
    pub previous_seconds: i64,
}

impl Default for VersionLimits {
    /// Returns 5 versions and 30 days.
    fn default() -> Self {
        Self { versions: 5, previous_seconds: 30 * 24 * 3_600 }
    }
}

/// Time at which a version stopped being the current one, and time of its destruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superseded {
    /// Time at which it stopped being the current version.
    pub at: Timestamp,
    /// Time from which it counts as destroyed. Maintenance deletes it later.
    pub destroy_at: Timestamp,
}

impl VersionLimits {
    /// Returns the times for a version that is replaced at `now`.
    pub fn supersede(&self, now: Timestamp) -> Superseded {
        Superseded { at: now, destroy_at: now.plus_seconds(self.previous_seconds.max(0)) }
    }
}

impl Superseded {
    /// Returns whether the version is within its retention at `now`.
    pub fn is_kept(&self, now: Timestamp) -> bool {
        now < self.destroy_at
    }
}
