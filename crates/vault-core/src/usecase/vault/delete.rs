//! Deletion of credentials, including the wrapped data keys of all versions.

use super::{CredentialRef, Vault};
use crate::credential::DeleteCredential;
use crate::error::Error;
use crate::principal::Principal;
use crate::role::Action;

impl Vault {
    /// Deletes a credential permanently, including all of its versions.
    ///
    /// # Errors
    /// [`Refusal::NotFound`](crate::Refusal::NotFound), also for a credential of another organization. [`Refusal::Changed`](crate::Refusal::Changed) if it no longer has
    /// the revision.
    pub async fn delete(&self, principal: &Principal, credential: impl Into<CredentialRef>) -> Result<(), Error> {
        let organization = principal.member(Action::Delete)?;
        let CredentialRef { id, revision } = credential.into();
        self.operations.run(&self.environment, principal, DeleteCredential { organization, id, revision }).await
    }
}
