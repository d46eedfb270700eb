//! Lookup digests of a credential's labels under another lookup key.

use crate::digest::Digest;
use crate::id::{CredentialId, OrganizationId};
use crate::operation::{Access, Failure, Operation, Unit};

/// Replaces the lookup digests of a credential's labels, unless the credential was changed or deleted since it was read. Does not
/// change the credential itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelabelCredential {
    /// The organization.
    pub organization: OrganizationId,
    /// ID of the credential.
    pub id: CredentialId,
    /// Revision that was read.
    pub revision: i64,
    /// The digest of each label, in any order.
    pub labels: Vec<Digest>,
}

impl Operation for RelabelCredential {
    /// Returns whether they were replaced.
    type Outcome = bool;
    const ACCESS: Access = Access::Write;

    fn organization(&self) -> Option<OrganizationId> {
        Some(self.organization)
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<bool, Failure> {
        let (rows, organization, id) = (unit.rows(), self.organization, self.id);
        let row = rows.credential(organization, id).await?;
        if row.is_none_or(|row| row.revision != self.revision) {
            return Ok(false);
        }
        rows.set_labels(organization, id, &self.labels).await?;
        unit.commit_without_entry();
        Ok(true)
    }
}
