//! The versions of one credential, and which of them are destroyed.

use crate::time::Timestamp;

/// What becomes of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VersionState {
    /// The one that activations hand out. Every credential has exactly one.
    Current,
    /// Waits to be promoted. A credential has at most one.
    Staged,
    /// Was current before; promoting it is the way back.
    Previous,
}

impl VersionState {
    /// The state's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Staged => "staged",
            Self::Previous => "previous",
        }
    }
}

/// How many versions are kept, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionLimits {
    /// The most versions of one credential, the current and the staged one included; at least 2.
    pub versions: usize,
    /// How long a previous version is kept after it was superseded, in seconds; 0: not at all.
    pub previous_seconds: i64,
}

impl Default for VersionLimits {
    /// 5 versions, 30 days.
    fn default() -> Self {
        Self { versions: 5, previous_seconds: 30 * 24 * 3_600 }
    }
}

/// When a version ceased to be the current one, and when it is destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superseded {
    /// Time at which it stopped being the current version.
    pub at: Timestamp,
    /// From when on it counts as destroyed; maintenance removes it.
    pub destroy_at: Timestamp,
}

impl VersionLimits {
    /// What becomes of a version that is superseded at `now`.
    pub fn supersede(&self, now: Timestamp) -> Superseded {
        Superseded { at: now, destroy_at: now.plus_seconds(self.previous_seconds.max(0)) }
    }

    /// Which of the `previous` versions are destroyed at `now`: those whose time is over, then the longest superseded
    /// ones beyond the number that is kept. `others`: how many versions are current or staged.
    pub fn destroyed(&self, others: usize, previous: &[(i64, Superseded)], now: Timestamp) -> Vec<i64> {
        let mut kept: Vec<_> = previous.iter().filter(|(_, superseded)| superseded.is_kept(now)).collect();
        kept.sort_by_key(|(number, superseded)| std::cmp::Reverse((superseded.at, *number)));
        kept.truncate(self.versions.max(2).saturating_sub(others));
        let stays = |number| kept.iter().any(|(kept, _)| *kept == number);
        previous.iter().map(|(number, _)| *number).filter(|&number| !stays(number)).collect()
    }
}

impl Superseded {
    /// Whether the version's time is not over at `now`.
    pub fn is_kept(&self, now: Timestamp) -> bool {
        now < self.destroy_at
    }
}
