//! Change one's own password.

use super::{Accounts, OwnerProof};
use crate::audit::{Actor, AuditAction};
use crate::error::Error;
use crate::field::{FieldCode, FieldError};
use crate::password::check_new_password;
use crate::port::OwnChange;
use crate::principal::SessionPrincipal;
use crate::seats::Requester;
use crate::usecase::under_active_key;
use secrecy::{ExposeSecret, SecretString};

impl Accounts {
    /// Changes the password of the principal's account to `new`, and revokes every other session of the account.
    ///
    /// # Errors
    /// An error of the new password, at `/new_password`, before the proof is checked; then
    /// [`Refusal::InvalidLogin`](crate::Refusal::InvalidLogin).
    pub async fn change_password(
        &self,
        principal: &SessionPrincipal,
        brought: OwnerProof,
        new: SecretString,
    ) -> Result<(), Error> {
        let account = self.own_account(principal).await?;
        let email = &account.signed.grant.email;
        // Both are the caller's own words: this tells nothing of the stored one.
        if new.expose_secret() == brought.password.expose_secret() {
            let detail = "must differ from the current password";
            return Err(FieldError::new("/new_password", FieldCode::NotAllowed, detail).into());
        }
        check_new_password(&new, email, account.organization.as_str()).map_err(|flaw| flaw.at("/new_password"))?;
        let proven = self.judge(email, Actor::from(principal), brought).await?;
        under_active_key(&self.environment, &*self.digester, || async {
            let permit = self.hasher.permit(Requester::Trusted)?;
            let password = self.hasher.hash(permit, principal.account, new.clone()).await?;
            let after = proven.reserved.signed.with_new_password();
            let change = OwnChange::Password { password, digest: after.digest(&*self.digester), after };
            self.complete_own(&proven, principal, change, AuditAction::AccountPasswordChanged).await
        })
        .await
    }
}
