//! Deletion of audit entries after their retention.

use super::Operator;
use crate::audit::{
    Actor, AuditAction, CHECKPOINT_ENTRIES, Checkpoint, CheckpointRef, CutAudit, ReadCheckpoints, SealedCheckpoint,
    Subject,
};
use crate::error::Error;
use crate::port::StoreError;
use crate::time::Timestamp;

/// Number of checkpoints that are read at a time.
const PAGE: usize = 64;
/// Minimum retention of entries, in seconds: one day. A replica that was stopped for less still finds the checkpoint of
/// its anchor.
pub const LEAST_AUDIT_SECONDS: i64 = 24 * 3600;

/// The difference between this host's clock and the store's is too large.
#[derive(Debug, thiserror::Error)]
#[error("the clocks of this host and the database differ by {0} ms: synchronize them")]
struct ClockSkew(i64);

/// Result of one round of deletion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedAudit {
    /// Number of deleted entries.
    pub entries: usize,
    /// A checkpoint that was changed: it, a previous one or one of its entries was changed, added or removed. It and
    /// its successors are kept, so that [`Operator::verify_audit`] can report them.
    pub damaged: Option<i64>,
    /// Whether the round stopped because its time was used up.
    pub more: bool,
}

impl Operator {
    /// Returns the checkpoint at which the audit log starts, if entries were deleted.
    ///
    /// # Errors
    /// The store failed.
    pub async fn audit_start(&self) -> Result<Option<CheckpointRef>, Error> {
        let first = self.run(ReadCheckpoints::From(1)).await?.pop().and_then(|first| first.sealed);
        let start =
            first.filter(|first| first.checkpoint.is_start() && self.environment.audit.is_genuine_checkpoint(first));
        Ok(start.map(|start| start.checkpoint.mark()))
    }

    /// Verifies and deletes the entries of the checkpoints that were created before `before`, oldest first, for
    /// `millis` milliseconds. With `last`, only up to the checkpoint with that number. The newest checkpoint is kept.
    /// The audit log then starts at a checkpoint without entries, with number and hash of the last deleted one.
    ///
    /// # Errors
    /// The store failed, or the difference to its clock is too large. Entries that were already deleted stay deleted.
    pub async fn cut_audit(&self, before: Timestamp, last: Option<i64>, millis: i64) -> Result<RemovedAudit, Error> {
        let (began, mut removed) = (self.environment.now(), RemovedAudit::default());
        if let Some(skew) = self.skew().await? {
            return Err(StoreError::Unavailable(ClockSkew(skew).into()).into());
        }
        loop {
            let newest = self.newest_checkpoint().await?.number;
            let last = last.map_or(newest - 1, |last| last.min(newest - 1));
            let (mut first, mut start, mut entries) = (None, None, Vec::new());
            for stored in self.run(ReadCheckpoints::After { number: 0, limit: PAGE }).await? {
                let number = stored.number;
                let sound = stored.sealed.filter(|sealed| self.environment.audit.is_genuine_checkpoint(sealed));
                let due = sound.as_ref().is_none_or(|sealed| number <= last && sealed.checkpoint.at < before);
                let before_it = start.as_ref().map(Checkpoint::mark);
                let sound = match sound {
                    // Never delete a changed checkpoint, which is evidence of tampering.
                    Some(sealed) if due => self.is_as_sealed(&sealed, before_it).await?.then_some(sealed),
                    sound => sound,
                };
                let Some(SealedCheckpoint { checkpoint, .. }) = sound else {
                    removed.damaged = Some(number);
                    break;
                };
                let full = !entries.is_empty() && entries.len() + checkpoint.entries.len() > CHECKPOINT_ENTRIES;
                if number > last || checkpoint.at >= before || full {
                    break;
                }
                first.get_or_insert(number);
                entries.extend_from_slice(&checkpoint.entries);
                start = Some(checkpoint);
            }
            let (Some(first), Some(start)) = (first, start.filter(|_| !entries.is_empty())) else { return Ok(removed) };
            let start = self.environment.audit.seal_checkpoint(Checkpoint { entries: Vec::new(), ..start });
            let (count, now) = (entries.len(), self.environment.now());
            let mut audit =
                self.environment.record(now, None, Actor::System, AuditAction::AuditTruncated, Subject::Audit);
            audit.record.count = i64::try_from(count).unwrap_or(i64::MAX);
            let audit = self.environment.audit.seal(audit.record);
            // `false` means that another process was faster.
            if self.run(CutAudit { first, entries, start, audit }).await? {
                removed.entries += count;
            }
            if self.environment.now().millis_since(began) >= millis {
                return Ok(RemovedAudit { more: true, ..removed });
            }
        }
    }
}
