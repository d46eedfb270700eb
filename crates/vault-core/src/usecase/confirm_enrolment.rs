//! Confirm an enrolment by a code of the new seed: the invitation becomes an account.

use super::{Ambient, enrol};
use crate::audit::{Actor, AuditAction, Subject};
use crate::passcode::Passcode;
use crate::port::{
    ConfirmEnrolment, InvitationRepository, KeyedDigester, OpenInvitation, PasscodeVerifier, SealError, StoreError,
};
use secrecy::SecretString;
use std::sync::Arc;

/// How often a confirmation is decided anew because the invitation changed under it.
const ATTEMPTS: usize = 5;

/// Why no account was made.
#[derive(Debug, thiserror::Error)]
pub enum ConfirmEnrolmentError {
    /// No invitation can be taken up by this code, or nothing has been drafted yet.
    #[error("the enrolment code is not valid")]
    InvalidEnrolment,
    /// The passcode is not one of the newest draft's seed.
    #[error("the passcode is not valid")]
    WrongPasscode,
    /// The seed does not open.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The ports of confirming enrolments.
pub struct ConfirmEnrolmentUseCase {
    /// Surroundings.
    pub ambient: Ambient,
    /// Passcode verification.
    pub passcodes: Arc<dyn PasscodeVerifier>,
    /// Look-up digests and row codes.
    pub digester: Arc<dyn KeyedDigester>,
    /// Invitations.
    pub invitations: Arc<dyn InvitationRepository>,
}

impl ConfirmEnrolmentUseCase {
    /// Makes the account of the newest draft. The passcode is spent: it does not log in.
    ///
    /// # Errors
    /// See [`ConfirmEnrolmentError`].
    pub async fn run(&self, code: &SecretString, passcode: &SecretString) -> Result<(), ConfirmEnrolmentError> {
        for _ in 0..ATTEMPTS {
            let found = enrol::find(&self.ambient, &*self.digester, &*self.invitations, code).await?;
            let OpenInvitation { stored, seed, .. } = found.ok_or(ConfirmEnrolmentError::InvalidEnrolment)?;
            let seed = seed.ok_or(ConfirmEnrolmentError::InvalidEnrolment)?;
            let grant = stored.invitation.enrolled();
            let now = self.ambient.now();
            let Passcode::TimeBased(digits) = Passcode::read(passcode) else {
                return Err(ConfirmEnrolmentError::WrongPasscode);
            };
            let step = self.passcodes.matching_step(grant.account, &seed, &digits, now)?;
            let subject = Subject::Account(grant.account);
            let action = AuditAction::AccountEnrolled;
            let command = ConfirmEnrolment {
                grant_digest: grant.digest(&*self.digester),
                code: stored.invitation.code,
                version: stored.version,
                seed: seed.id,
                step: step.ok_or(ConfirmEnrolmentError::WrongPasscode)?,
                now,
                audit: self.ambient.record(now, Some(grant.organization), Actor::Unknown, action, subject),
                grant,
            };
            if self.invitations.confirm_enrolment(command).await? {
                return Ok(());
            }
        }
        Err(ConfirmEnrolmentError::InvalidEnrolment)
    }
}
