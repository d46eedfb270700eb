//! Entries of the audit log.

pub(super) mod entries;

use super::usage::{ByDay, ByHour, decode_days, decode_hours};
use super::{TxRows, several, then};
use crate::new_row::NewEntry;
use crate::schema::audit;
use vault_core::audit::{AuditEntry, RowState, SealedAuditRecord};
use vault_core::id::{AuditId, OrganizationId};
use vault_core::integration::{CountedPeriod, HourlyActions, IntegrationActions};
use vault_core::port::{AuditRange, AuditRows, RecordedStates, Reply};

/// The most ids that one statement names: SQLite accepts up to 32,766 values.
pub(super) const LARGEST_LIST: usize = 1_000;

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
