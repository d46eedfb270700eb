//! Confirmation of an enrolment by a code of the new TOTP secret. It creates the account, or replaces the secrets of
//! the re-enrolled one.

use super::Accounts;
use crate::account::SignedAccount;
use crate::audit::{Actor, AuditAction, Subject};
use crate::digest::RowMac;
use crate::error::{Error, Refusal};
use crate::id::{PasswordId, SeedId};
use crate::invitation::{ConfirmEnrolment, Invitation, OpenInvitation};
use crate::passcode::Passcode;
use crate::port::Event;
use crate::principal::Principal;
use secrecy::SecretString;

/// Maximum number of attempts if the invitation or the account is changed concurrently.
const ATTEMPTS: usize = 5;

impl Accounts {
    /// Creates the account of the latest draft, or replaces the secrets of the re-enrolled account, which keeps its
    /// current role and state. The passcode is marked as used and cannot log in.
    ///
    /// # Errors
    /// - [`Refusal::InvalidEnrolment`]: no invitation can be accepted with this code, there is no draft, or the
    ///   passcode does not match the TOTP secret of the latest draft. Only the last of these is recorded.
    /// - [`Refusal::AddressInUse`]: an invitation of another organization has created an account for the address.
    pub async fn confirm_enrolment(&self, code: &SecretString, passcode: &SecretString) -> Result<(), Error> {
        for _ in 0..ATTEMPTS {
            let OpenInvitation { invitation, draft, account, .. } = self.open_invitation(code).await?;
            let draft = draft.ok_or(Refusal::InvalidEnrolment)?;
            let of_account = account.as_ref().map(|(_, code)| code.key);
            let keys = of_account.into_iter().chain(draft.seed.blob.key()).chain([draft.digest.key]);
            self.digester.load_keys(&keys.collect::<Vec<_>>()).await?;
            let owner = &invitation.grant;
            if !draft.mac_is_valid((owner.organization, owner.account), &*self.digester) {
                self.report_damage("enrolment_drafts", owner.account);
                return Err(Refusal::InvalidEnrolment.into());
            }
            let secrets = (draft.password.id, draft.seed.id);
            let signed = self.enrolled(&invitation, account.as_ref(), secrets)?;
            let account_version = account.map(|(current, _)| current.version);
            let grant = &signed.grant;
            let now = self.environment.now();
            let step = match Passcode::read(passcode) {
                Passcode::TimeBased(digits) => self
                    .passcodes
                    .matching_step(grant.account, &draft.seed, &digits, now)
                    .inspect_err(|error| self.environment.report(error))?,
                Passcode::Recovery(_) | Passcode::Impossible => None,
            };
            let Some(step) = step else {
                let (organization, subject) = (Some(grant.organization), Subject::Account(grant.account));
                let action = AuditAction::EnrolmentRefused;
                let audit = self.environment.record(now, organization, Actor::Unknown, action, subject);
                let refused = Event::recorded(&audit);
                self.log.append(vec![audit]).await?;
                self.environment.emit(refused);
                return Err(Refusal::InvalidEnrolment.into());
            };
            let confirm = ConfirmEnrolment {
                signed,
                account_version,
                code: invitation.code,
                version: invitation.version(),
                draft: draft.digest,
                step,
            };
            match self.operations.run(&self.environment, &Principal::Operator, confirm).await {
                Err(Error::Refused(Refusal::Contended)) => {}
                confirmed => return confirmed,
            }
        }
        Err(Refusal::InvalidEnrolment.into())
    }

    /// Returns the fields of the account after the enrolment with these secrets. `current` is the account to
    /// re-enrol.
    fn enrolled(
        &self,
        invitation: &Invitation,
        current: Option<&(SignedAccount, RowMac)>,
        (password, seed): (PasswordId, SeedId),
    ) -> Result<SignedAccount, Error> {
        match current {
            None if !invitation.re_enrols() => Ok(SignedAccount::new(invitation.enrolled(), password, seed)),
            Some((current, code)) if invitation.re_enrols() => {
                // Never re-sign an invalid row: that would legitimize a row planted through SQL.
                if !current.fits(&*self.digester, code) {
                    self.report_damage("accounts", current.grant.account);
                    return Err(Refusal::InvalidEnrolment.into());
                }
                match current.awaits_enrolment() {
                    true => Ok(current.re_enrolled(password, seed)),
                    // Only a restored old invitation row leads here. Do not change the secrets.
                    false => Err(Refusal::InvalidEnrolment.into()),
                }
            }
            _ => Err(Refusal::InvalidEnrolment.into()),
        }
    }
}
