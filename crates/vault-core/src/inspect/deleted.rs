//! Search for deleted rows: audit entries record each state of a row, and that it was deleted.

use super::Violation;
use super::row::{ENTRIES, Look, Recorded, Records, UNCERTAIN};
use crate::audit::{AuditAction, AuditEntry, RecordedRow, RowState, Subject};
use crate::entity::OF_INSTANCE;
use crate::invitation::INVITATION_SECONDS;
use crate::operation::Failure;
use crate::port::{RecordedStates, RowKey};

impl Look<'_> {
    /// Reports a row that does not exist, unless it was deleted by an operation or with its organization.
    pub(super) async fn for_deleted(&mut self, row: RecordedRow, place: RowKey) -> Result<(), Failure> {
        let rows = self.unit.rows();
        if rows.row_exists(row, place).await? {
            return Ok(());
        }
        let (organization, id) = place;
        // The rows of an organization are deleted with it. If it was deleted outside the service, it is reported itself.
        if row != RecordedRow::Organization
            && organization != OF_INSTANCE
            && !rows.row_exists(RecordedRow::Organization, (organization, *organization.as_uuid())).await?
        {
            return Ok(());
        }
        let subject = row.subject(id);
        let mut newest = None;
        for limit in ENTRIES {
            let query = RecordedStates { organization, subject, row, namespace: None, limit };
            let entries = rows.recorded_entries(&query).await?;
            let Some(first) = entries.first() else { return Ok(()) }; // such as the invitation of an account
            if !self.unit.is_genuine(first) {
                return self.find(row.table(), id, Violation::Entry { entry: first.id.clone() });
            }
            if self.is_explained(row, first, &entries).await? {
                return Ok(());
            }
            newest = Some(first.clone());
            if entries.len() < limit {
                break;
            }
        }
        let Some(newest) = newest else { return Ok(()) };
        let recorded = |state| Recorded { organization, subject, row, namespace: None, state }.record();
        match self.records {
            // A restore removes these rows.
            Records::All if matches!(row, RecordedRow::Issuer | RecordedRow::Receiver | RecordedRow::Invitation) => {
                self.seen.record = Some(recorded(RowState::Gone));
                return Ok(());
            }
            // Otherwise the row would no longer be a finding after the removal of the entry.
            Records::Older(time) if newest.at < time => self.seen.record = newest.left(row).map(recorded),
            Records::No | Records::Older(_) | Records::All => {}
        }
        self.find(row.table(), id, Violation::Deleted { entry: newest.id })
    }

    /// Returns whether the service deleted a row with these entries.
    async fn is_explained(
        &self,
        row: RecordedRow,
        newest: &AuditEntry,
        entries: &[AuditEntry],
    ) -> Result<bool, Failure> {
        let genuine: Vec<_> = entries.iter().filter(|entry| self.unit.is_genuine(entry)).collect();
        let is_gone = |entry: &AuditEntry| entry.left(row) == Some(RowState::Gone);
        Ok(match row {
            RecordedRow::Invitation => {
                let is_recent = |entry: &AuditEntry| !is_before(entry, newest);
                genuine.iter().any(|entry| is_recent(entry) && is_gone(entry)) || self.has_ended(&genuine).await?
            }
            // IDs are never used again. Entries of two servers may be ordered differently than their changes.
            _ => genuine.iter().any(|entry| is_gone(entry)),
        })
    }

    /// Returns whether maintenance may have deleted the invitation with these entries because it expired, or a restore with all
    /// others. An invitation whose creation is not among the entries may have expired.
    async fn has_ended(&self, entries: &[&AuditEntry]) -> Result<bool, Failure> {
        let creation = [AuditAction::AccountInvited.as_str(), AuditAction::AccountReEnrolled.as_str()];
        let Some(created) = entries.iter().find(|entry| creation.contains(&&*entry.action)) else { return Ok(true) };
        let now = self.unit.now().plus_seconds(UNCERTAIN / 1_000);
        if created.at.plus_seconds(INVITATION_SECONDS) <= now {
            return Ok(true);
        }
        let (subject, row) = (Subject::Instance, RecordedRow::Invitation);
        let query = RecordedStates { organization: OF_INSTANCE, subject, row, namespace: None, limit: 1 };
        let restored = self.unit.rows().recorded_entries(&query).await?;
        Ok(restored.iter().any(|entry| self.unit.is_genuine(entry) && !is_before(entry, created)))
    }
}

/// Returns whether an entry is older than another one, although the clocks of two servers may differ.
fn is_before(entry: &AuditEntry, other: &AuditEntry) -> bool {
    entry.at.as_millis().saturating_add(UNCERTAIN) < other.at.as_millis()
}
