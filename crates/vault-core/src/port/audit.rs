//! The audit trail.

use super::StoreError;
use crate::audit::{AuditRecord, SealedAuditRecord};
use async_trait::async_trait;

/// Gives entries the code that makes a change of them show.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait AuditSealer: Send + Sync {
    /// The entry with its code.
    fn seal(&self, record: AuditRecord) -> SealedAuditRecord;
}

/// Entries without a change of their own.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Appends entries, all or none.
    async fn append(&self, records: Vec<SealedAuditRecord>) -> Result<(), StoreError>;
}
