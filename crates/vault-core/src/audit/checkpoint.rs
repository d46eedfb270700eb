//! Checkpoints: which entries there were, chained so that none can be removed, changed or moved unseen.

use crate::digest::Digest;
use crate::id::{AuditId, KeyId};
use crate::time::Timestamp;

/// How many entries one checkpoint holds at most.
pub const CHECKPOINT_ENTRIES: usize = 1_000;

/// An entry that no checkpoint holds, as far as a checkpoint needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsealedEntry {
    /// What its id column holds.
    pub id: String,
    /// What its code column holds.
    pub code: Vec<u8>,
}

/// What a checkpoint's hash covers.
#[derive(Clone, Copy, Debug)]
pub struct CheckpointContent<'a> {
    /// The hash of the checkpoint before it; zeros for the first.
    pub previous: Digest,
    /// Its number, from 1.
    pub number: i64,
    /// When it was made.
    pub at: Timestamp,
    /// Its entries with their codes, in its order.
    pub entries: &'a [(AuditId, &'a [u8])],
}

impl CheckpointContent<'_> {
    /// The bytes to hash: numbers in 8 bytes, each code with its length before it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let length = |length: usize| u64::try_from(length).unwrap_or(u64::MAX).to_be_bytes();
        let mut bytes = Vec::with_capacity(64 + self.entries.len() * 56);
        bytes.extend_from_slice(self.previous.as_bytes());
        bytes.extend_from_slice(&self.number.to_be_bytes());
        bytes.extend_from_slice(&self.at.as_millis().to_be_bytes());
        bytes.extend_from_slice(&length(self.entries.len()));
        for (id, code) in self.entries {
            bytes.extend_from_slice(id.as_bytes());
            bytes.extend_from_slice(&length(code.len()));
            bytes.extend_from_slice(code);
        }
        bytes
    }
}

/// A checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Its number: one more than that of the one before, from 1.
    pub number: i64,
    /// When it was made.
    pub at: Timestamp,
    /// The ids of its entries, in its order.
    pub entries: Vec<AuditId>,
    /// The hash over the hash of the one before it, and over its entries with their codes.
    pub hash: Digest,
}

impl Checkpoint {
    /// Its number and hash.
    pub const fn mark(&self) -> CheckpointMark {
        CheckpointMark { number: self.number, hash: self.hash }
    }

    /// Whether the audit starts here: its entries, and all before them, were removed because their time was over. Sealing
    /// makes no checkpoint without entries.
    pub fn is_start(&self) -> bool {
        self.entries.is_empty()
    }

    /// The bytes that its code covers: number, time, hash and the ids of its entries. So the ids can be relied on even
    /// where an entry is missing, without which the hash cannot be made again.
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

/// A checkpoint with its code: what the store keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedCheckpoint {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// Key of the MAC.
    pub key: KeyId,
    /// MAC of the row.
    pub code: Digest,
}

/// A stored checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCheckpoint {
    /// What its number column holds.
    pub number: i64,
    /// The rest. `None`: a column holds what no checkpoint has.
    pub sealed: Option<SealedCheckpoint>,
}

/// Which checkpoint, and with which content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointMark {
    /// Its number; 0 before the first.
    pub number: i64,
    /// Its hash; zeros before the first.
    pub hash: Digest,
}

impl CheckpointMark {
    /// Before the first checkpoint.
    pub const NONE: Self = Self { number: 0, hash: Digest::from_bytes([0; 32]) };
}
