//! Lists of audit entries.

use super::AuditEntry;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::port::AuditRange;
use crate::principal::Denial;

/// Reads entries of a range. Sessions can read entries of their own organization, if their role administers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListEntries {
    /// The range.
    pub range: AuditRange,
    /// ID of the last entry that was read.
    pub after: Option<String>,
    /// Maximum number of entries.
    pub limit: usize,
}

impl Operation for ListEntries {
    type Outcome = Vec<AuditEntry>;
    const ACCESS: Access<Self> = Access::Read(|operation| operation.range.scope.one());

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<AuditEntry>, Failure> {
        if !unit.principal().may_see(self.range.scope) {
            return Err(Denial::InsufficientRole.into());
        }
        unit.authorized(unit.rows().entries(self.range, self.after.clone(), self.limit)).await
    }
}
