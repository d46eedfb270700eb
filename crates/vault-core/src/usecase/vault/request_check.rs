//! Requested checks of a credential by the activation process, which is the only one that can decrypt it.

use super::Vault;
use crate::audit::{AuditAction, Subject};
use crate::error::{Error, Refusal};
use crate::id::CredentialId;
use crate::port::{Event, RequestCheck};
use crate::principal::Principal;
use crate::role::Action;

impl Vault {
    /// Requests a check of a version: `version`, otherwise the staged one, otherwise the current one. Its result
    /// appears with the credential's versions within seconds.
    ///
    /// # Errors
    /// - [`Refusal::ChecksUnavailable`]: this instance does not check credentials.
    /// - [`Refusal::NotFound`], also for a credential of another organization.
    /// - [`Refusal::NoSuchVersion`], [`Refusal::NoChecker`] or [`Refusal::TooOften`].
    pub async fn request_check(
        &self,
        principal: &Principal,
        id: CredentialId,
        version: Option<i64>,
    ) -> Result<(), Error> {
        let organization = principal.member(Action::Save)?;
        if !self.checks {
            // Authorize the principal first, so that an unauthorized one gets that error.
            self.type_and_revision(principal, id).await?;
            return Err(Refusal::ChecksUnavailable.into());
        }
        let (action, subject) = (AuditAction::CredentialCheckRequested, Subject::Credential(id));
        let payload = RequestCheck { organization, id, version };
        let command = self.environment.command(principal, Some(organization), action, subject, payload);
        let requested = Event::recorded(&command.audit);
        self.store.request_check(command).await?;
        self.environment.emit(requested);
        Ok(())
    }
}
