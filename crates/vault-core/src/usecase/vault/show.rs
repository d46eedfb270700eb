//! Reads of one credential, in the same form as in lists.

use super::reading::Reading;
use super::{ListedCredential, Vault};
use crate::audit::AuditAction;
use crate::credential::{CredentialType, ShowCredential};
use crate::error::{Error, Refusal};
use crate::id::CredentialId;
use crate::principal::Principal;
use crate::role::Action;

impl Vault {
    /// Reads the information of one credential.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], also for a credential of another organization.
    pub async fn show(&self, principal: &Principal, id: CredentialId) -> Result<ListedCredential, Error> {
        Reading::run(|reading| self.show_once(principal, id, reading)).await
    }

    async fn show_once(
        &self,
        principal: &Principal,
        id: CredentialId,
        reading: Reading,
    ) -> Result<ListedCredential, Error> {
        let organization = principal.member(Action::List)?;
        let row = self.operations.run(&self.environment, principal, ShowCredential(organization, id)).await?;
        let shown = self.open(organization, vec![row], reading).await?;
        let shown = shown.into_iter().next().ok_or(Refusal::NotFound)?;
        self.count(principal, organization, AuditAction::CredentialShown);
        Ok(shown)
    }

    /// Returns the type and revision of a credential, which a change requires. Decrypts nothing.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], also for a credential of another organization.
    pub async fn type_and_revision(
        &self,
        principal: &Principal,
        id: CredentialId,
    ) -> Result<(CredentialType, i64), Error> {
        let organization = principal.member(Action::Save)?;
        let row = self.operations.run(&self.environment, principal, ShowCredential(organization, id)).await?;
        Ok((row.kind, row.revision))
    }
}
