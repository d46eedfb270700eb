//! Change one's own password.

use super::prove_owner::{OwnerProof, ProofError, ProveOwner};
use crate::audit::{Actor, AuditAction};
use crate::password::{PasswordFlaw, check_new_password};
use crate::port::{OwnAccountRepository, OwnChange};
use crate::principal::SessionPrincipal;
use crate::seats::Requester;
use secrecy::SecretString;
use std::sync::Arc;

/// Why the password stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum ChangePasswordError {
    /// The new password is refused; told before the proof is judged.
    #[error(transparent)]
    Password(#[from] PasswordFlaw),
    /// The proof was refused or could not be judged.
    #[error(transparent)]
    Proof(#[from] ProofError),
}

/// The ports of changing one's own password.
pub struct ChangePassword {
    /// Judges the owner's proof.
    pub owner: ProveOwner,
    /// Tells whose account it is.
    pub accounts: Arc<dyn OwnAccountRepository>,
}

impl ChangePassword {
    /// Gives the principal's account the password `new`. Every other session of the account ends.
    ///
    /// # Errors
    /// See [`ChangePasswordError`].
    pub async fn run(
        &self,
        principal: &SessionPrincipal,
        brought: OwnerProof,
        new: SecretString,
    ) -> Result<(), ChangePasswordError> {
        let account = self.owner.own_account(&*self.accounts, principal).await?;
        check_new_password(&new, &account.email, account.organization.as_str())?;
        let proven = self.owner.judge(&account.email, Actor::from(principal), brought).await?;
        let permit = self.owner.hasher.permit(Requester::Trusted).map_err(ProofError::from)?;
        let sealed = self.owner.hasher.hash(permit, principal.account, new).await.map_err(ProofError::from)?;
        let change = OwnChange::Password(sealed);
        self.owner.complete_own(proven, principal, change, AuditAction::AccountPasswordChanged).await?;
        Ok(())
    }
}
