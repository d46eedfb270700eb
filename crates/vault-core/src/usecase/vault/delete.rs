//! Deletion of credentials, including the wrapped data keys of all versions.

use super::{CredentialRef, Vault};
use crate::audit::{AuditAction, RecordedRow, RowState, Subject};
use crate::error::{Error, Refusal};
use crate::port::{DeleteCredential, Event, Find};
use crate::principal::Principal;
use crate::role::Action;

impl Vault {
    /// Deletes a credential permanently, including all of its versions.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], also for a credential of another organization. [`Refusal::Changed`] if it no longer has
    /// the revision.
    pub async fn delete(&self, principal: &Principal, credential: impl Into<CredentialRef>) -> Result<(), Error> {
        let organization = principal.member(Action::Delete)?;
        let CredentialRef { id, revision } = credential.into();
        let query = Find { principal: principal.clone(), of: organization, key: id, now: self.environment.now() };
        let namespace = self.store.show_credential(query).await?.ok_or(Refusal::NotFound)?.namespace;
        let payload = DeleteCredential { organization, id, revision };
        let affected = Subject::Credential(id).left(RecordedRow::Credential, RowState::Gone).within(namespace);
        let action = AuditAction::CredentialDeleted;
        let command = self.environment.command(principal, Some(organization), action, affected, payload);
        let deleted = Event::recorded(&command.audit);
        if !self.store.delete_credential(command).await? {
            return Err(Refusal::NotFound.into());
        }
        self.environment.emit(deleted);
        Ok(())
    }
}
