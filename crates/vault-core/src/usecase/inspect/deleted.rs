//! Search for deleted rows: audit entries record each state of a row, and that it was deleted.

use super::{ENTRIES, Inspector, MORE_ENTRIES, Recorded, Records, Seen, UNCERTAIN, Violation};
use crate::audit::{AuditAction, AuditEntry, RecordedRow, RowState, Subject};
use crate::entity::OF_INSTANCE;
use crate::error::Error;
use crate::invitation::INVITATION_SECONDS;
use crate::port::{ProtectedTable, RecordedStates, RecordedSubject, RowKey};

impl Inspector {
    /// Returns the rows of these subjects that do not exist.
    pub(super) async fn absent(&self, subjects: &[RecordedSubject]) -> Result<Vec<(RecordedRow, RowKey)>, Error> {
        let mut named = Vec::new();
        for RecordedSubject { subject, organization, .. } in subjects {
            // Another subject or organization was changed with SQL, which the verification of the audit log finds.
            let (Some((rows, id)), Ok(organization)) = (RecordedRow::of_subject(subject), organization.parse()) else {
                continue;
            };
            named.extend(rows.iter().map(|row| (*row, (organization, id))));
        }
        let mut absent = Vec::new();
        for row in ProtectedTable::ALL.into_iter().flat_map(|table| table.recorded).copied() {
            // Several entries of a subject follow each other.
            let mut places: Vec<_> = named.iter().filter(|(of, _)| *of == row).map(|(_, place)| *place).collect();
            places.dedup();
            if !places.is_empty() {
                let existing = self.existing(row, &places).await?;
                absent.extend(places.into_iter().filter(|place| !existing.contains(place)).map(|place| (row, place)));
            }
        }
        Ok(absent)
    }

    async fn existing(&self, row: RecordedRow, places: &[RowKey]) -> Result<Vec<RowKey>, Error> {
        Ok(self.store.existing_rows(row, places.to_vec()).await?)
    }

    /// Reports a row that does not exist, unless it was deleted by an operation or with its organization.
    pub(super) async fn look_for_deleted(&self, row: RecordedRow, place: RowKey, seen: &mut Seen) -> Result<(), Error> {
        if !self.existing(row, &[place]).await?.is_empty() {
            return Ok(());
        }
        let (organization, id) = place;
        // The rows of an organization are deleted with it. If it was deleted outside the service, it is reported itself.
        let owner = (organization, *organization.as_uuid());
        if row != RecordedRow::Organization
            && organization != OF_INSTANCE
            && self.existing(RecordedRow::Organization, &[owner]).await?.is_empty()
        {
            return Ok(());
        }
        let subject = row.subject(id);
        let mut limit = ENTRIES;
        let (newest, state) = loop {
            let query = RecordedStates { organization, subject, row, namespace: None, limit };
            let entries = self.store.recorded_states(query).await?;
            let Some(newest) = entries.first() else { return Ok(()) }; // such as the invitation of an account
            if !newest.is_genuine(&*self.environment.audit) {
                seen.find(row.table(), id, Violation::Entry { entry: newest.id.clone() });
                return Ok(());
            }
            if self.is_explained(row, newest, &entries).await? {
                return Ok(());
            }
            if entries.len() < limit || limit == MORE_ENTRIES {
                break (newest.clone(), newest.left(row));
            }
            limit = MORE_ENTRIES;
        };
        let recorded = |state| Recorded { organization, subject, row, namespace: None, state };
        match self.records {
            // A restore removes these rows.
            Records::All if matches!(row, RecordedRow::Issuer | RecordedRow::Receiver | RecordedRow::Invitation) => {
                return self.record_state(&recorded(RowState::Gone)).await;
            }
            // Otherwise the row would no longer be a finding after the removal of the entry.
            Records::Older(time) if newest.at < time => {
                if let Some(state) = state {
                    self.record_state(&recorded(state)).await?;
                }
            }
            Records::No | Records::Older(_) | Records::All => {}
        }
        seen.find(row.table(), id, Violation::Deleted { entry: newest.id });
        Ok(())
    }

    /// Returns whether the service deleted a row with these entries.
    async fn is_explained(&self, row: RecordedRow, newest: &AuditEntry, entries: &[AuditEntry]) -> Result<bool, Error> {
        let genuine: Vec<_> = entries.iter().filter(|entry| entry.is_genuine(&*self.environment.audit)).collect();
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
    async fn has_ended(&self, entries: &[&AuditEntry]) -> Result<bool, Error> {
        let creation = [AuditAction::AccountInvited.as_str(), AuditAction::AccountReEnrolled.as_str()];
        let Some(created) = entries.iter().find(|entry| creation.contains(&&*entry.action)) else { return Ok(true) };
        let now = self.environment.now().plus_seconds(UNCERTAIN / 1_000);
        if created.at.plus_seconds(INVITATION_SECONDS) <= now {
            return Ok(true);
        }
        let (subject, row) = (Subject::Instance, RecordedRow::Invitation);
        let query = RecordedStates { organization: OF_INSTANCE, subject, row, namespace: None, limit: 1 };
        let restored = self.store.recorded_states(query).await?;
        Ok(restored.iter().any(|entry| entry.is_genuine(&*self.environment.audit) && !is_before(entry, created)))
    }
}

/// Returns whether an entry is older than another one, although the clocks of two servers may differ.
fn is_before(entry: &AuditEntry, other: &AuditEntry) -> bool {
    entry.at.as_millis().saturating_add(UNCERTAIN) < other.at.as_millis()
}
