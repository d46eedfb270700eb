//! Replacement of the caller's own TOTP secret: a new one is generated, and used after a code confirms it.

use super::{Accounts, OwnerProof};
use crate::account::{ConfirmPasscode, ReserveConfirmation};
use crate::audit::{Actor, AuditAction, RecordEntry, Subject};
use crate::error::{Error, Refusal};
use crate::login::OwnChange;
use crate::passcode::{Passcode, PasscodeSecret};
use crate::principal::{Principal, SessionPrincipal};
use secrecy::SecretString;

impl Accounts {
    /// Generates a new TOTP secret for the principal's account, which is shown only once. It is pending for an hour,
    /// and replaces a secret that is already pending.
    ///
    /// # Errors
    /// [`Refusal::InvalidLogin`] if the re-authentication failed.
    pub async fn replace_passcode(
        &self,
        principal: &SessionPrincipal,
        presented: OwnerProof,
    ) -> Result<PasscodeSecret, Error> {
        let account = self.own_account(principal).await?;
        let email = &account.account.grant.email;
        let proven = self.evaluate(email, Actor::from(principal), presented).await?;
        let seed = self.passcodes.next_seed(email, &proven.secrets.seed)?;
        let change = OwnChange::PendingSeed(self.new_secrets_id(), seed.seed);
        self.complete_own(&proven, principal, change).await?;
        Ok(seed.secret)
    }

    /// Activates the pending TOTP secret. Revokes all other sessions of the account, and marks the code as used.
    ///
    /// # Errors
    /// - [`Refusal::NothingPending`]: no secret is pending, it has expired, or too many codes were wrong.
    /// - [`Refusal::InvalidLogin`]: the passcode does not match the pending secret.
    pub async fn confirm_passcode(&self, principal: &SessionPrincipal, passcode: &SecretString) -> Result<(), Error> {
        let now = self.environment.now();
        // Count the code before it is compared, so that parallel requests do not gain an extra guess.
        let session = Principal::Session(principal.clone());
        let reserve = ReserveConfirmation(principal.clone());
        let pending =
            self.operations.run(&self.environment, &session, reserve).await?.ok_or(Refusal::NothingPending)?;
        let step = match Passcode::read(passcode) {
            Passcode::TimeBased(digits) => self
                .passcodes
                .matching_step(Some(&pending.seed), &digits, now)
                .inspect_err(|error| self.environment.report(error))?,
            Passcode::Recovery(_) | Passcode::Impossible => None,
        };
        let (organization, subject) = (Some(principal.organization), Subject::Account(principal.account));
        let Some(step) = step else {
            let action = AuditAction::AccountPasscodeChangeRefused;
            let record = self.environment.record(now, organization, Actor::from(principal), action, subject);
            self.operations.run(&self.environment, &session, RecordEntry(record)).await?;
            return Err(Refusal::InvalidLogin.into());
        };
        let confirm = ConfirmPasscode { principal: principal.clone(), pending: pending.id, step };
        match self.operations.run(&self.environment, &session, confirm).await? {
            true => Ok(()),
            false => Err(Refusal::NothingPending.into()),
        }
    }
}
