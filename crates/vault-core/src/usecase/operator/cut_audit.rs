//! Remove audit entries whose time is over.

use super::Operator;
use crate::audit::{Actor, AuditAction, CHECKPOINT_ENTRIES, Checkpoint, CheckpointMark, SealedCheckpoint, Subject};
use crate::error::Error;
use crate::port::{CutAudit, StoreError};
use crate::time::Timestamp;

/// How many checkpoints are read at a time.
const PAGE: usize = 64;
/// The least time for which entries are kept, in seconds: a day. Replicas that were away for less find their anchors again.
pub const LEAST_AUDIT_SECONDS: i64 = 24 * 3600;

/// Our clock is too far from the store's.
#[derive(Debug, thiserror::Error)]
#[error("this machine's clock and the database's differ by {0} ms: synchronize them")]
struct ClockSkew(i64);

/// What a round of removing came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedAudit {
    /// How many entries were removed.
    pub entries: usize,
    /// A checkpoint that is not as it was sealed: it, one before it, or one of its entries was changed, added or removed. It and
    /// what comes after it stay, for [`Operator::verify_audit`] to report.
    pub damaged: Option<i64>,
    /// Whether the round ended because its time was used up.
    pub more: bool,
}

impl Operator {
    /// The checkpoint at which the audit starts, if entries were removed.
    ///
    /// # Errors
    /// The store failed.
    pub async fn audit_start(&self) -> Result<Option<CheckpointMark>, Error> {
        let first = self.store.checkpoints(0, 1).await?.pop().and_then(|first| first.sealed);
        let start =
            first.filter(|first| first.checkpoint.is_start() && self.environment.audit.is_genuine_checkpoint(first));
        Ok(start.map(|start| start.checkpoint.mark()))
    }

    /// Removes the entries of the checkpoints that were made before `before`, once they are verified, oldest first, for `millis` milliseconds; with
    /// `last`, none after the checkpoint of that number. The newest checkpoint stays. The audit then starts at a checkpoint
    /// without entries, which has the number and hash of the last one that was removed.
    ///
    /// # Errors
    /// The store failed, or its clock is too far from ours to tell what is old; what was removed before stays removed.
    pub async fn cut_audit(&self, before: Timestamp, last: Option<i64>, millis: i64) -> Result<RemovedAudit, Error> {
        let (began, mut removed) = (self.environment.now(), RemovedAudit::default());
        if let Some(skew) = self.skew().await? {
            return Err(StoreError::Unavailable(ClockSkew(skew).into()).into());
        }
        loop {
            let newest = self.newest_checkpoint().await?.number;
            let last = last.map_or(newest - 1, |last| last.min(newest - 1));
            let (mut first, mut start, mut entries) = (None, None, Vec::new());
            for stored in self.store.checkpoints(0, PAGE).await? {
                let number = stored.number;
                let sound = stored.sealed.filter(|sealed| self.environment.audit.is_genuine_checkpoint(sealed));
                let due = sound.as_ref().is_none_or(|sealed| number <= last && sealed.checkpoint.at < before);
                let before_it = start.as_ref().map(Checkpoint::mark);
                let sound = match sound {
                    // Removing what was bent would remove the evidence.
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
            let mut audit = self.environment.record(now, None, Actor::System, AuditAction::AuditCut, Subject::Audit);
            audit.record.count = i64::try_from(count).unwrap_or(i64::MAX);
            let audit = self.environment.audit.seal(audit.record);
            // `false`: another process was faster.
            if self.store.cut_audit(CutAudit { first, entries, start, audit }).await? {
                removed.entries += count;
            }
            if self.environment.now().millis_since(began) >= millis {
                return Ok(RemovedAudit { more: true, ..removed });
            }
        }
    }
}
