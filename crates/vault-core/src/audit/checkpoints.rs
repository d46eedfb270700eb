//! Operations on checkpoints and their entries.

use super::{AuditEntry, SealedAuditRecord, SealedCheckpoint, StoredCheckpoint, UnsealedEntry};
use crate::id::AuditId;
use crate::operation::{Access, Failure, Operation, Unit};

/// Reads entries in the order of these IDs. Skips entries that are not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindEntries(pub Vec<AuditId>);

impl Operation for FindEntries {
    type Outcome = Vec<AuditEntry>;
    const ACCESS: Access<Self> = Access::Read(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<AuditEntry>, Failure> {
        let mut found = unit.rows().entries_with(&self.0).await?;
        if !self.0.is_sorted() {
            found.sort_by_cached_key(|entry| {
                let found = entry.id.parse().ok();
                self.0.iter().position(|id| Some(*id) == found)
            });
        }
        Ok(found)
    }
}

/// Reads entries without a checkpoint, by ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsealedEntries {
    /// ID after which the entries start.
    pub after: Option<String>,
    /// Maximum number of entries.
    pub limit: usize,
}

impl Operation for UnsealedEntries {
    type Outcome = Vec<UnsealedEntry>;
    const ACCESS: Access<Self> = Access::Read(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<UnsealedEntry>, Failure> {
        Ok(unit.rows().unsealed_entries(self.after.clone(), self.limit).await?)
    }
}

/// Reads checkpoints by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadCheckpoints {
    /// The one with the highest number.
    Newest,
    /// The one with this number, or the next one if it does not exist.
    From(i64),
    /// Those after a number, at most `limit`.
    After {
        /// The number.
        number: i64,
        /// Maximum number of checkpoints.
        limit: usize,
    },
}

impl Operation for ReadCheckpoints {
    type Outcome = Vec<StoredCheckpoint>;
    const ACCESS: Access<Self> = Access::Read(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<StoredCheckpoint>, Failure> {
        let rows = unit.rows();
        Ok(match *self {
            Self::Newest => rows.newest_checkpoint().await?.into_iter().collect(),
            Self::From(number) => rows.checkpoints(number.saturating_sub(1), 1).await?,
            Self::After { number, limit } => rows.checkpoints(number, limit).await?,
        })
    }
}

/// Adds a checkpoint that follows the newest one, and records it in its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddCheckpoint(pub SealedCheckpoint);

impl Operation for AddCheckpoint {
    /// `false` if a checkpoint with this number exists, if the previous one does not (unless it is the first), or if one of
    /// its entries is in a checkpoint or was deleted.
    type Outcome = bool;
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<bool, Failure> {
        let (rows, checkpoint) = (unit.rows(), &self.0.checkpoint);
        if checkpoint.number > 1 {
            let previous = rows.checkpoints(checkpoint.number - 2, 1).await?;
            if previous.first().is_none_or(|previous| previous.number != checkpoint.number - 1) {
                return Ok(false);
            }
        }
        if !rows.insert_checkpoint(&self.0).await? {
            return Ok(false);
        }
        let is_added = rows.seal_entries(&checkpoint.entries, checkpoint.number).await? == checkpoint.entries.len();
        if is_added {
            unit.commit_without_entry();
        }
        Ok(is_added)
    }
}

/// Deletes the oldest entries of the audit log, up to a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
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

impl Operation for CutAudit {
    /// `false` if [`CutAudit::first`] is not the first stored checkpoint, or if no checkpoint has number and hash of the start.
    type Outcome = bool;
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<bool, Failure> {
        let rows = unit.rows();
        let first = rows.checkpoints(0, 1).await?;
        if first.first().is_none_or(|first| first.number != self.first) || !rows.empty_checkpoint(&self.start).await? {
            return Ok(false);
        }
        rows.remove_audit(self.start.checkpoint.number, &self.entries).await?;
        unit.record_entry(&self.audit).await?;
        Ok(true)
    }
}
