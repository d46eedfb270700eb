//! Delete a credential, the wrapped data keys of all versions included.

use super::{CredentialRef, Vault};
use crate::audit::{AuditAction, Subject};
use crate::error::{Error, Refusal};
use crate::port::{DeleteCredential, Event};
use crate::principal::Principal;
use crate::role::Action;

impl Vault {
    /// Deletes one credential for good, all of its versions included.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], also for another organization's credential; [`Refusal::Changed`].
    pub async fn delete(&self, principal: &Principal, credential: impl Into<CredentialRef>) -> Result<(), Error> {
        let organization = principal.member(Action::Delete)?;
        let CredentialRef { id, revision } = credential.into();
        let act = DeleteCredential { organization, id, revision };
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
