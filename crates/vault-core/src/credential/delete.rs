//! Deletions of credentials.

use crate::audit::{AuditAction, RecordedRow, RowState, Subject};
use crate::error::Refusal;
use crate::id::{CredentialId, OrganizationId};
use crate::operation::{Access, Failure, Operation, Unit};

/// Deletes a credential permanently, including the wrapped data keys of all versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteCredential {
    /// Organization of the credential.
    pub organization: OrganizationId,
    /// ID of the credential.
    pub id: CredentialId,
    /// Revision that the credential must still have. `None` accepts any.
    pub revision: Option<i64>,
}

impl Operation for DeleteCredential {
    type Outcome = ();
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        let Self { organization, id, revision } = *self;
        let found = unit.authorized(unit.rows().credential(organization, id)).await?.ok_or(Refusal::NotFound)?;
        if revision.is_some_and(|revision| revision != found.revision) {
            return Err(Refusal::Changed.into());
        }
        let affected = Subject::Credential(id).left(RecordedRow::Credential, RowState::Gone).within(found.namespace);
        unit.write_and_record(
            unit.rows().remove_credential(organization, id),
            Some(organization),
            AuditAction::CredentialDeleted,
            affected,
        )
        .await
    }
}
