//! Reads of one credential, in the same form as in lists.

use super::{ListedCredential, Vault};
use crate::audit::AuditAction;
use crate::credential::{CredentialType, OpenedCredential, ShowCredential};
use crate::error::Error;
use crate::id::CredentialId;
use crate::principal::Principal;
use crate::role::Action;

impl Vault {
    /// Reads the information of one credential.
    ///
    /// # Errors
    /// [`Refusal::NotFound`](crate::Refusal::NotFound), also for a credential of another organization.
    pub async fn show(&self, principal: &Principal, id: CredentialId) -> Result<ListedCredential, Error> {
        let organization = principal.member(Action::List)?;
        let opened = self.operations.run(&self.environment, principal, ShowCredential(organization, id)).await?;
        self.count(principal, organization, AuditAction::CredentialShown);
        Ok(ListedCredential::of(opened, self.environment.now()))
    }

    /// Returns the type and revision of a credential, which a change requires.
    ///
    /// # Errors
    /// [`Refusal::NotFound`](crate::Refusal::NotFound), also for a credential of another organization.
    pub async fn type_and_revision(
        &self,
        principal: &Principal,
        id: CredentialId,
    ) -> Result<(CredentialType, i64), Error> {
        let organization = principal.member(Action::Save)?;
        let OpenedCredential { row, .. } =
            self.operations.run(&self.environment, principal, ShowCredential(organization, id)).await?;
        Ok((row.kind, row.revision))
    }
}
