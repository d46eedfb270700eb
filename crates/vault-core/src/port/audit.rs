//! The audit trail.

use super::{List, StoreError};
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

/// Gives entries and checkpoints the codes that make a change of them show.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait AuditSealer: Send + Sync {
    /// The entry with its code.
    fn seal(&self, record: AuditRecord) -> SealedAuditRecord;

    /// The code of these bytes, made at `now`, and its key.
    fn code(&self, bytes: &[u8], now: Timestamp) -> (KeyId, Digest);

    /// Whether `code` is the code of these bytes, an entry's or others, under `key`.
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

/// Removes the oldest entries of the audit, up to a checkpoint.
#[derive(Clone, Debug)]
pub struct CutAudit {
    /// The number of the first stored checkpoint.
    pub first: i64,
    /// The entries of that checkpoint and of all up to the new start.
    pub entries: Vec<AuditId>,
    /// What takes the place of the checkpoint of its number: the same number, time and hash, and no entries.
    pub start: SealedCheckpoint,
    /// The entry about it.
    pub audit: SealedAuditRecord,
}

/// The right of one process to deliver the audit outside, while others wait.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The process.
    pub holder: Uuid,
    /// The time.
    pub now: Timestamp,
    /// End of the lease, unless the process renews it.
    pub until: Timestamp,
    /// Where delivery begins if nothing was ever delivered.
    pub first: DeliveryPosition,
}

impl Delivery {
    /// For how long the right is taken at most, in seconds. One that ends later was not taken by a process, and counts as none.
    pub const LONGEST_SECONDS: i64 = 60;
}

/// Where entries are delivered as they are written: a log service outside the vault.
#[async_trait]
pub trait AuditSink: Send + Sync {
    /// Delivers the entries of one checkpoint, in order. They may have been delivered before.
    ///
    /// # Errors
    /// Not all were accepted. The same entries are delivered again later.
    async fn deliver(&self, entries: &[AuditEntry]) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;
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

    /// Deletes the entries and the checkpoints before [`CutAudit::start`], and puts that in the place of the checkpoint of
    /// its number, in one decision with the entry about it. `false`, and nothing is changed, if [`CutAudit::first`] is not
    /// the first stored checkpoint, or none has number and hash of the start.
    async fn cut_audit(&self, command: CutAudit) -> Result<bool, StoreError>;

    /// Takes the right to deliver. How far the audit was delivered: at first [`Delivery::first`]. `None`: another process has
    /// the right, for at most [`Delivery::LONGEST_SECONDS`] from [`Delivery::now`].
    async fn take_delivery(&self, delivery: Delivery) -> Result<Option<DeliveryPosition>, StoreError>;

    /// Notes that the audit, which was delivered up to the checkpoint `from`, was delivered up to `to`. `false`: the process no
    /// longer has the right.
    async fn note_delivered(&self, holder: Uuid, from: i64, to: DeliveryPosition) -> Result<bool, StoreError>;

    /// How the delivery stands. `None`: nobody has ever taken the right.
    async fn delivery(&self) -> Result<Option<DeliveryState>, StoreError>;
}
