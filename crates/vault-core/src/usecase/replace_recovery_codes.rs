//! Replace one's own recovery codes.

use super::prove_owner::{OwnerProof, ProofError, ProveOwner};
use crate::audit::{Actor, AuditAction};
use crate::passcode::RecoveryCode;
use crate::port::{OwnAccountRepository, OwnChange};
use crate::principal::SessionPrincipal;
use std::sync::Arc;

/// The ports of replacing recovery codes.
pub struct ReplaceRecoveryCodes {
    /// Judges the owner's proof.
    pub owner: ProveOwner,
    /// Tells whose account it is.
    pub accounts: Arc<dyn OwnAccountRepository>,
}

impl ReplaceRecoveryCodes {
    /// New recovery codes for the principal's account, shown this once; those before are dead. Every other
    /// session of the account ends.
    ///
    /// # Errors
    /// See [`ProofError`].
    pub async fn run(
        &self,
        principal: &SessionPrincipal,
        brought: OwnerProof,
    ) -> Result<Vec<RecoveryCode>, ProofError> {
        let account = self.owner.own_account(&*self.accounts, principal).await?;
        let proven = self.owner.judge(&account.email, Actor::from(principal), brought).await?;
        let new = self.owner.passcodes.new_recovery_codes(principal.account)?;
        let change = OwnChange::RecoveryCodes(new.digests);
        self.owner.complete_own(proven, principal, change, AuditAction::AccountRecoveryCodesReplaced).await?;
        Ok(new.codes)
    }
}
