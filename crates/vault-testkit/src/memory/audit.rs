//! The audit trail and its checkpoints.

use super::rows::{MemoryRows, done};
use super::{Defect, State};
use uuid::Uuid;
use vault_core::audit::{
    AuditEntry, DeliveryLease, DeliveryPosition, DeliveryState, RecordDelivered, SealedAuditRecord, SealedCheckpoint,
    StoredCheckpoint, UnsealedEntry,
};
use vault_core::id::AuditId;
use vault_core::port::{CheckpointRows, Reply};
use vault_core::time::Timestamp;

/// Delivery position of the audit log, and the lease of the delivering process.
#[derive(Clone)]
pub(super) struct DeliveryRow {
    pub(super) position: DeliveryPosition,
    holder: Uuid,
    pub(super) until: Timestamp,
}

impl CheckpointRows for MemoryRows<'_> {
    fn unsealed_entries(&self, after: Option<String>, limit: usize) -> Reply<'_, Vec<UnsealedEntry>> {
        let entries = entries(&self.state(), self.trail).into_iter();
        let unsealed = entries.filter(|entry| entry.checkpoint.is_none());
        let unsealed = unsealed.filter(|entry| after.as_ref().is_none_or(|after| entry.id > *after));
        done(unsealed.take(limit).map(|AuditEntry { id, mac, .. }| UnsealedEntry { id, mac }).collect())
    }

    fn newest_checkpoint(&self) -> Reply<'_, Option<StoredCheckpoint>> {
        done(self.state().checkpoints.values().next_back().map(stored))
    }

    fn checkpoints(&self, after: i64, limit: usize) -> Reply<'_, Vec<StoredCheckpoint>> {
        let state = self.state();
        let later = state.checkpoints.iter().filter(|(number, _)| **number > after);
        done(later.take(limit).map(|(_, sealed)| stored(sealed)).collect())
    }

    fn insert_checkpoint(&self, sealed: &SealedCheckpoint) -> Reply<'_, bool> {
        let mut state = self.state();
        let is_new = !state.checkpoints.contains_key(&sealed.checkpoint.number);
        if is_new {
            state.checkpoints.insert(sealed.checkpoint.number, sealed.clone());
        }
        done(is_new)
    }

    fn seal_entries(&self, entries: &[AuditId], checkpoint: i64) -> Reply<'_, usize> {
        if self.has(Defect::SealsAgain) {
            return done(entries.len());
        }
        let mut state = self.state();
        let stored = self.trail.iter().map(|sealed| sealed.record.id).filter(|id| entries.contains(id));
        let free: Vec<_> = stored.filter(|id| !state.checkpointed.contains_key(id)).collect();
        state.checkpointed.extend(free.iter().map(|id| (*id, checkpoint)));
        done(free.len())
    }

    fn empty_checkpoint(&self, start: &SealedCheckpoint) -> Reply<'_, bool> {
        let mut state = self.state();
        let row = state.checkpoints.get_mut(&start.checkpoint.number);
        let row = row.filter(|row| row.checkpoint.hash == start.checkpoint.hash);
        done(row.map(|row| *row = start.clone()).is_some())
    }

    fn remove_audit(&self, before: i64, entries: &[AuditId]) -> Reply<'_, ()> {
        let mut state = self.state();
        state.checkpoints.retain(|number, _| *number >= before);
        state.checkpointed.retain(|id, _| !entries.contains(id));
        state.removed_audit.extend_from_slice(entries);
        done(())
    }

    fn take_delivery_lease(&self, lease: &DeliveryLease) -> Reply<'_, Option<DeliveryPosition>> {
        let DeliveryLease { holder, now, until, first } = lease.clone();
        let mut state = self.state();
        let row = state.delivery.get_or_insert(DeliveryRow { position: first, holder, until });
        let longest = now.plus_seconds(DeliveryLease::LONGEST_SECONDS);
        let free = row.holder == holder || row.until <= now || row.until > longest;
        done(free.then(|| {
            (row.holder, row.until) = (holder, until);
            row.position.clone()
        }))
    }

    fn move_delivery_position(&self, delivered: &RecordDelivered) -> Reply<'_, bool> {
        let RecordDelivered { holder, from, to } = delivered;
        let mut state = self.state();
        let row = state.delivery.as_mut().filter(|row| row.holder == *holder && row.position.checkpoint == *from);
        done(row.map(|row| row.position = to.clone()).is_some())
    }

    fn delivery_state(&self) -> Reply<'_, Option<DeliveryState>> {
        let state_of = |row: &DeliveryRow| DeliveryState { position: row.position.clone(), until: Some(row.until) };
        done(self.state().delivery.as_ref().map(state_of))
    }
}

fn stored(sealed: &SealedCheckpoint) -> StoredCheckpoint {
    StoredCheckpoint { number: sealed.checkpoint.number, sealed: Some(sealed.clone()) }
}

/// Returns every entry by ID.
pub(super) fn entries(state: &State, trail: &[SealedAuditRecord]) -> Vec<AuditEntry> {
    let entry = |sealed: &SealedAuditRecord| {
        let checkpoint = state.checkpointed.get(&sealed.record.id).copied();
        AuditEntry { checkpoint, ..sealed.to_entry() }
    };
    let mut entries: Vec<_> = trail.iter().map(entry).collect();
    entries.sort_by(|one, other| one.id.cmp(&other.id));
    entries
}
