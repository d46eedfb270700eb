//! Result of the verification of the audit log.

use crate::id::AuditId;
use std::fmt;

/// A change of the stored audit log outside the service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuditFinding {
    /// A checkpoint contains an entry that is not stored.
    Missing {
        /// ID of the entry.
        entry: AuditId,
        /// Number of the checkpoint.
        checkpoint: i64,
    },
    /// The MAC of an entry does not verify.
    Changed {
        /// ID of the entry.
        entry: String,
        /// Number of the checkpoint that contains it.
        checkpoint: i64,
    },
    /// An entry is stored under the ID of another one, or with another checkpoint than the one that contains it.
    Reordered {
        /// ID or checkpoint of the row.
        entry: String,
        /// Correct ID or checkpoint.
        belongs: String,
    },
    /// The service did not write this entry, or not in this position: its MAC does not verify, or its checkpoint does
    /// not contain it.
    Added {
        /// ID of the entry.
        entry: String,
        /// Checkpoint in the row of the entry.
        checkpoint: Option<i64>,
    },
    /// Checkpoints are missing, although later ones or entries that name them exist.
    CheckpointsMissing {
        /// Number of the first missing checkpoint.
        first: i64,
        /// Number of the last missing checkpoint.
        last: i64,
    },
    /// The MAC of a checkpoint does not verify.
    CheckpointChanged {
        /// Number of the checkpoint.
        checkpoint: i64,
    },
    /// A checkpoint does not follow from its predecessor, which was therefore replaced.
    CheckpointReplaced {
        /// Number of the checkpoint.
        checkpoint: i64,
    },
    /// The anchor contains a later checkpoint than the database: the log was truncated.
    Truncated {
        /// Number of the newest checkpoint of the database, or 0 if it has none.
        newest: i64,
        /// Number of the checkpoint in the anchor.
        anchored: i64,
    },
    /// The database has another checkpoint with the number in the anchor.
    AnchorDiffers {
        /// Number of the checkpoint.
        checkpoint: i64,
    },
}

impl AuditFinding {
    /// Returns the name of the kind.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "missing",
            Self::Changed { .. } => "changed",
            Self::Reordered { .. } => "reordered",
            Self::Added { .. } => "added",
            Self::CheckpointsMissing { .. } => "checkpoint-missing",
            Self::CheckpointChanged { .. } => "checkpoint-changed",
            Self::CheckpointReplaced { .. } => "checkpoint-replaced",
            Self::Truncated { .. } => "truncated",
            Self::AnchorDiffers { .. } => "anchor-differs",
        }
    }

    /// Returns the affected entry.
    pub fn entry(&self) -> Option<String> {
        match self {
            Self::Missing { entry, .. } => Some(entry.to_string()),
            Self::Changed { entry, .. } | Self::Reordered { entry, .. } | Self::Added { entry, .. } => {
                Some(entry.clone())
            }
            _ => None,
        }
    }

    /// Returns the affected checkpoint.
    pub const fn checkpoint(&self) -> Option<i64> {
        match self {
            Self::Missing { checkpoint, .. }
            | Self::Changed { checkpoint, .. }
            | Self::CheckpointsMissing { first: checkpoint, .. }
            | Self::CheckpointChanged { checkpoint }
            | Self::CheckpointReplaced { checkpoint }
            | Self::AnchorDiffers { checkpoint } => Some(*checkpoint),
            Self::Added { checkpoint, .. } => *checkpoint,
            Self::Truncated { anchored, .. } => Some(*anchored),
            Self::Reordered { .. } => None,
        }
    }
}

impl fmt::Display for AuditFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { entry, checkpoint } => {
                write!(f, "entry {entry} is missing: checkpoint {checkpoint} contains it")
            }
            Self::Changed { entry, .. } => write!(f, "entry {entry} was modified: its MAC does not verify"),
            Self::Reordered { entry, belongs } => write!(f, "entry {entry} was reordered: it belongs to {belongs}"),
            Self::Added { entry, checkpoint: Some(checkpoint) } => {
                write!(f, "entry {entry} was added after sealing: checkpoint {checkpoint} does not contain it")
            }
            Self::Added { entry, checkpoint: None } => {
                write!(f, "entry {entry} was added: its MAC does not verify, and no checkpoint contains it")
            }
            Self::CheckpointsMissing { first, last } if first == last => write!(f, "checkpoint {first} is missing"),
            Self::CheckpointsMissing { first, last } => write!(f, "checkpoints {first} to {last} are missing"),
            Self::CheckpointChanged { checkpoint } => {
                write!(f, "checkpoint {checkpoint} was modified: its MAC does not verify")
            }
            Self::CheckpointReplaced { checkpoint } => {
                write!(f, "checkpoint {checkpoint} does not continue the previous checkpoint, which was replaced")
            }
            Self::Truncated { newest, anchored } => write!(
                f,
                "the end was truncated: the newest checkpoint is {newest}, but the anchor contains checkpoint {anchored}"
            ),
            Self::AnchorDiffers { checkpoint } => {
                write!(f, "checkpoint {checkpoint} differs from the one in the anchor: the audit log was replaced")
            }
        }
    }
}

/// Result of a verification of the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditVerification {
    /// Number of intact entries.
    pub entries: u64,
    /// Number of verified checkpoints.
    pub checkpoints: u64,
    /// Number of entries with valid MACs that no checkpoint contains yet. The removal of one of them could not be
    /// detected.
    pub unsealed: u64,
    /// Number of the newest checkpoint, or 0 if there is none.
    pub newest: i64,
    /// Checkpoint up to which entries were deleted after their retention, or 0 if none were.
    pub start: i64,
    /// Number of findings. The findings themselves are reported immediately.
    pub findings: u64,
}
