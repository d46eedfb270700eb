//! What verifying the audit finds.

use crate::id::AuditId;
use std::fmt;

/// Something that was done to the stored audit from outside the service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuditFinding {
    /// A checkpoint holds an entry that is not stored.
    Missing {
        /// The entry.
        entry: AuditId,
        /// The checkpoint.
        checkpoint: i64,
    },
    /// An entry does not fit its code.
    Changed {
        /// The entry.
        entry: String,
        /// The checkpoint that holds it.
        checkpoint: i64,
    },
    /// An entry is stored under the id of another one, or in another checkpoint than the one that holds it.
    Reordered {
        /// The id or checkpoint under which it is stored: what the row says.
        entry: String,
        /// Where it belongs.
        belongs: String,
    },
    /// An entry that the service did not write, or not there: it does not fit its code, or its checkpoint does not hold
    /// it.
    Added {
        /// The entry.
        entry: String,
        /// The checkpoint that its row names.
        checkpoint: Option<i64>,
    },
    /// Checkpoints are not stored, although there are later ones, or entries that name them.
    CheckpointsMissing {
        /// The number of the first of them.
        first: i64,
        /// The number of the last of them.
        last: i64,
    },
    /// A checkpoint does not fit its code.
    CheckpointChanged {
        /// Number of the checkpoint.
        checkpoint: i64,
    },
    /// A checkpoint does not follow from the one before it: that one was replaced.
    CheckpointReplaced {
        /// Number of the checkpoint.
        checkpoint: i64,
    },
    /// The anchor knows later checkpoints than the database has: the end was cut off.
    CutOff {
        /// The newest checkpoint of the database; 0 if it has none.
        newest: i64,
        /// The newest checkpoint that the anchor knows.
        anchored: i64,
    },
    /// The database has another checkpoint of the number that the anchor knows.
    AnchorDiffers {
        /// The number.
        checkpoint: i64,
    },
}

impl AuditFinding {
    /// The kind's name.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "missing",
            Self::Changed { .. } => "changed",
            Self::Reordered { .. } => "reordered",
            Self::Added { .. } => "added",
            Self::CheckpointsMissing { .. } => "checkpoint-missing",
            Self::CheckpointChanged { .. } => "checkpoint-changed",
            Self::CheckpointReplaced { .. } => "checkpoint-replaced",
            Self::CutOff { .. } => "cut-off",
            Self::AnchorDiffers { .. } => "anchor-differs",
        }
    }

    /// The entry that it is about.
    pub fn entry(&self) -> Option<String> {
        match self {
            Self::Missing { entry, .. } => Some(entry.to_string()),
            Self::Changed { entry, .. } | Self::Reordered { entry, .. } | Self::Added { entry, .. } => {
                Some(entry.clone())
            }
            _ => None,
        }
    }

    /// The checkpoint that it is about.
    pub const fn checkpoint(&self) -> Option<i64> {
        match self {
            Self::Missing { checkpoint, .. }
            | Self::Changed { checkpoint, .. }
            | Self::CheckpointsMissing { first: checkpoint, .. }
            | Self::CheckpointChanged { checkpoint }
            | Self::CheckpointReplaced { checkpoint }
            | Self::AnchorDiffers { checkpoint } => Some(*checkpoint),
            Self::Added { checkpoint, .. } => *checkpoint,
            Self::CutOff { anchored, .. } => Some(*anchored),
            Self::Reordered { .. } => None,
        }
    }
}

impl fmt::Display for AuditFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { entry, checkpoint } => {
                write!(f, "entry {entry} is missing: checkpoint {checkpoint} holds it")
            }
            Self::Changed { entry, .. } => write!(f, "entry {entry} was changed: it does not fit its code"),
            Self::Reordered { entry, belongs } => write!(f, "entry {entry} was reordered: it belongs to {belongs}"),
            Self::Added { entry, checkpoint: Some(checkpoint) } => {
                write!(f, "entry {entry} was added after sealing: checkpoint {checkpoint} does not hold it")
            }
            Self::Added { entry, checkpoint: None } => {
                write!(f, "entry {entry} was added: it does not fit its code, and no checkpoint holds it")
            }
            Self::CheckpointsMissing { first, last } if first == last => write!(f, "checkpoint {first} is missing"),
            Self::CheckpointsMissing { first, last } => write!(f, "checkpoints {first} to {last} are missing"),
            Self::CheckpointChanged { checkpoint } => {
                write!(f, "checkpoint {checkpoint} was changed: it does not fit its code")
            }
            Self::CheckpointReplaced { checkpoint } => {
                write!(f, "checkpoint {checkpoint} does not follow from the one before it, which was replaced")
            }
            Self::CutOff { newest, anchored } => write!(
                f,
                "the end was cut off: the newest checkpoint is {newest}, and the anchor knows checkpoint {anchored}"
            ),
            Self::AnchorDiffers { checkpoint } => {
                write!(f, "checkpoint {checkpoint} is not the one that the anchor knows: the audit was replaced")
            }
        }
    }
}

/// What verifying the audit came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditVerification {
    /// The entries that stand as they were sealed.
    pub entries: u64,
    /// The checkpoints that were verified.
    pub checkpoints: u64,
    /// Entries that fit their codes and that no checkpoint holds yet: removing one of them would leave no trace.
    pub unsealed: u64,
    /// The newest checkpoint; 0 if there is none.
    pub newest: i64,
    /// The checkpoint up to which entries were removed because their time was over; 0 if none were.
    pub start: i64,
    /// How many findings there are. The findings themselves were handed out as they were made.
    pub findings: u64,
}
