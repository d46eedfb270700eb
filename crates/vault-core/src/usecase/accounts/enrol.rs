//! Acceptance of an invitation: the user sets a password, and gets a TOTP secret and recovery codes. They are not used
//! until a code confirms them.

use super::Accounts;
use crate::email::EmailAddress;
use crate::enrolment::EnrolmentCode;
use crate::error::{Error, Refusal};
use crate::invitation::{EnrolmentDraft, FindInvitation, Invitation, OpenInvitation, WriteDraft};
use crate::passcode::{PasscodeSecret, RecoveryCode};
use crate::password::check_new_password;
use crate::principal::Principal;
use secrecy::SecretString;

/// Secrets of an enrolment draft, which are shown only once. Only the latest draft counts.
pub struct DraftedEnrolment {
    /// Address of the future account.
    pub email: EmailAddress,
    /// The TOTP secret.
    pub passcode: PasscodeSecret,
    /// The recovery codes.
    pub recovery_codes: Vec<RecoveryCode>,
}

impl Accounts {
    /// Drafts an enrolment. It may be repeated until it is confirmed, and each draft invalidates the earlier TOTP
    /// secret and recovery codes.
    ///
    /// # Errors
    /// - [`Refusal::InvalidEnrolment`]: the code is unknown, expired, used or damaged, or its organization is not
    ///   active.
    /// - A violation at `/password` if the password is invalid.
    pub async fn enrol(&self, code: &SecretString, password: SecretString) -> Result<DraftedEnrolment, Error> {
        // Check the code before any hash, so that a client without a code cannot cause this work.
        let OpenInvitation { invitation, .. } = self.open_invitation(code).await?;
        let Invitation { grant, code, .. } = invitation.into_value();
        let organization = self.organization(grant.organization).await?.name;
        check_new_password(&password, &grant.email, organization.as_str())
            .map_err(|violation| violation.at("/password"))?;

        let (organization, account, email) = (grant.organization, grant.account, grant.email.clone());
        let (secrets, passcode, recovery) = self.new_secrets(&grant, password).await?;
        let draft = EnrolmentDraft { secrets, recovery_codes: recovery.digests };
        let write = WriteDraft { organization, account, code, draft };
        if !self.operations.run(&self.environment, &Principal::Operator, write).await? {
            return Err(Refusal::InvalidEnrolment.into());
        }
        Ok(DraftedEnrolment { email, passcode, recovery_codes: recovery.codes })
    }

    /// Returns the open invitation with `code`.
    ///
    /// # Errors
    /// [`Refusal::InvalidEnrolment`], also if it does not open.
    pub(super) async fn open_invitation(&self, code: &SecretString) -> Result<OpenInvitation, Error> {
        let code = EnrolmentCode::read(code).ok_or(Refusal::InvalidEnrolment)?;
        let find = FindInvitation(code.digest(&*self.digester));
        match self.operations.run(&self.environment, &Principal::Operator, find).await {
            Ok(Some(found)) => Ok(found),
            Ok(None) | Err(Error::Refused(Refusal::Damaged { .. })) => Err(Refusal::InvalidEnrolment.into()),
            Err(error) => Err(error),
        }
    }
}
