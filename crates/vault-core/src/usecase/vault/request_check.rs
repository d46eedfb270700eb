//! Requested checks of a credential by the activation process, which is the only one that can decrypt it.

use super::Vault;
use crate::audit::{AuditAction, Subject};
use crate::error::Error;
use crate::id::CredentialId;
use crate::port::{Event, RequestCheck};
use crate::principal::Principal;
use crate::role::Action;

impl Vault {
    /// Requests a check of a version: `version`, otherwise the staged one, otherwise the current one. Its result
    /// appears with the credential's versions within seconds.
    ///
    /// # Errors
    /// `NotFound`, also for a credential of another organization, `NoSuchVersion`, `NoChecker` and `TooOften`.
    pub async fn request_check(
        &self,
        principal: &Principal,
        id: CredentialId,
        version: Option<i64>,
    ) -> Result<(), Error> {
        let organization = principal.member(Action::Save)?;
        let (action, subject) = (AuditAction::CredentialCheckRequested, Subject::Credential(id));
        let payload = RequestCheck { organization, id, version };
        let command = self.environment.command(principal, Some(organization), action, subject, payload);
        let requested = Event::recorded(&command.audit);
        self.store.request_check(command).await?;
        self.environment.emit(requested);
        Ok(())
    }
}
