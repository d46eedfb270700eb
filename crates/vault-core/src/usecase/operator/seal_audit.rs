//! Put audit entries into checkpoints.

use super::Operator;
use crate::audit::{
    CHECKPOINT_ENTRIES, Checkpoint, CheckpointContent, CheckpointMark, StoredCheckpoint, UnsealedEntry,
};
use crate::error::Error;
use crate::id::AuditId;
use crate::port::StoreError;

/// How often in a row another sealer may be faster before a round ends.
const ATTEMPTS: usize = 4;

/// What a round of sealing came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SealedAudit {
    /// How many entries were put into checkpoints.
    pub entries: usize,
    /// Whether the round ended before all were: its time was used up, or others seal too.
    pub more: bool,
}

impl Operator {
    /// Puts the entries that no checkpoint holds into checkpoints, until none is left or `millis` milliseconds are used.
    /// Several sealers beside each other make one chain. An entry whose id is none is left out.
    ///
    /// # Errors
    /// The store failed; the checkpoints made before stand.
    pub async fn seal_audit(&self, millis: i64) -> Result<SealedAudit, Error> {
        let began = self.environment.now();
        let (mut sealed, mut after, mut overtaken) = (SealedAudit::default(), None, 0);
        loop {
            let page = self.store.unsealed_entries(after.clone(), CHECKPOINT_ENTRIES).await?;
            let entries: Vec<(AuditId, &[u8])> = page.iter().filter_map(readable).collect();
            if entries.is_empty() || self.add_checkpoint(&entries).await? {
                (sealed.entries, overtaken) = (sealed.entries + entries.len(), 0);
            } else {
                overtaken += 1;
            }
            if overtaken == 0 {
                if page.len() < CHECKPOINT_ENTRIES {
                    return Ok(sealed);
                }
                after = page.into_iter().next_back().map(|entry| entry.id);
            }
            if overtaken == ATTEMPTS || self.environment.now().millis_since(began) >= millis {
                return Ok(SealedAudit { more: true, ..sealed });
            }
        }
    }

    /// Adds the next checkpoint. `false`: another sealer was faster.
    async fn add_checkpoint(&self, entries: &[(AuditId, &[u8])]) -> Result<bool, Error> {
        let mark = self.newest_checkpoint().await?;
        let number = mark.number.checked_add(1).ok_or_else(|| StoreError::Integrity {
            table: "audit_checkpoints",
            id: mark.number.to_string(),
            reason: "no number comes after it",
        })?;
        let content = CheckpointContent { previous: mark.hash, number, at: self.environment.now(), entries };
        let hash = self.environment.audit.hash_checkpoint(&content.to_bytes());
        let ids = entries.iter().map(|(id, _)| *id).collect();
        let checkpoint = Checkpoint { number, at: content.at, entries: ids, hash };
        Ok(self.store.add_checkpoint(self.environment.audit.seal_checkpoint(checkpoint)).await?)
    }

    /// The newest checkpoint. One that cannot be read stands for a hash of zeros, so that it does not stop the audit:
    /// verifying reports it.
    ///
    /// # Errors
    /// The store failed.
    pub async fn newest_checkpoint(&self) -> Result<CheckpointMark, Error> {
        Ok(self.store.newest_checkpoint().await?.map_or(CheckpointMark::NONE, |stored| mark(&stored)))
    }

    /// Whether the store has this checkpoint.
    ///
    /// # Errors
    /// The store failed.
    pub async fn has_checkpoint(&self, mark: CheckpointMark) -> Result<bool, Error> {
        if mark.number == 0 {
            return Ok(true);
        }
        let found = self.store.checkpoints(mark.number - 1, 1).await?;
        Ok(found.first().is_some_and(|stored| self::mark(stored) == mark))
    }
}

fn mark(stored: &StoredCheckpoint) -> CheckpointMark {
    let unreadable = CheckpointMark { number: stored.number, ..CheckpointMark::NONE };
    stored.sealed.as_ref().map_or(unreadable, |sealed| sealed.checkpoint.mark())
}

fn readable(entry: &UnsealedEntry) -> Option<(AuditId, &[u8])> {
    Some((entry.id.parse().ok()?, entry.code.as_slice()))
}
