//! Entries that are not part of another operation.

use super::SealedAuditRecord;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::port::Event;

/// Appends all entries, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendEntries(pub Vec<SealedAuditRecord>);

impl Operation for AppendEntries {
    type Outcome = ();
    /// None, so that an entry about an organization waits for none of its operations.
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        for entry in &self.0 {
            unit.record_entry(entry).await?;
        }
        Ok(())
    }
}

/// Appends an entry about what happened outside the store, and reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordEntry(pub SealedAuditRecord);

impl Operation for RecordEntry {
    type Outcome = ();
    /// None, so that it waits for no other operation.
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        unit.report(Event::recorded(&self.0));
        unit.record_entry(&self.0).await
    }
}
