//! Changes of the caller's own password.

use super::{Accounts, OwnerProof};
use crate::audit::Actor;
use crate::error::Error;
use crate::field::{FieldCode, FieldError};
use crate::hash_slots::Requester;
use crate::login::OwnChange;
use crate::password::check_new_password;
use crate::principal::SessionPrincipal;
use secrecy::{ExposeSecret, SecretString};

impl Accounts {
    /// Changes the password of the principal's account to `new`, and revokes all other sessions of the account.
    ///
    /// # Errors
    /// - An error at `/new_password` if the new password is invalid, before the re-authentication.
    /// - [`Refusal::InvalidLogin`](crate::Refusal::InvalidLogin) if the re-authentication failed.
    pub async fn change_password(
        &self,
        principal: &SessionPrincipal,
        presented: OwnerProof,
        new: SecretString,
    ) -> Result<(), Error> {
        let account = self.own_account(principal).await?;
        let email = &account.account.grant.email;
        // The caller sent both values, so the comparison discloses nothing about the stored password.
        if new.expose_secret() == presented.password.expose_secret() {
            let detail = "must differ from the current password";
            return Err(FieldError::new("/new_password", FieldCode::NotAllowed, detail).into());
        }
        let organization = self.organization(principal.organization).await?.name;
        check_new_password(&new, email, organization.as_str()).map_err(|violation| violation.at("/new_password"))?;
        let proven = self.evaluate(email, Actor::from(principal), presented).await?;
        let permit = self.hasher.permit(Requester::Trusted)?;
        let password = self.hasher.hash(permit, new).await?;
        self.complete_own(&proven, principal, OwnChange::Password(self.new_secrets_id(), password)).await
    }
}
