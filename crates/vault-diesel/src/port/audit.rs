//! The ports of the audit log.

use super::{Database, DieselStore};
use crate::transaction::audit::AppendEntries;
use crate::transaction::audit::checkpoints::{ListCheckpoints, NewestCheckpoint};
use crate::transaction::audit::delivery::{ReadDelivery, RecordDelivered};
use crate::transaction::audit::entries::{FindEntries, UnsealedEntries};
use async_trait::async_trait;
use uuid::Uuid;
use vault_core::audit::{
    AuditEntry, DeliveryPosition, DeliveryState, SealedAuditRecord, SealedCheckpoint, StoredCheckpoint, UnsealedEntry,
};
use vault_core::id::AuditId;
use vault_core::port::{AuditLog, AuditTrail, CutAudit, Delivery, StoreError};

#[async_trait]
impl<D: Database> AuditLog for DieselStore<D> {
    async fn append(&self, records: Vec<SealedAuditRecord>) -> Result<(), StoreError> {
        self.run(AppendEntries(records)).await
    }
}

#[async_trait]
impl<D: Database> AuditTrail for DieselStore<D> {
    async fn entries(&self, ids: Vec<AuditId>) -> Result<Vec<AuditEntry>, StoreError> {
        self.answer(None, FindEntries(ids)).await
    }

    async fn unsealed_entries(&self, after: Option<String>, limit: usize) -> Result<Vec<UnsealedEntry>, StoreError> {
        self.answer(None, UnsealedEntries { after, limit }).await
    }

    async fn newest_checkpoint(&self) -> Result<Option<StoredCheckpoint>, StoreError> {
        self.answer(None, NewestCheckpoint).await
    }

    async fn checkpoints(&self, after: i64, limit: usize) -> Result<Vec<StoredCheckpoint>, StoreError> {
        self.answer(None, ListCheckpoints { after, limit }).await
    }

    async fn add_checkpoint(&self, sealed: SealedCheckpoint) -> Result<bool, StoreError> {
        self.run(sealed).await
    }

    async fn cut_audit(&self, command: CutAudit) -> Result<bool, StoreError> {
        self.run(command).await
    }

    async fn acquire_delivery_lease(&self, delivery: Delivery) -> Result<Option<DeliveryPosition>, StoreError> {
        self.run(delivery).await
    }

    async fn note_delivered(&self, holder: Uuid, from: i64, to: DeliveryPosition) -> Result<bool, StoreError> {
        self.run(RecordDelivered { holder, from, to }).await
    }

    async fn delivery(&self) -> Result<Option<DeliveryState>, StoreError> {
        self.answer(None, ReadDelivery).await
    }
}
