//! Change an account as an operator: state, role, password, passcode, waits; or delete it.

use super::Ambient;
use crate::account::{Account, AccountGrant, AccountState};
use crate::audit::{Actor, AuditAction, Subject};
use crate::digest::DigestPurpose;
use crate::email::{EmailAddress, InvalidEmailAddress};
use crate::passcode::{PasscodeSecret, RecoveryCode};
use crate::password::{PasswordFlaw, check_new_password};
use crate::port::{
    AccountChange, AccountRepository, ChangeAccount, ChangeAccountOutcome, HashError, KeyedDigester,
    OrganizationRepository, PasscodeVerifier, PasswordHasher, SealError, StoreError,
};
use crate::role::Role;
use secrecy::SecretString;
use std::sync::Arc;

/// How often a change is decided anew because the row changed under it.
const ATTEMPTS: usize = 5;

/// What to do with an account. All but [`AccountCommand::Unlock`] end its sessions.
pub enum AccountCommand {
    /// It may no longer log in.
    Disable,
    /// It may log in again.
    Enable,
    /// It has this role from now on.
    SetRole(Role),
    /// It has this password from now on.
    SetPassword(SecretString),
    /// It gets a new passcode seed and new recovery codes.
    ResetPasscode,
    /// Its waits end.
    Unlock,
    /// It goes for good.
    Delete,
}

/// A changed account, with what its owner must be given, if anything.
pub struct ChangedAccount {
    /// The account as it is now, or was before it was deleted.
    pub grant: AccountGrant,
    /// The new passcode seed and recovery codes; shown this once.
    pub passcode: Option<(PasscodeSecret, Vec<RecoveryCode>)>,
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeAccountError {
    /// The address is not one.
    #[error(transparent)]
    Email(#[from] InvalidEmailAddress),
    /// No account with this address.
    #[error("no account with this address")]
    NotFound,
    /// The row does not fit its code: it grants nothing and is not signed anew.
    #[error("the account's row does not fit its code: it was changed behind this service's back")]
    Damaged,
    /// The new password is refused.
    #[error(transparent)]
    Password(#[from] PasswordFlaw),
    /// The row changed again and again meanwhile.
    #[error("the account is being changed by others; try again")]
    Contended,
    /// Hashing failed.
    #[error(transparent)]
    Hash(#[from] HashError),
    /// Sealing failed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The ports of changing accounts.
pub struct ChangeAccountUseCase {
    /// Surroundings.
    pub ambient: Ambient,
    /// Password hashing.
    pub hasher: Arc<dyn PasswordHasher>,
    /// Seeds and recovery codes.
    pub passcodes: Arc<dyn PasscodeVerifier>,
    /// Look-up digests and row codes.
    pub digester: Arc<dyn KeyedDigester>,
    /// Organizations.
    pub organizations: Arc<dyn OrganizationRepository>,
    /// Accounts.
    pub accounts: Arc<dyn AccountRepository>,
}

impl ChangeAccountUseCase {
    /// Carries `command` out on the account with the address `email`.
    ///
    /// # Errors
    /// See [`ChangeAccountError`].
    pub async fn run(&self, email: &str, command: AccountCommand) -> Result<ChangedAccount, ChangeAccountError> {
        let email = EmailAddress::parse(email)?;
        let address = self.digester.digest(DigestPurpose::Address, &[email.as_str().as_bytes()]);
        for _ in 0..ATTEMPTS {
            let found = self.accounts.find_account(address).await?;
            let current = found.ok_or(ChangeAccountError::NotFound)?;
            // Signing it anew would make a row planted by SQL grant something.
            if current.grant.digest(&*self.digester) != current.grant_digest {
                return Err(ChangeAccountError::Damaged);
            }
            let (change, action, changed) = self.decide(&current, &command).await?;
            let Account { grant, version, .. } = current;
            let subject = Subject::Account(grant.account);
            let now = self.ambient.now();
            let audit = self.ambient.record(now, Some(grant.organization), Actor::Operator, action, subject);
            let (organization, account) = (grant.organization, grant.account);
            let command = ChangeAccount { organization, account, version, change, audit };
            match self.accounts.change_account(command).await? {
                ChangeAccountOutcome::Changed => return Ok(changed),
                ChangeAccountOutcome::NotFound => return Err(ChangeAccountError::NotFound),
                ChangeAccountOutcome::Stale => {}
            }
        }
        Err(ChangeAccountError::Contended)
    }

    async fn decide(
        &self,
        current: &Account,
        command: &AccountCommand,
    ) -> Result<(AccountChange, AuditAction, ChangedAccount), ChangeAccountError> {
        let grant = current.grant.clone();
        let unchanged = |change, action| (change, action, ChangedAccount { grant: grant.clone(), passcode: None });
        let regranted = |grant: AccountGrant, action| {
            let digest = grant.digest(&*self.digester);
            let change = AccountChange::Grant { grant: grant.clone(), digest };
            (change, action, ChangedAccount { grant, passcode: None })
        };
        Ok(match command {
            AccountCommand::Disable => {
                regranted(AccountGrant { state: AccountState::Disabled, ..grant.clone() }, AuditAction::AccountDisabled)
            }
            AccountCommand::Enable => {
                regranted(AccountGrant { state: AccountState::Active, ..grant.clone() }, AuditAction::AccountEnabled)
            }
            AccountCommand::SetRole(role) => {
                regranted(AccountGrant { role: *role, ..grant.clone() }, AuditAction::AccountRoleChanged)
            }
            AccountCommand::SetPassword(password) => {
                let organization = self.organizations.organization(grant.organization).await?;
                let name = organization.as_ref().map_or("", |organization| organization.name.as_str());
                check_new_password(password, &grant.email, name)?;
                let permit = self.hasher.permit()?;
                let sealed = self.hasher.hash(permit, grant.account, password.clone()).await?;
                unchanged(AccountChange::Password(sealed), AuditAction::AccountPasswordChanged)
            }
            AccountCommand::ResetPasscode => {
                let seed = self.passcodes.new_seed(grant.account, &grant.email)?;
                let recovery = self.passcodes.new_recovery_codes(grant.account)?;
                let change = AccountChange::Passcode { seed: seed.sealed, recovery_codes: recovery.digests };
                let passcode = Some((seed.secret, recovery.codes));
                (change, AuditAction::AccountPasscodeReset, ChangedAccount { grant, passcode })
            }
            AccountCommand::Unlock => unchanged(AccountChange::Unlock, AuditAction::AccountUnlocked),
            AccountCommand::Delete => unchanged(AccountChange::Delete, AuditAction::AccountDeleted),
        })
    }
}
