//! Creation of accounts with password, TOTP secret and recovery codes.

use super::find::parse_email;
use super::{AccountRef, Accounts};
use crate::account::{AccountRights, AccountState, CreateAccount, FoundAccount, SignedAccount};
use crate::error::{Error, Refusal};
use crate::hash_slots::Requester;
use crate::id::{AccountId, OrganizationId};
use crate::organization::Organization;
use crate::passcode::{PasscodeSecret, RecoveryCode};
use crate::password::{check_new_password, generate_password};
use crate::principal::Principal;
use crate::role::Role;
use crate::usecase::under_active_key;
use secrecy::SecretString;

/// Request for a new account.
pub struct CreateAccountRequest {
    /// Its organization.
    pub organization: OrganizationId,
    /// Address, in any spelling.
    pub email: String,
    /// Its role.
    pub role: Role,
    /// Password. If it is `None`, a strong one is generated.
    pub password: Option<SecretString>,
}

/// A new account with the secrets for its user, which are shown only once.
pub struct CreatedAccount {
    /// Rights of the account.
    pub grant: AccountRights,
    /// Its organization.
    pub organization: Organization,
    /// The generated password, if any.
    pub generated_password: Option<SecretString>,
    /// TOTP secret.
    pub passcode: PasscodeSecret,
    /// Recovery codes.
    pub recovery_codes: Vec<RecoveryCode>,
}

impl Accounts {
    /// Creates an account that can log in immediately, as an operator.
    ///
    /// # Errors
    /// - [`Refusal::AddressTaken`], [`Refusal::LimitReached`] or [`Refusal::NoOrganization`].
    /// - A violation at `/password` if the password is invalid.
    pub async fn create(&self, request: CreateAccountRequest) -> Result<CreatedAccount, Error> {
        let email = parse_email(&request.email)?;
        let organization = self.organization(request.organization).await?;
        let (password, generated_password) = match request.password {
            Some(password) => {
                check_new_password(&password, &email, organization.name.as_str())
                    .map_err(|violation| violation.at("/password"))?;
                (password, None)
            }
            None => {
                let password = generate_password(&*self.entropy)?;
                (password.clone(), Some(password))
            }
        };
        // Check this before hashing, so that a used address costs no hash. The store checks it again.
        if self.has_account(email.as_str()).await? {
            return Err(Refusal::AddressTaken.into());
        }

        let account = AccountId::from_uuid(self.environment.ids.ordered(self.environment.now()));
        let state = AccountState::Active;
        let grant = AccountRights { account, organization: organization.id, email, role: request.role, state };
        let made = under_active_key(&self.environment, &*self.digester, || self.create_once(&grant, &password)).await?;
        let (passcode, recovery_codes) = made;
        Ok(CreatedAccount { grant, organization, generated_password, passcode, recovery_codes })
    }

    async fn create_once(
        &self,
        grant: &AccountRights,
        password: &SecretString,
    ) -> Result<(PasscodeSecret, Vec<RecoveryCode>), Error> {
        let account = grant.account;
        let permit = self.hasher.permit(Requester::Trusted)?;
        let password = self.hasher.hash(permit, account, password.clone()).await?;
        let seed = self.passcodes.new_seed(account, &grant.email)?;
        let recovery = self.passcodes.new_recovery_codes(account, &seed.sealed)?;
        let signed = SignedAccount::new(grant.clone(), password.id, seed.sealed.id);
        let recovery_codes = recovery.digests;
        let create = CreateAccount { signed, password, seed: seed.sealed, recovery_codes };
        self.operations.run(&self.environment, &Principal::Operator, create).await?;
        Ok((seed.secret, recovery.codes))
    }

    async fn has_account(&self, email: &str) -> Result<bool, Error> {
        match self.find(&Principal::Operator, AccountRef::email(email)).await {
            Ok(found) => Ok(matches!(found, FoundAccount::Account(_))),
            Err(Error::Refused(Refusal::NotFound)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
