//! Reads an account's current passcode, for operators with access to the host.

use super::{AccountRef, Accounts};
use crate::audit::{AuditAction, Subject};
use crate::error::{Error, Refusal};
use crate::passcode::TimeStep;
use crate::port::{Event, FoundAccount, ReadPasscode};
use crate::principal::Principal;
use crate::time::Timestamp;
use secrecy::SecretString;

/// Current passcode of an account.
pub enum CurrentPasscode {
    /// An unused code, with the time of its expiry.
    Ready(SecretString, Timestamp),
    /// The current code was used. Contains the time at which the next one starts.
    SpentUntil(Timestamp),
}

impl Accounts {
    /// Returns the current code of the account with the address `email`, as an operator. Every request is recorded.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], also for an invitation. [`Refusal::AwaitsEnrolment`] if the account has no TOTP secret.
    pub async fn read_passcode(&self, email: &str) -> Result<CurrentPasscode, Error> {
        let FoundAccount::Account(found) = self.find(&Principal::Operator, AccountRef::email(email)).await? else {
            return Err(Refusal::NotFound.into());
        };
        if found.signed.awaits_enrolment() {
            return Err(Refusal::AwaitsEnrolment.into());
        }
        let (organization, account) = (found.signed.grant.organization, found.signed.grant.account);
        let payload = ReadPasscode { organization, account };
        let (action, subject) = (AuditAction::AccountPasscodeRead, Subject::Account(account));
        let command = self.environment.command(&Principal::Operator, Some(organization), action, subject, payload);
        let now = command.now;
        let read = Event::recorded(&command.audit);
        let stored = self.store.read_passcode(command).await?.ok_or(Refusal::NotFound)?;
        self.environment.emit(read);
        let step = TimeStep::at(now);
        if stored.last_step >= step {
            return Ok(CurrentPasscode::SpentUntil(stored.last_step.next().begins_at()));
        }
        self.digester.load_keys(stored.seed.blob.key().as_slice()).await?;
        let code = self.passcodes.code_at(account, &stored.seed, step);
        let code = code.inspect_err(|error| self.environment.report(error))?;
        Ok(CurrentPasscode::Ready(code, step.next().begins_at()))
    }
}
