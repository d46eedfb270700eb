//! Delete a credential, its wrapped data key included.

use super::Vault;
use crate::audit::{AuditAction, Subject};
use crate::error::{Error, Refusal};
use crate::id::CredentialId;
use crate::port::{DeleteCredential, Event};
use crate::principal::Principal;
use crate::role::Action;

impl Vault {
    /// Deletes one credential for good.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], also for another organization's credential.
    pub async fn delete(&self, principal: &Principal, id: CredentialId) -> Result<(), Error> {
        let organization = principal.member(Action::Delete)?;
        let act = DeleteCredential { organization, id };
        let (action, subject) = (AuditAction::CredentialDeleted, Subject::Credential(id));
        let command = self.ambient.command(principal, Some(organization), action, subject, act);
        let deleted = Event::recorded(&command.audit);
        if !self.store.delete_credential(command).await? {
            return Err(Refusal::NotFound.into());
        }
        self.ambient.emit(deleted);
        Ok(())
    }
}
