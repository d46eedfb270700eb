//! Have a credential checked by the activation side, which alone opens it.

use super::Vault;
use crate::audit::{AuditAction, Subject};
use crate::error::{Error, Refusal};
use crate::id::CredentialId;
use crate::port::{Event, RequestCheck};
use crate::principal::Principal;
use crate::role::Action;

impl Vault {
    /// Requests a check of a version: `version`, else the staged one, else the current one. Its result appears with the
    /// credential's versions within seconds.
    ///
    /// # Errors
    /// [`Refusal::ChecksUnavailable`]; [`Refusal::NotFound`], also for another organization's credential;
    /// [`Refusal::NoSuchVersion`], [`Refusal::NoChecker`], [`Refusal::TooOften`].
    pub async fn request_check(
        &self,
        principal: &Principal,
        id: CredentialId,
        version: Option<i64>,
    ) -> Result<(), Error> {
        let organization = principal.member(Action::Save)?;
        if !self.checks {
            // Whoever may not ask is told that first.
            self.type_and_revision(principal, id).await?;
            return Err(Refusal::ChecksUnavailable.into());
        }
        let (action, subject) = (AuditAction::CredentialCheckRequested, Subject::Credential(id));
        let act = RequestCheck { organization, id, version };
        let command = self.environment.command(principal, Some(organization), action, subject, act);
        let requested = Event::recorded(&command.audit);
        self.store.request_check(command).await?;
        self.environment.emit(requested);
        Ok(())
    }
}
