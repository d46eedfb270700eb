//! Ports for the audit log.

use super::StoreError;
use crate::audit::{
    AuditEntry, AuditRecord, Checkpoint, DeliveryPosition, DeliveryState, SealedAuditRecord, SealedCheckpoint,
    StoredCheckpoint, UnsealedEntry,
};
use crate::digest::Digest;
use crate::id::{AuditId, KeyId};
use crate::principal::Scope;
use crate::time::Timestamp;
use async_trait::async_trait;
use uuid::Uuid;

/// Port that computes the MACs of entries and checkpoints, which reveal changes.
pub trait AuditSealer: Send + Sync {
    /// Returns the entry with its MAC.
    fn seal(&self, record: AuditRecord) -> SealedAuditRecord;

    /// Returns the MAC of these bytes at `now`, and its key.
    fn code(&self, bytes: &[u8], now: Timestamp) -> (KeyId, Digest);

    /// Returns whether `code` is the MAC of these bytes under `key`.
    fn is_code(&self, key: KeyId, bytes: &[u8], code: Digest) -> bool;

    /// Returns the hash of a checkpoint with this [content](crate::audit::CheckpointContent::to_bytes).
    fn hash_checkpoint(&self, content: &[u8]) -> Digest;

    /// Returns the checkpoint with its MAC.
    fn seal_checkpoint(&self, checkpoint: Checkpoint) -> SealedCheckpoint;

    /// Returns whether the MAC of the checkpoint verifies.
    fn is_genuine_checkpoint(&self, sealed: &SealedCheckpoint) -> bool;
}

/// Port for entries that are not part of another change.
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Appends all entries, or none if it fails.
    async fn append(&self, records: Vec<SealedAuditRecord>) -> Result<(), StoreError>;
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

/// Deletes the oldest entries of the audit log, up to a checkpoint.
#[derive(Clone, Debug)]
pub struct CutAudit {
    /// Number of the first stored checkpoint.
    pub first: i64,
    /// Entries of that checkpoint and of all others up to the new start.
    pub entries: Vec<AuditId>,
    /// Replacement of the checkpoint with its number: the same number, time and hash, without entries.
    pub start: SealedCheckpoint,
    /// Audit entry about the deletion.
    pub audit: SealedAuditRecord,
}

/// Lease of one process to deliver the audit log to a sink, while other processes wait.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// ID of the process.
    pub holder: Uuid,
    /// Current time.
    pub now: Timestamp,
    /// End of the lease, unless the process renews it.
    pub until: Timestamp,
    /// Position at which delivery starts if nothing was ever delivered.
    pub first: DeliveryPosition,
}

impl Delivery {
    /// Maximum duration of a lease, in seconds. A stored lease that ends later was not created by OrgVault, and is
    /// ignored.
    pub const LONGEST_SECONDS: i64 = 60;
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

/// Port that reads the audit log and its checkpoints.
#[async_trait]
pub trait AuditTrail: Send + Sync {
    /// Returns the entries with these IDs, ordered by ID. Skips entries that are not stored.
    async fn entries(&self, ids: Vec<AuditId>) -> Result<Vec<AuditEntry>, StoreError>;

    /// Returns at most `limit` entries without a checkpoint, by ID, after the ID `after`.
    async fn unsealed_entries(&self, after: Option<String>, limit: usize) -> Result<Vec<UnsealedEntry>, StoreError>;

    /// Returns the checkpoint with the highest number.
    async fn newest_checkpoint(&self) -> Result<Option<StoredCheckpoint>, StoreError>;

    /// Returns at most `limit` checkpoints by number, after the number `after`.
    async fn checkpoints(&self, after: i64, limit: usize) -> Result<Vec<StoredCheckpoint>, StoreError>;

    /// Adds a checkpoint and records it in its entries. Returns `false` and changes nothing if a checkpoint with this
    /// number exists, if the previous one does not (unless it is the first), or if one of its entries is in a
    /// checkpoint or was deleted.
    async fn add_checkpoint(&self, sealed: SealedCheckpoint) -> Result<bool, StoreError>;

    /// Deletes the entries and checkpoints before [`CutAudit::start`], and replaces the checkpoint with its number by
    /// it. The same transaction stores the audit entry. Returns `false` and changes nothing if [`CutAudit::first`] is
    /// not the first stored checkpoint, or if no checkpoint has number and hash of the start.
    async fn cut_audit(&self, command: CutAudit) -> Result<bool, StoreError>;

    /// Acquires the lease for delivery, and returns the position up to which the audit log was delivered, initially
    /// [`Delivery::first`]. Returns `None` if another process has the lease, for at most [`Delivery::LONGEST_SECONDS`]
    /// from [`Delivery::now`].
    async fn acquire_delivery_lease(&self, delivery: Delivery) -> Result<Option<DeliveryPosition>, StoreError>;

    /// Records that the audit log was delivered from the checkpoint `from` up to `to`. Returns `false` if the process
    /// no longer has the lease.
    async fn note_delivered(&self, holder: Uuid, from: i64, to: DeliveryPosition) -> Result<bool, StoreError>;

    /// Returns the state of the delivery, or `None` if no process ever acquired the lease.
    async fn delivery(&self) -> Result<Option<DeliveryState>, StoreError>;
}
