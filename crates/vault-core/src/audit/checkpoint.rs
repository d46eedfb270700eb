//! Checkpoints: a chain of summaries of audit entries, which reveals removed, changed or moved entries.

use crate::digest::Digest;
use crate::id::{AuditId, KeyId};
use crate::time::Timestamp;

/// Maximum number of entries in a checkpoint.
pub const CHECKPOINT_ENTRIES: usize = 1_000;

/// An entry that is not in a checkpoint, with the fields that a checkpoint requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsealedEntry {
    /// Value of its ID column.
    pub id: String,
    /// Value of its MAC column.
    pub mac: Vec<u8>,
}

/// Content that a checkpoint's hash covers.
#[derive(Clone, Copy, Debug)]
pub struct CheckpointContent<'a> {
    /// Hash of the previous checkpoint, or zeros for the first.
    pub previous: Digest,
    /// Number, starting at 1.
    pub number: i64,
    /// Time of creation.
    pub at: Timestamp,
    /// Entries with their MACs, in order.
    pub entries: &'a [(AuditId, &'a [u8])],
}

impl CheckpointContent<'_> {
    /// Returns the encoding to hash: 8 bytes per number, and each MAC with a length prefix.
    pub fn to_bytes(&self) -> Vec<u8> {
        let length = |length: usize| u64::try_from(length).unwrap_or(u64::MAX).to_be_bytes();
        let mut bytes = Vec::with_capacity(64 + self.entries.len() * 56);
        bytes.extend_from_slice(self.previous.as_bytes());
        bytes.extend_from_slice(&self.number.to_be_bytes());
        bytes.extend_from_slice(&self.at.as_millis().to_be_bytes());
        bytes.extend_from_slice(&length(self.entries.len()));
        for (id, mac) in self.entries {
            bytes.extend_from_slice(id.as_bytes());
            bytes.extend_from_slice(&length(mac.len()));
            bytes.extend_from_slice(mac);
        }
        bytes
    }
}

/// A checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Number, starting at 1 and incremented for each successor.
    pub number: i64,
    /// Time of creation.
    pub at: Timestamp,
    /// IDs of its entries, in order.
    pub entries: Vec<AuditId>,
    /// Hash over the hash of its predecessor and over its entries with their MACs.
    pub hash: Digest,
}

impl Checkpoint {
    /// Returns its number and hash.
    pub const fn mark(&self) -> CheckpointRef {
        CheckpointRef { number: self.number, hash: self.hash }
    }

    /// Returns whether the audit log starts here: the entries of this and all previous checkpoints were deleted after
    /// their retention. The service does not create other checkpoints without entries.
    pub fn is_start(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the encoding that its MAC covers: number, time, hash and the IDs of its entries. The IDs are therefore
    /// authentic even if an entry is missing, without which the hash cannot be recomputed.
    pub fn to_authenticated_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(48 + self.entries.len() * 16);
        bytes.extend_from_slice(&self.number.to_be_bytes());
        bytes.extend_from_slice(&self.at.as_millis().to_be_bytes());
        bytes.extend_from_slice(self.hash.as_bytes());
        for id in &self.entries {
            bytes.extend_from_slice(id.as_bytes());
        }
        bytes
    }
}

/// A checkpoint with its MAC, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedCheckpoint {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// Key of the MAC.
    pub key: KeyId,
    /// MAC of the row.
    pub mac: Digest,
}

/// A stored checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCheckpoint {
    /// Value of its number column.
    pub number: i64,
    /// The other columns. `None` if one of them is invalid.
    pub sealed: Option<SealedCheckpoint>,
}

/// Number and hash of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointRef {
    /// Number, or 0 before the first checkpoint.
    pub number: i64,
    /// Hash, or zeros before the first checkpoint.
    pub hash: Digest,
}

impl CheckpointRef {
    /// Reference before the first checkpoint.
    pub const NONE: Self = Self { number: 0, hash: Digest::from_bytes([0; 32]) };
}
