//! The audit entry of a transaction.

use crate::db::Tx;
use crate::failure::Failure;
use crate::new_row::NewEntry;
use crate::schema::audit;
use vault_core::audit::SealedAuditRecord;

/// Records what a transaction did. A transaction commits only if it records something or says that it needs no entry, so that
/// none can change rows without an entry by mistake.
#[derive(Debug, Default)]
pub(crate) struct AuditRecorder {
    commits: bool,
}

impl AuditRecorder {
    /// Appends an entry: what the transaction did, or that it was refused.
    pub(crate) async fn record(&mut self, tx: &Tx<'_>, sealed: &SealedAuditRecord) -> Result<(), Failure> {
        self.commits = true;
        tx.insert(audit::table, [NewEntry::of(sealed)]).await?;
        Ok(())
    }

    /// Commits without an entry: the transaction changes what nobody asked for, such as a cache.
    pub(crate) const fn commit_without_entry(&mut self) {
        self.commits = true;
    }

    pub(super) const fn commits(&self) -> bool {
        self.commits
    }
}
