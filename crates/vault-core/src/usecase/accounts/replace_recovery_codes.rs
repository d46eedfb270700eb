//! Replacement of the caller's own recovery codes.

use super::{Accounts, OwnerProof};
use crate::audit::{Actor, AuditAction};
use crate::error::Error;
use crate::passcode::RecoveryCode;
use crate::port::OwnChange;
use crate::principal::SessionPrincipal;

impl Accounts {
    /// Generates new recovery codes for the principal's account, which are shown only once. The previous codes are
    /// invalid, and all other sessions of the account end.
    ///
    /// # Errors
    /// [`Refusal::InvalidLogin`](crate::Refusal::InvalidLogin) if the re-authentication failed.
    pub async fn replace_recovery_codes(
        &self,
        principal: &SessionPrincipal,
        brought: OwnerProof,
    ) -> Result<Vec<RecoveryCode>, Error> {
        let account = self.own_account(principal).await?;
        let proven = self.judge(&account.signed.grant.email, Actor::from(principal), brought).await?;
        let new = self.passcodes.new_recovery_codes(principal.account, &proven.reserved.seed)?;
        let change = OwnChange::RecoveryCodes(new.digests);
        self.complete_own(&proven, principal, change, AuditAction::AccountRecoveryCodesReplaced).await?;
        Ok(new.codes)
    }
}
