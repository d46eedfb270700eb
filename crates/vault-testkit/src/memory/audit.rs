//! The audit trail and its checkpoints.

use super::{Inner, MemoryStore, State};
use crate::clock::lock;
use async_trait::async_trait;
use uuid::Uuid;
use vault_core::audit::{
    AuditEntry, DeliveryPosition, DeliveryState, SealedAuditRecord, SealedCheckpoint, StoredCheckpoint, UnsealedEntry,
};
use vault_core::id::AuditId;
use vault_core::port::{AuditLog, AuditTrail, CutAudit, Delivery, StoreError};
use vault_core::time::Timestamp;

/// Delivery position of the audit log, and the lease of the delivering process.
#[derive(Clone)]
pub(super) struct DeliveryRow {
    pub(super) position: DeliveryPosition,
    holder: Uuid,
    pub(super) until: Timestamp,
}

#[async_trait]
impl AuditLog for MemoryStore {
    async fn append(&self, records: Vec<SealedAuditRecord>) -> Result<(), StoreError> {
        self.decide(|state| state.audit.extend(records))
    }
}

#[async_trait]
impl AuditTrail for MemoryStore {
    async fn entries(&self, ids: Vec<AuditId>) -> Result<Vec<AuditEntry>, StoreError> {
        self.decide(|_| ())?;
        let mut entries = lock(&self.inner).entries();
        entries.retain(|entry| entry.id.parse().is_ok_and(|id| ids.contains(&id)));
        Ok(entries)
    }

    async fn unsealed_entries(&self, after: Option<String>, limit: usize) -> Result<Vec<UnsealedEntry>, StoreError> {
        self.decide(|_| ())?;
        let entries = lock(&self.inner).entries().into_iter();
        let unsealed = entries.filter(|entry| entry.checkpoint.is_none());
        let unsealed = unsealed.filter(|entry| after.as_ref().is_none_or(|after| entry.id > *after));
        Ok(unsealed.take(limit).map(|AuditEntry { id, code, .. }| UnsealedEntry { id, code }).collect())
    }

    async fn newest_checkpoint(&self) -> Result<Option<StoredCheckpoint>, StoreError> {
        self.decide(|state| state.checkpoints.values().next_back().map(stored))
    }

    async fn checkpoints(&self, after: i64, limit: usize) -> Result<Vec<StoredCheckpoint>, StoreError> {
        self.decide(|state| {
            let later = state.checkpoints.iter().filter(|(number, _)| **number > after);
            later.take(limit).map(|(_, sealed)| stored(sealed)).collect()
        })
    }

    async fn add_checkpoint(&self, sealed: SealedCheckpoint) -> Result<bool, StoreError> {
        let there = lock(&self.inner).trail_ids.clone();
        self.decide(|state| {
            let number = sealed.checkpoint.number;
            let follows = number == 1 || state.checkpoints.contains_key(&(number - 1));
            let ids = &sealed.checkpoint.entries;
            let free = ids.iter().all(|id| there.contains(id) && !state.checkpointed.contains_key(id));
            let added = follows && free && !state.checkpoints.contains_key(&number);
            if added {
                state.checkpointed.extend(ids.iter().map(|id| (*id, number)));
                state.checkpoints.insert(number, sealed);
            }
            added
        })
    }

    async fn cut_audit(&self, command: CutAudit) -> Result<bool, StoreError> {
        let CutAudit { first, entries, start, audit } = command;
        let cut = self.decide(|state| {
            let number = start.checkpoint.number;
            let same = state.checkpoints.get(&number).is_some_and(|it| it.checkpoint.hash == start.checkpoint.hash);
            let cut = same && state.checkpoints.keys().next() == Some(&first);
            if cut {
                state.checkpoints.retain(|other, _| *other > number);
                state.checkpoints.insert(number, start);
                state.checkpointed.retain(|id, _| !entries.contains(id));
                state.audit.push(audit);
            }
            cut
        })?;
        if cut {
            lock(&self.inner).trail.retain(|sealed| !entries.contains(&sealed.record.id));
        }
        Ok(cut)
    }

    async fn acquire_delivery_lease(&self, delivery: Delivery) -> Result<Option<DeliveryPosition>, StoreError> {
        let Delivery { holder, now, until, first } = delivery;
        self.decide(|state| {
            let row = state.delivery.get_or_insert(DeliveryRow { position: first, holder, until });
            let longest = now.plus_seconds(Delivery::LONGEST_SECONDS);
            let free = row.holder == holder || row.until <= now || row.until > longest;
            free.then(|| {
                (row.holder, row.until) = (holder, until);
                row.position.clone()
            })
        })
    }

    async fn note_delivered(&self, holder: Uuid, from: i64, to: DeliveryPosition) -> Result<bool, StoreError> {
        self.decide(|state| {
            let row = state.delivery.as_mut().filter(|row| row.holder == holder && row.position.checkpoint == from);
            row.map(|row| row.position = to).is_some()
        })
    }

    async fn delivery(&self) -> Result<Option<DeliveryState>, StoreError> {
        self.decide(|state| {
            let state_of = |row: &DeliveryRow| DeliveryState { position: row.position.clone(), until: Some(row.until) };
            state.delivery.as_ref().map(state_of)
        })
    }
}

fn stored(sealed: &SealedCheckpoint) -> StoredCheckpoint {
    StoredCheckpoint { number: sealed.checkpoint.number, sealed: Some(sealed.clone()) }
}

impl Inner {
    /// Returns every entry by ID.
    pub(super) fn entries(&self) -> Vec<AuditEntry> {
        entries(&self.state, &self.trail)
    }
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
