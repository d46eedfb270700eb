//! Replacement of the caller's own recovery codes.

use super::{Accounts, OwnerProof};
use crate::audit::Actor;
use crate::error::Error;
use crate::login::OwnChange;
use crate::passcode::RecoveryCode;
use crate::principal::SessionPrincipal;

impl Accounts {
    /// Generates new recovery codes for the principal's account, which are shown only once. The previous codes are
    /// invalid, all other sessions of the account end, and a pending TOTP secret is deleted.
    ///
    /// # Errors
    /// [`Refusal::InvalidLogin`](crate::Refusal::InvalidLogin) if the re-authentication failed.
    pub async fn replace_recovery_codes(
        &self,
        principal: &SessionPrincipal,
        presented: OwnerProof,
    ) -> Result<Vec<RecoveryCode>, Error> {
        let account = self.own_account(principal).await?;
        let proven = self.evaluate(&account.account.grant.email, Actor::from(principal), presented).await?;
        let seed = self.passcodes.with_new_recovery_key(&proven.secrets.seed)?;
        let new = self.passcodes.new_recovery_codes(principal.account, &seed)?;
        let change = OwnChange::RecoveryCodes { id: self.new_secrets_id(), seed, codes: new.digests };
        self.complete_own(&proven, principal, change).await?;
        Ok(new.codes)
    }
}
