//! Promotion and destruction of versions.

use super::{CredentialRef, Vault};
use crate::credential::{ChangedVersion, CredentialEdit};
use crate::error::Error;
use crate::principal::Principal;

impl Vault {
    /// Makes the version `number` the current one. Promoting the current version changes nothing.
    ///
    /// # Errors
    /// - [`Refusal::NotFound`](crate::Refusal::NotFound), also for a credential of another organization.
    /// - [`Refusal::NoSuchVersion`](crate::Refusal::NoSuchVersion), [`Refusal::NoShortForm`](crate::Refusal::NoShortForm) or [`Refusal::Changed`](crate::Refusal::Changed).
    pub async fn promote(
        &self,
        principal: &Principal,
        credential: CredentialRef,
        number: i64,
    ) -> Result<ChangedVersion, Error> {
        self.change(principal, credential, CredentialEdit::Promote(number), None).await
    }

    /// Destroys the staged or a previous version, including its wrapped data key.
    ///
    /// # Errors
    /// - [`Refusal::NotFound`](crate::Refusal::NotFound), also for a credential of another organization.
    /// - [`Refusal::NoSuchVersion`](crate::Refusal::NoSuchVersion), [`Refusal::CurrentVersion`](crate::Refusal::CurrentVersion) or [`Refusal::Changed`](crate::Refusal::Changed).
    pub async fn destroy_version(
        &self,
        principal: &Principal,
        credential: CredentialRef,
        number: i64,
    ) -> Result<(), Error> {
        self.change(principal, credential, CredentialEdit::Destroy(number), None).await?;
        Ok(())
    }
}
