//! Creation of checkpoints over audit entries.

use super::Operator;
use crate::audit::{
    AddCheckpoint, CHECKPOINT_ENTRIES, Checkpoint, CheckpointContent, CheckpointRef, FindEntries, ReadCheckpoints,
    StoredCheckpoint, UnsealedEntries, UnsealedEntry,
};
use crate::error::Error;
use crate::id::AuditId;
use crate::port::{Event, StoreError};
use std::collections::BTreeSet;
use std::mem;

/// Maximum number of consecutive conflicts with other sealers in a round.
const ATTEMPTS: usize = 4;

/// Result of one round of sealing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SealedAudit {
    /// Number of entries that were added to checkpoints.
    pub entries: usize,
    /// Whether entries remain, because the time was used up or others seal concurrently.
    pub more: bool,
}

impl Operator {
    /// Adds entries without a checkpoint to new checkpoints, until none remain or `millis` milliseconds have passed.
    /// Concurrent sealers create one chain. Entries with malformed IDs are skipped. If none remain, reports each entry
    /// that this process recorded before and that no checkpoint contains.
    ///
    /// # Errors
    /// The store failed. Checkpoints that were already created stay.
    pub async fn seal_audit(&self, millis: i64) -> Result<SealedAudit, Error> {
        let mut awaited = self.environment.awaited.take();
        let mut sealed = self.seal_entries(millis, &mut awaited).await;
        if sealed.as_ref().is_ok_and(|sealed| !sealed.more)
            && let Err(error) = self.report_missing(&mut awaited).await
        {
            sealed = Err(error);
        }
        self.environment.awaited.add(awaited);
        sealed
    }

    /// Removes the sealed entries from `awaited`.
    async fn seal_entries(&self, millis: i64, awaited: &mut BTreeSet<AuditId>) -> Result<SealedAudit, Error> {
        let began = self.environment.now();
        let (mut sealed, mut after, mut overtaken) = (SealedAudit::default(), None, 0);
        loop {
            let page = self.run(UnsealedEntries { after: after.clone(), limit: CHECKPOINT_ENTRIES }).await?;
            let entries: Vec<(AuditId, &[u8])> = page.iter().filter_map(readable).collect();
            if entries.is_empty() || self.add_checkpoint(&entries).await? {
                (sealed.entries, overtaken) = (sealed.entries + entries.len(), 0);
                entries.iter().for_each(|(id, _)| _ = awaited.remove(id));
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

    /// Reports the entries in `awaited` that no authentic checkpoint contains: they were committed, and removed before
    /// they were sealed. Other processes may have sealed the others.
    async fn report_missing(&self, awaited: &mut BTreeSet<AuditId>) -> Result<(), Error> {
        let ids: Vec<AuditId> = awaited.iter().copied().collect();
        let mut numbers = BTreeSet::new();
        for ids in ids.chunks(CHECKPOINT_ENTRIES) {
            let found = self.run(FindEntries(ids.to_vec())).await?;
            numbers.extend(found.iter().filter_map(|entry| entry.checkpoint));
        }
        for number in numbers {
            let found = self.run(ReadCheckpoints::From(number)).await?;
            let Some(sealed) = found.into_iter().find_map(|stored| stored.sealed) else { continue };
            if !self.environment.audit.is_genuine_checkpoint(&sealed) {
                // Another process may have sealed it under a new key.
                self.operations.ports.digester.reload_keys().await?;
            }
            if self.environment.audit.is_genuine_checkpoint(&sealed) {
                sealed.checkpoint.entries.iter().for_each(|id| _ = awaited.remove(id));
            }
        }
        for id in mem::take(awaited) {
            self.environment.emit(Event::IntegrityFailure { table: "audit", id: id.to_string() });
        }
        Ok(())
    }

    /// Adds the next checkpoint. Returns `false` if another sealer was faster.
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
        self.run(AddCheckpoint(self.environment.audit.seal_checkpoint(checkpoint))).await
    }

    /// Returns the newest checkpoint. If it cannot be read, its hash is replaced by zeros, so that sealing continues.
    /// The verification reports it.
    ///
    /// # Errors
    /// The store failed.
    pub async fn newest_checkpoint(&self) -> Result<CheckpointRef, Error> {
        Ok(self.run(ReadCheckpoints::Newest).await?.first().map_or(CheckpointRef::NONE, mark))
    }

    /// Returns whether the store has this checkpoint.
    ///
    /// # Errors
    /// The store failed.
    pub async fn has_checkpoint(&self, mark: CheckpointRef) -> Result<bool, Error> {
        if mark.number == 0 {
            return Ok(true);
        }
        let found = self.run(ReadCheckpoints::From(mark.number)).await?;
        Ok(found.first().is_some_and(|stored| self::mark(stored) == mark))
    }
}

fn mark(stored: &StoredCheckpoint) -> CheckpointRef {
    let unreadable = CheckpointRef { number: stored.number, ..CheckpointRef::NONE };
    stored.sealed.as_ref().map_or(unreadable, |sealed| sealed.checkpoint.mark())
}

fn readable(entry: &UnsealedEntry) -> Option<(AuditId, &[u8])> {
    Some((entry.id.parse().ok()?, entry.mac.as_slice()))
}
