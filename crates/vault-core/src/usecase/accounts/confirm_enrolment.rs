//! Confirmation of an enrolment by a code of the new TOTP secret. It creates the account, or replaces the secrets of
//! the re-enrolled one.

use super::Accounts;
use crate::audit::{Actor, AuditAction, RecordEntry, Subject};
use crate::error::{Error, Refusal};
use crate::invitation::{ConfirmEnrolment, OpenInvitation};
use crate::passcode::Passcode;
use crate::principal::Principal;
use secrecy::SecretString;

impl Accounts {
    /// Creates the account of the latest draft, or replaces the secrets of the re-enrolled account, which keeps its
    /// current role and state. The passcode is marked as used and cannot log in.
    ///
    /// # Errors
    /// - [`Refusal::InvalidEnrolment`]: no invitation can be accepted with this code, there is no draft, or the
    ///   passcode does not match the TOTP secret of the latest draft. Only the last of these is recorded.
    /// - [`Refusal::AddressInUse`]: an invitation of another organization has created an account for the address.
    pub async fn confirm_enrolment(&self, code: &SecretString, passcode: &SecretString) -> Result<(), Error> {
        let OpenInvitation { invitation, draft, .. } = self.open_invitation(code).await?;
        let draft = draft.ok_or(Refusal::InvalidEnrolment)?;
        let (organization, account) = (invitation.grant.organization, invitation.grant.account);
        let now = self.environment.now();
        let step = match Passcode::read(passcode) {
            Passcode::TimeBased(digits) => self
                .passcodes
                .matching_step(Some(&draft.secrets.seed), &digits, now)
                .inspect_err(|error| self.environment.report(error))?,
            Passcode::Recovery(_) | Passcode::Impossible => None,
        };
        let Some(step) = step else {
            let (subject, action) = (Subject::Account(account), AuditAction::EnrolmentRefused);
            let audit = self.environment.record(now, Some(organization), Actor::Unknown, action, subject);
            self.operations.run(&self.environment, &Principal::Operator, RecordEntry(audit)).await?;
            return Err(Refusal::InvalidEnrolment.into());
        };
        let (re_enrols, code, secrets) = (invitation.re_enrols(), invitation.code, draft.secrets.id);
        let confirm = ConfirmEnrolment { organization, account, re_enrols, code, secrets, step };
        self.operations.run(&self.environment, &Principal::Operator, confirm).await
    }
}
