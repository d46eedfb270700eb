//! Replace one's own passcode seed: a new one is given, and is in force once a code of it confirms it.

use super::Ambient;
use super::prove_owner::{OwnerProof, ProofError, ProveOwner};
use crate::audit::{Actor, AuditAction, Subject};
use crate::passcode::{PENDING_SECONDS, Passcode, PasscodeSecret};
use crate::port::{
    AuditLog, ConfirmPasscode, OwnAccountRepository, OwnChange, PasscodeVerifier, SealError, StoreError,
};
use crate::principal::{Denial, SessionPrincipal};
use secrecy::SecretString;
use std::sync::Arc;

/// The ports of asking for a new seed.
pub struct ReplacePasscode {
    /// Judges the owner's proof.
    pub owner: ProveOwner,
    /// Tells whose account it is.
    pub accounts: Arc<dyn OwnAccountRepository>,
}

impl ReplacePasscode {
    /// A new seed for the principal's account, shown this once. It waits for an hour; one that waited before is
    /// dropped.
    ///
    /// # Errors
    /// See [`ProofError`].
    pub async fn run(&self, principal: &SessionPrincipal, brought: OwnerProof) -> Result<PasscodeSecret, ProofError> {
        let account = self.owner.own_account(&*self.accounts, principal).await?;
        let proven = self.owner.judge(&account.email, Actor::from(principal), brought).await?;
        let seed = self.owner.passcodes.new_seed(principal.account, &account.email)?;
        let expires_at = self.owner.ambient.now().plus_seconds(PENDING_SECONDS);
        let change = OwnChange::PendingSeed { seed: seed.sealed, expires_at };
        self.owner.complete_own(proven, principal, change, AuditAction::AccountPasscodeDrafted).await?;
        Ok(seed.secret)
    }
}

/// Why the seed stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum ConfirmPasscodeError {
    /// No seed waits to be confirmed: none was asked for, it waited too long, or too many codes were wrong.
    #[error("no new passcode seed waits to be confirmed")]
    NothingPending,
    /// The passcode is not one of the waiting seed.
    #[error("the passcode is not valid")]
    Invalid,
    /// The session may no longer act.
    #[error("the session may no longer act")]
    Principal(Denial),
    /// The seed does not open.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The ports of confirming a new seed.
pub struct ConfirmPasscodeUseCase {
    /// Surroundings.
    pub ambient: Ambient,
    /// Passcode verification.
    pub passcodes: Arc<dyn PasscodeVerifier>,
    /// Takes the record of a wrong code.
    pub log: Arc<dyn AuditLog>,
    /// Accounts.
    pub accounts: Arc<dyn OwnAccountRepository>,
}

impl ConfirmPasscodeUseCase {
    /// Puts the waiting seed in force. Every other session of the account ends; the code is spent.
    ///
    /// # Errors
    /// See [`ConfirmPasscodeError`].
    pub async fn run(&self, principal: &SessionPrincipal, passcode: &SecretString) -> Result<(), ConfirmPasscodeError> {
        let now = self.ambient.now();
        // Counted before it is compared, so that parallel codes win no extra guess.
        let seed = self.accounts.reserve_confirmation(principal.clone(), now).await?;
        let seed = seed.map_err(ConfirmPasscodeError::Principal)?.ok_or(ConfirmPasscodeError::NothingPending)?;
        let (actor, subject) = (Actor::from(principal), Subject::Account(principal.account));
        let record = |action| self.ambient.record(now, Some(principal.organization), actor, action, subject);
        let step = match Passcode::read(passcode) {
            Passcode::TimeBased(digits) => self.passcodes.matching_step(principal.account, &seed, &digits, now)?,
            Passcode::Recovery(_) | Passcode::Impossible => None,
        };
        let Some(step) = step else {
            self.log.append(vec![record(AuditAction::AccountPasscodeUnconfirmed)]).await?;
            return Err(ConfirmPasscodeError::Invalid);
        };
        let audit = record(AuditAction::AccountPasscodeChanged);
        let command = ConfirmPasscode { principal: principal.clone(), seed: seed.id, step, now, audit };
        let confirmed = self.accounts.confirm_passcode(command).await?.map_err(ConfirmPasscodeError::Principal)?;
        if confirmed { Ok(()) } else { Err(ConfirmPasscodeError::NothingPending) }
    }
}
