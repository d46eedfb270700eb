//! Ports for the audit log.

use crate::audit::{AuditEntry, AuditRecord, Checkpoint, SealedAuditRecord, SealedCheckpoint};
use crate::digest::Digest;
use crate::id::{AuditId, KeyId};
use crate::principal::Scope;
use crate::time::Timestamp;
use async_trait::async_trait;

/// Port that computes the MACs of entries and checkpoints, which reveal changes.
pub trait AuditSealer: Send + Sync {
    /// Returns the entry with its MAC.
    fn seal(&self, record: AuditRecord) -> SealedAuditRecord;

    /// Returns the MAC of these bytes at `now`, and its key.
    fn mac(&self, bytes: &[u8], now: Timestamp) -> (KeyId, Digest);

    /// Returns whether `mac` is the MAC of these bytes under `key`.
    fn is_mac(&self, key: KeyId, bytes: &[u8], mac: Digest) -> bool;

    /// Returns the hash of a checkpoint with this [content](crate::audit::CheckpointContent::to_bytes).
    fn hash_checkpoint(&self, content: &[u8]) -> Digest;

    /// Returns the checkpoint with its MAC.
    fn seal_checkpoint(&self, checkpoint: Checkpoint) -> SealedCheckpoint;

    /// Returns whether the MAC of the checkpoint verifies.
    fn is_genuine_checkpoint(&self, sealed: &SealedCheckpoint) -> bool;
}

/// Order in which entries are read. IDs start with the time of their entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditOrder {
    /// By ascending ID.
    OldestFirst,
    /// By descending ID.
    NewestFirst,
}

/// Range of entries to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditRange {
    /// Organizations of the entries. With [`Scope::One`], only entries in a checkpoint are returned.
    pub scope: Scope,
    /// Lowest ID.
    pub from: Option<AuditId>,
    /// Exclusive upper limit of IDs.
    pub until: Option<AuditId>,
    /// Order.
    pub order: AuditOrder,
}

/// Sink to which entries are delivered after they are written: a log service outside the vault.
#[async_trait]
pub trait AuditSink: Send + Sync {
    /// Delivers the entries of one checkpoint, in order. They may have been delivered before.
    ///
    /// # Errors
    /// Not all entries were accepted. The same entries are delivered again later.
    async fn deliver(&self, entries: &[AuditEntry]) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;
}
