//! Print an account's current passcode, for operators with access to the machine.

use super::{Ambient, lookup};
use crate::account::Account;
use crate::audit::{Actor, AuditAction, Subject};
use crate::digest::DigestPurpose;
use crate::email::{EmailAddress, InvalidEmailAddress};
use crate::passcode::TimeStep;
use crate::port::{AccountRepository, FoundAccount, KeyedDigester, PasscodeVerifier, SealError, StoreError};
use crate::time::Timestamp;
use secrecy::SecretString;
use std::sync::Arc;

/// An account's current passcode.
pub enum CurrentPasscode {
    /// A code that has not been used, until this moment.
    Ready(SecretString, Timestamp),
    /// The current code was used; the next one begins at this moment.
    SpentUntil(Timestamp),
}

/// Why there is no passcode.
#[derive(Debug, thiserror::Error)]
pub enum ReadPasscodeError {
    /// The address is not one.
    #[error(transparent)]
    Email(#[from] InvalidEmailAddress),
    /// No account with this address.
    #[error("no account with this address")]
    NotFound,
    /// Opening failed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads passcodes.
pub struct ReadPasscode {
    /// Surroundings.
    pub ambient: Ambient,
    /// Opens seeds.
    pub passcodes: Arc<dyn PasscodeVerifier>,
    /// Look-up digests.
    pub digester: Arc<dyn KeyedDigester>,
    /// Accounts.
    pub accounts: Arc<dyn AccountRepository>,
}

impl ReadPasscode {
    /// The current code of the account with the address `email`. Recorded whenever it is asked for.
    ///
    /// # Errors
    /// See [`ReadPasscodeError`].
    pub async fn run(&self, email: &str) -> Result<CurrentPasscode, ReadPasscodeError> {
        let email = EmailAddress::parse(email)?;
        let address = self.digester.digest(DigestPurpose::Address, &[email.as_str().as_bytes()]);
        let now = self.ambient.now();
        let found = lookup::as_operator(&*self.accounts, address, now).await?;
        let Some(FoundAccount::Account(Account { grant: account, .. })) = found else {
            return Err(ReadPasscodeError::NotFound);
        };
        let audit = self.ambient.record(
            now,
            Some(account.organization),
            Actor::Operator,
            AuditAction::AccountPasscodeRead,
            Subject::Account(account.account),
        );
        let stored = self.accounts.read_passcode(account.organization, account.account, audit).await?;
        let stored = stored.ok_or(ReadPasscodeError::NotFound)?;
        let step = TimeStep::at(now);
        if stored.last_step >= step {
            return Ok(CurrentPasscode::SpentUntil(stored.last_step.next().begins_at()));
        }
        let code = self.passcodes.code_at(account.account, &stored.seed, step)?;
        Ok(CurrentPasscode::Ready(code, step.next().begins_at()))
    }
}
