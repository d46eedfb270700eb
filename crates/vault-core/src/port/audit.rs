//! The audit trail.

use super::{List, StoreError};
use crate::audit::{
    AuditEntry, AuditRecord, Checkpoint, SealedAuditRecord, SealedCheckpoint, StoredCheckpoint, UnsealedEntry,
};
use crate::digest::Digest;
use crate::id::{AuditId, KeyId};
use crate::principal::Scope;
use async_trait::async_trait;

/// Gives entries and checkpoints the codes that make a change of them show.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait AuditSealer: Send + Sync {
    /// The entry with its code.
    fn seal(&self, record: AuditRecord) -> SealedAuditRecord;

    /// Whether `code` is the code of an entry with these bytes under `key`.
    fn is_code(&self, key: KeyId, bytes: &[u8], code: Digest) -> bool;

    /// The hash of a checkpoint with this [content](crate::audit::CheckpointContent::to_bytes).
    fn hash_checkpoint(&self, content: &[u8]) -> Digest;

    /// The checkpoint with its code.
    fn seal_checkpoint(&self, checkpoint: Checkpoint) -> SealedCheckpoint;

    /// Whether the checkpoint fits its code.
    fn is_genuine_checkpoint(&self, sealed: &SealedCheckpoint) -> bool;
}

/// Entries without a change of their own.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Appends entries, all or none.
    async fn append(&self, records: Vec<SealedAuditRecord>) -> Result<(), StoreError>;
}

/// In which order entries are read. Ids begin with the time of their entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditOrder {
    /// By id.
    OldestFirst,
    /// By id, backwards.
    NewestFirst,
}

/// Which entries to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditRange {
    /// Whose. [`Scope::One`]: only those that a checkpoint holds.
    pub scope: Scope,
    /// Ids from this one.
    pub from: Option<AuditId>,
    /// Ids below this one.
    pub until: Option<AuditId>,
    /// In which order.
    pub order: AuditOrder,
}

/// Reading the audit, and its checkpoints.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait AuditTrail: Send + Sync {
    /// Entries of a range; [`List::after`] is the id of the last one that was read. Sessions see those of their own
    /// organization, if their role administers it.
    async fn list_entries(&self, query: List<String, AuditRange>) -> Result<Vec<AuditEntry>, StoreError>;

    /// The entries with these ids, by id. Those that are not stored are left out.
    async fn entries(&self, ids: Vec<AuditId>) -> Result<Vec<AuditEntry>, StoreError>;

    /// Up to `limit` entries that no checkpoint holds, by id, after the id `after`.
    async fn unsealed_entries(&self, after: Option<String>, limit: usize) -> Result<Vec<UnsealedEntry>, StoreError>;

    /// The checkpoint with the highest number.
    async fn newest_checkpoint(&self) -> Result<Option<StoredCheckpoint>, StoreError>;

    /// Up to `limit` checkpoints by number, after the number `after`.
    async fn checkpoints(&self, after: i64, limit: usize) -> Result<Vec<StoredCheckpoint>, StoreError>;

    /// Adds a checkpoint and notes it in its entries. `false`, and nothing is changed, if there is a checkpoint of its
    /// number, none of the number before (unless it is the first), or if one of its entries is in a checkpoint or gone.
    async fn add_checkpoint(&self, sealed: SealedCheckpoint) -> Result<bool, StoreError>;
}
