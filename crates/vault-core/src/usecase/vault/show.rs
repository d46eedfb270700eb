//! Reads of one credential, in the same form as in lists.

use super::reading::Reading;
use super::{ListedCredential, Vault};
use crate::audit::AuditAction;
use crate::credential::CredentialType;
use crate::error::{Error, Refusal};
use crate::id::CredentialId;
use crate::port::Find;
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
        let now = self.environment.now();
        let query = Find { principal: principal.clone(), of: organization, key: id, now };
        let row = self.store.show_credential(query).await?.ok_or(Refusal::NotFound)?;
        let shown = self.open(organization, vec![row], reading).await?;
        let shown = shown.into_iter().next().ok_or(Refusal::NotFound)?;
        self.count(principal, organization, now, AuditAction::CredentialShown);
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
        let query = Find { principal: principal.clone(), of: organization, key: id, now: self.environment.now() };
        let row = self.store.show_credential(query).await?.ok_or(Refusal::NotFound)?;
        Ok((row.kind, row.revision))
    }
}
