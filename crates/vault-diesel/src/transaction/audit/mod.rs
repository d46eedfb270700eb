//! The audit log.

pub(crate) mod entries;

use crate::db::{Reply, Tx};
use crate::new_row::NewEntry;
use crate::schema::audit;
use vault_core::audit::SealedAuditRecord;

/// The most ids that one statement names: SQLite accepts up to 32,766 values.
pub(crate) const LARGEST_LIST: usize = 1_000;

/// Records what a transaction did. A transaction commits only if it records an entry or declares that it needs none, so
/// that no transaction changes rows without an entry by mistake.
#[derive(Debug, Default)]
pub(crate) struct AuditRecorder {
    commits: bool,
}

impl AuditRecorder {
    /// Appends an entry: what the transaction did.
    pub(crate) fn record<'t>(&mut self, tx: &'t Tx<'_>, sealed: &SealedAuditRecord) -> Reply<'t, usize> {
        self.commits = true;
        tx.insert(audit::table, [NewEntry::of(sealed)])
    }

    /// Commits without an entry: the transaction changes something that no principal requested, such as a cache.
    pub(crate) const fn commit_without_entry(&mut self) {
        self.commits = true;
    }

    pub(super) const fn commits(&self) -> bool {
        self.commits
    }
}
