//! Confirm an enrolment by a code of the new seed: the invitation becomes an account.

use super::Accounts;
use crate::account::SignedAccount;
use crate::audit::{Actor, AuditAction, Subject};
use crate::error::{Error, Refusal};
use crate::passcode::Passcode;
use crate::port::{ConfirmEnrolment, Event, OpenInvitation, StoreError};
use secrecy::SecretString;

/// How often a confirmation is decided anew because the invitation changed under it.
const ATTEMPTS: usize = 5;

impl Accounts {
    /// Creates the account of the latest draft. The passcode is used up and cannot log in.
    ///
    /// # Errors
    /// [`Refusal::InvalidEnrolment`]: no invitation can be taken up by this code, nothing has been drafted yet, or the
    /// passcode is none of the newest draft's seed; the last of these is recorded. [`Refusal::AddressInUse`]: the address
    /// has got an account by another organization's invitation.
    pub async fn confirm_enrolment(&self, code: &SecretString, passcode: &SecretString) -> Result<(), Error> {
        for _ in 0..ATTEMPTS {
            let OpenInvitation { stored, seed, .. } = self.open_invitation(code).await?;
            let seed = seed.ok_or(Refusal::InvalidEnrolment)?;
            let grant = stored.invitation.enrolled();
            let (now, subject) = (self.ambient.now(), Subject::Account(grant.account));
            let record = |action| self.ambient.record(now, Some(grant.organization), Actor::Unknown, action, subject);
            let step = match Passcode::read(passcode) {
                Passcode::TimeBased(digits) => self
                    .passcodes
                    .matching_step(grant.account, &seed, &digits, now)
                    .inspect_err(|error| self.ambient.report(error))?,
                Passcode::Recovery(_) | Passcode::Impossible => None,
            };
            let Some(step) = step else {
                let audit = record(AuditAction::EnrolmentRefused);
                let refused = Event::recorded(&audit);
                self.store.append(vec![audit]).await?;
                self.ambient.emit(refused);
                return Err(Refusal::InvalidEnrolment.into());
            };
            let audit = record(AuditAction::AccountEnrolled);
            let enrolled = Event::recorded(&audit);
            let signed = SignedAccount::new(grant, seed.id);
            let command = ConfirmEnrolment {
                digest: signed.digest(&*self.digester),
                signed,
                code: stored.invitation.code,
                version: stored.version,
                step,
                now,
                audit,
            };
            match self.store.confirm_enrolment(command).await {
                Err(StoreError::Refused(Refusal::Contended)) => {}
                confirmed => {
                    confirmed?;
                    self.ambient.emit(enrolled);
                    return Ok(());
                }
            }
        }
        Err(Refusal::InvalidEnrolment.into())
    }
}
