//! Lookup digests of a credential's labels under another lookup key.

use crate::id::{CredentialId, OrganizationId};
use crate::operation::{Access, Failure, Operation, Unit};

/// Replaces the lookup digests of a credential's labels that are not those of the current lookup key. Does not change the credential
/// itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelabelCredential(pub OrganizationId, pub CredentialId);

impl Operation for RelabelCredential {
    /// Returns whether they were replaced. A damaged credential keeps them.
    type Outcome = bool;
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.0));

    async fn run(&self, unit: &Unit<'_>) -> Result<bool, Failure> {
        let (rows, organization, id) = (unit.rows(), self.0, self.1);
        let Some(row) = rows.credential(organization, id).await? else { return Ok(false) };
        // The credentials of a deleted organization are removed gradually.
        let Some(owner) = unit.organization(organization).await? else { return Ok(false) };
        let Ok(card) = unit.open_card(&owner, &row)? else { return Ok(false) };
        let labels = card.metadata.labels.digests(unit.digester(), organization);
        let stored = rows.labels(organization, id).await?;
        if labels.len() == stored.len() && labels.iter().all(|label| stored.contains(label)) {
            return Ok(false);
        }
        rows.set_labels(organization, id, &labels).await?;
        unit.commit_without_entry();
        Ok(true)
    }
}
