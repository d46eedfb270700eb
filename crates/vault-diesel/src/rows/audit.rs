//! The audit log: its entries and checkpoints, and its delivery to a sink.

use super::usage::{ByDay, ByHour, decode_days, decode_hours};
use super::{TxRows, changed_one, several, then};
use crate::new_row::NewEntry;
use crate::schema::audit;
use crate::transaction::audit::{checkpoints, delivery, entries};
use vault_core::audit::{
    AuditEntry, DeliveryLease, DeliveryPosition, DeliveryState, RecordDelivered, RowState, SealedAuditRecord,
    SealedCheckpoint, StoredCheckpoint, UnsealedEntry,
};
use vault_core::id::{AuditId, OrganizationId};
use vault_core::integration::{CountedPeriod, HourlyActions, IntegrationActions};
use vault_core::port::{AuditRange, AuditRows, CheckpointRows, RecordedStates, Reply};

impl AuditRows for TxRows<'_> {
    fn append_entry(&self, entry: &SealedAuditRecord) -> Reply<'_, ()> {
        if self.tx.collects() {
            self.kept.note_entry(entry.record.subject.text());
        }
        then(self.tx.insert_later(audit::table, NewEntry::of(entry)), |_| Ok(()))
    }

    fn entries(&self, range: AuditRange, after: Option<String>, limit: usize) -> Reply<'_, Vec<AuditEntry>> {
        several(async move { entries::read(&self.tx, range, after, limit).await })
    }

    fn entries_with(&self, ids: &[AuditId]) -> Reply<'_, Vec<AuditEntry>> {
        let ids = ids.to_vec();
        several(async move { entries::find(&self.tx, &ids).await })
    }

    fn recorded(&self, query: &RecordedStates) -> Reply<'_, Vec<RowState>> {
        let query = query.clone();
        several(async move {
            // Others stay pending, so that operations on many subjects insert their entries together.
            if self.kept.takes_entries(&query.subject.text()) {
                self.tx.insert_pending::<audit::table>().await?;
            }
            entries::states(&self.tx, &query).await
        })
    }

    fn count_actions(&self, organization: OrganizationId, period: CountedPeriod) -> Reply<'_, Vec<IntegrationActions>> {
        then(self.tx.load(ByDay::of(organization, period)), move |rows| decode_days(organization, rows))
    }

    fn count_hours(&self, organization: OrganizationId, period: CountedPeriod) -> Reply<'_, Vec<HourlyActions>> {
        then(self.tx.load(ByHour::of(organization, period)), |rows| Ok(decode_hours(rows)))
    }
}

impl CheckpointRows for TxRows<'_> {
    fn unsealed_entries(&self, after: Option<String>, limit: usize) -> Reply<'_, Vec<UnsealedEntry>> {
        several(async move { entries::unsealed(&self.tx, after, limit).await })
    }

    fn newest_checkpoint(&self) -> Reply<'_, Option<StoredCheckpoint>> {
        several(checkpoints::newest(&self.tx))
    }

    fn checkpoints(&self, after: i64, limit: usize) -> Reply<'_, Vec<StoredCheckpoint>> {
        several(checkpoints::following(&self.tx, after, limit))
    }

    fn insert_checkpoint(&self, sealed: &SealedCheckpoint) -> Reply<'_, bool> {
        then(checkpoints::insert(&self.tx, sealed), changed_one)
    }

    fn seal_entries(&self, entries: &[AuditId], checkpoint: i64) -> Reply<'_, usize> {
        let entries = entries.to_vec();
        several(async move { checkpoints::seal(&self.tx, &entries, checkpoint).await })
    }

    fn empty_checkpoint(&self, start: &SealedCheckpoint) -> Reply<'_, bool> {
        then(checkpoints::empty(&self.tx, start), changed_one)
    }

    fn remove_audit(&self, before: i64, entries: &[AuditId]) -> Reply<'_, ()> {
        let entries = entries.to_vec();
        several(async move { checkpoints::remove(&self.tx, before, &entries).await })
    }

    fn take_delivery_lease(&self, lease: &DeliveryLease) -> Reply<'_, Option<DeliveryPosition>> {
        let lease = lease.clone();
        several(async move { delivery::take(&self.tx, &lease).await })
    }

    fn move_delivery_position(&self, delivered: &RecordDelivered) -> Reply<'_, bool> {
        then(delivery::record(&self.tx, delivered), changed_one)
    }

    fn delivery_state(&self) -> Reply<'_, Option<DeliveryState>> {
        several(delivery::read(&self.tx))
    }
}
