//! Versions of a credential, and their retention.

use crate::id::VersionId;
use crate::time::Timestamp;

/// State of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum VersionState {
    /// The version that activations issue. Every credential has exactly one.
    Current,
    /// Awaits promotion. A credential has at most one.
    Staged,
    /// Was current before, and can be promoted again.
    Previous,
}

impl VersionState {
    /// Returns the name of the state.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

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

    /// Returns the `previous` versions to destroy at `now`: those after their retention, then the oldest ones that
    /// exceed the limit. `others` is the number of current and staged versions.
    pub fn destroyed(&self, others: usize, previous: &[(i64, Superseded)], now: Timestamp) -> Vec<i64> {
        let mut kept: Vec<_> = previous.iter().filter(|(_, superseded)| superseded.is_kept(now)).collect();
        kept.sort_by_key(|(number, superseded)| std::cmp::Reverse((superseded.at, *number)));
        kept.truncate(self.versions.max(2).saturating_sub(others));
        let stays = |number| kept.iter().any(|(kept, _)| *kept == number);
        previous.iter().map(|(number, _)| *number).filter(|&number| !stays(number)).collect()
    }
}

impl Superseded {
    /// Returns whether the version is within its retention at `now`.
    pub fn is_kept(&self, now: Timestamp) -> bool {
        now < self.destroy_at
    }
}

/// A version that exists according to its credential's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionRecord {
    /// Version number.
    pub number: i64,
    /// Random ID to which the sealed parts of the version are bound.
    pub id: VersionId,
    /// Time from which it counts as destroyed. `None` if it is current or staged.
    pub destroy_at: Option<Timestamp>,
}

impl VersionRecord {
    const LENGTH: usize = 32;

    /// Returns whether the version is within its retention at `now`.
    pub fn is_kept(&self, now: Timestamp) -> bool {
        self.destroy_at.is_none_or(|at| now < at)
    }
}

/// The versions of a credential that exist. The MAC of the credential's row covers this list, so a version that was
/// destroyed cannot be restored without the whole row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionList(Vec<u8>);

impl VersionList {
    /// Creates the list from its stored form: number, ID and end of retention of each version.
    pub const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Returns the stored form.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the versions.
    pub fn records(&self) -> impl Iterator<Item = VersionRecord> {
        let (records, _) = self.0.as_chunks::<{ VersionRecord::LENGTH }>();
        records.iter().map(|record| {
            let (number, id, destroy_at) = (&record[..8], &record[8..24], &record[24..]);
            let number_of = |bytes: &[u8]| bytes.iter().fold(0, |number: i64, byte| number << 8 | i64::from(*byte));
            let mut bytes = [0; 16];
            bytes.copy_from_slice(id);
            let destroy_at = Some(number_of(destroy_at)).filter(|millis| *millis != i64::MAX);
            VersionRecord {
                number: number_of(number),
                id: VersionId::from_bytes(bytes),
                destroy_at: destroy_at.map(Timestamp::from_millis),
            }
        })
    }

    /// Returns the version with this number.
    pub fn get(&self, number: i64) -> Option<VersionRecord> {
        self.records().find(|record| record.number == number)
    }

    /// Returns the ID of the version with this number.
    pub fn id(&self, number: i64) -> Option<VersionId> {
        self.get(number).map(|record| record.id)
    }

    /// Returns whether the version with this number exists at `now`.
    pub fn is_kept(&self, number: i64, now: Timestamp) -> bool {
        self.get(number).is_some_and(|record| record.is_kept(now))
    }
}

impl FromIterator<VersionRecord> for VersionList {
    fn from_iter<T: IntoIterator<Item = VersionRecord>>(records: T) -> Self {
        let mut bytes = Vec::new();
        for VersionRecord { number, id, destroy_at } in records {
            bytes.extend_from_slice(&number.to_be_bytes());
            bytes.extend_from_slice(id.as_bytes());
            bytes.extend_from_slice(&destroy_at.map_or(i64::MAX, Timestamp::as_millis).to_be_bytes());
        }
        Self(bytes)
    }
}
