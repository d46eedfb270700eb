//! Take an invitation up: choose a password, get a passcode seed and recovery codes. Nothing of it is in force
//! until a code confirms it.

use super::Ambient;
use crate::audit::{Actor, AuditAction, Subject};
use crate::email::EmailAddress;
use crate::enrolment::EnrolmentCode;
use crate::invitation::EnrolmentDraft;
use crate::passcode::{PasscodeSecret, RecoveryCode};
use crate::password::{PasswordFlaw, check_new_password};
use crate::port::{
    Event, HashError, InvitationRepository, KeyedDigester, OpenInvitation, PasscodeVerifier, PasswordHasher, SealError,
    StoreError, WriteDraft,
};
use crate::seats::Requester;
use secrecy::SecretString;
use std::sync::Arc;

/// What an invited person is given: shown this once; the newest is what counts.
pub struct DraftedEnrolment {
    /// The address that the account will have.
    pub email: EmailAddress,
    /// The passcode seed.
    pub passcode: PasscodeSecret,
    /// The recovery codes.
    pub recovery_codes: Vec<RecoveryCode>,
}

/// Why nothing was drafted.
#[derive(Debug, thiserror::Error)]
pub enum EnrolError {
    /// No invitation can be taken up by this code: unknown, over, spent or damaged; or its organization is not
    /// in use.
    #[error("the enrolment code is not valid")]
    InvalidEnrolment,
    /// The password is refused.
    #[error(transparent)]
    Password(#[from] PasswordFlaw),
    /// Hashing is overloaded or failed.
    #[error(transparent)]
    Hash(#[from] HashError),
    /// Sealing failed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The ports of [`Enrol`].
pub struct Enrol {
    /// Surroundings.
    pub ambient: Ambient,
    /// Password hashing.
    pub hasher: Arc<dyn PasswordHasher>,
    /// Seeds and recovery codes.
    pub passcodes: Arc<dyn PasscodeVerifier>,
    /// Look-up digests and row codes.
    pub digester: Arc<dyn KeyedDigester>,
    /// Invitations.
    pub invitations: Arc<dyn InvitationRepository>,
}

impl Enrol {
    /// Drafts an enrolment. May be repeated until one is confirmed; what was given before is dead then.
    ///
    /// # Errors
    /// See [`EnrolError`].
    pub async fn run(&self, code: &SecretString, password: SecretString) -> Result<DraftedEnrolment, EnrolError> {
        // Before any hash, so that nobody without a code makes us work.
        let found = find(&self.ambient, &*self.digester, &*self.invitations, code).await?;
        let OpenInvitation { stored, organization, .. } = found.ok_or(EnrolError::InvalidEnrolment)?;
        let grant = stored.invitation.grant;
        check_new_password(&password, &grant.email, organization.as_str())?;

        let permit = self.hasher.permit(Requester::Trusted)?;
        let password = self.hasher.hash(permit, grant.account, password).await?;
        let seed = self.passcodes.new_seed(grant.account, &grant.email)?;
        let recovery = self.passcodes.new_recovery_codes(grant.account)?;
        let now = self.ambient.now();
        let subject = Subject::Account(grant.account);
        let action = AuditAction::EnrolmentDrafted;
        let command = WriteDraft {
            organization: grant.organization,
            account: grant.account,
            code: stored.invitation.code,
            draft: EnrolmentDraft { password, seed: seed.sealed, recovery_codes: recovery.digests },
            now,
            audit: self.ambient.record(now, Some(grant.organization), Actor::Unknown, action, subject),
        };
        if !self.invitations.write_draft(command).await? {
            return Err(EnrolError::InvalidEnrolment);
        }
        Ok(DraftedEnrolment { email: grant.email, passcode: seed.secret, recovery_codes: recovery.codes })
    }
}

/// The invitation that `code` opens now, if its row fits its digest.
pub(super) async fn find(
    ambient: &Ambient,
    digester: &dyn KeyedDigester,
    invitations: &dyn InvitationRepository,
    code: &SecretString,
) -> Result<Option<OpenInvitation>, StoreError> {
    let Some(code) = EnrolmentCode::read(code) else { return Ok(None) };
    let found = invitations.find_invitation(code.digest(digester), ambient.now()).await;
    let Some(found) = found.map_err(|error| ambient.witness(error))? else { return Ok(None) };
    if found.stored.is_sound(digester) {
        return Ok(Some(found));
    }
    let id = found.stored.invitation.grant.account.to_string();
    ambient.emit(Event::IntegrityFailure { table: "invitations", id });
    Ok(None)
}
