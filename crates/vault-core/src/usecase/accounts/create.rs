//! Creation of accounts with password, TOTP secret and recovery codes.

use super::find::parse_email;
use super::{AccountRef, Accounts};
use crate::account::{AccountRights, AccountSecrets, AccountState, CreateAccount, FoundAccount};
use crate::error::{Error, Refusal};
use crate::hash_slots::Requester;
use crate::id::{AccountId, OrganizationId};
use crate::organization::Organization;
use crate::passcode::{PasscodeSecret, RecoveryCode};
use crate::password::{check_new_password, generate_password};
use crate::port::{NewRecoveryCodes, NewSeed};
use crate::principal::Principal;
use crate::role::Role;
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
        let (secrets, passcode, recovery) = self.new_secrets(&grant, password).await?;
        let create = CreateAccount { grant: grant.clone(), secrets, recovery_codes: recovery.digests };
        self.operations.run(&self.environment, &Principal::Operator, create).await?;
        Ok(CreatedAccount { grant, organization, generated_password, passcode, recovery_codes: recovery.codes })
    }

    /// Generates the secrets of an account, with this password.
    pub(super) async fn new_secrets(
        &self,
        grant: &AccountRights,
        password: SecretString,
    ) -> Result<(AccountSecrets, PasscodeSecret, NewRecoveryCodes), Error> {
        let permit = self.hasher.permit(Requester::Trusted)?;
        let password = self.hasher.hash(permit, password).await?;
        let NewSeed { seed, secret } = self.passcodes.new_seed(&grant.email)?;
        let recovery = self.passcodes.new_recovery_codes(grant.account, &seed)?;
        Ok((AccountSecrets { id: self.new_secrets_id(), password, seed }, secret, recovery))
    }

    async fn has_account(&self, email: &str) -> Result<bool, Error> {
        match self.find(&Principal::Operator, AccountRef::email(email)).await {
            Ok(found) => Ok(matches!(found, FoundAccount::Account(_))),
            Err(Error::Refused(Refusal::NotFound)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
