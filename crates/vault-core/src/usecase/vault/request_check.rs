//! Requested checks of a credential by the activation process, which is the only one that can decrypt it.

use super::Vault;
use crate::credential::RequestCheck;
use crate::error::Error;
use crate::id::CredentialId;
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
        self.operations.run(&self.environment, principal, RequestCheck { organization, id, version }).await
    }
}
