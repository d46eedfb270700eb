//! Make an account with password, passcode seed and recovery codes.

use super::{Ambient, lookup};
use crate::account::{AccountGrant, AccountState};
use crate::audit::{Actor, AuditAction, Subject};
use crate::digest::DigestPurpose;
use crate::email::{EmailAddress, InvalidEmailAddress};
use crate::id::AccountId;
use crate::organization::{Organization, OrganizationName};
use crate::passcode::{PasscodeSecret, RecoveryCode};
use crate::password::{PasswordFlaw, check_new_password, generate_password};
use crate::port::{
    AccountRepository, CreateAccount, CreateAccountOutcome, Entropy, HashError, KeyedDigester, NoEntropy,
    OrganizationRepository, PasscodeVerifier, PasswordHasher, SealError, StoreError,
};
use crate::role::Role;
use crate::seats::Requester;
use secrecy::SecretString;
use std::sync::Arc;

/// An account to make.
pub struct CreateAccountRequest {
    /// Its organization's name.
    pub organization: String,
    /// Its address, in any spelling.
    pub email: String,
    /// Its role.
    pub role: Role,
    /// Its password; without one, a strong one is made.
    pub password: Option<SecretString>,
}

/// An account that was made, with what its owner must be given: shown this once.
pub struct CreatedAccount {
    /// What it grants.
    pub grant: AccountGrant,
    /// Its organization.
    pub organization: Organization,
    /// The password, if one was made.
    pub generated_password: Option<SecretString>,
    /// The passcode seed.
    pub passcode: PasscodeSecret,
    /// The recovery codes.
    pub recovery_codes: Vec<RecoveryCode>,
}

/// Why no account was made.
#[derive(Debug, thiserror::Error)]
pub enum CreateAccountError {
    /// No organization of this name.
    #[error("no organization of this name")]
    NoOrganization,
    /// The address is refused.
    #[error(transparent)]
    Email(#[from] InvalidEmailAddress),
    /// The address belongs to an account or an open invitation already.
    #[error("an account or invitation with this address is already there")]
    AddressTaken,
    /// The password is refused.
    #[error(transparent)]
    Password(#[from] PasswordFlaw),
    /// No randomness.
    #[error(transparent)]
    Entropy(#[from] NoEntropy),
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

/// The ports of making accounts.
pub struct CreateAccountUseCase {
    /// Surroundings.
    pub ambient: Ambient,
    /// Chance, for passwords.
    pub entropy: Arc<dyn Entropy>,
    /// Password hashing.
    pub hasher: Arc<dyn PasswordHasher>,
    /// Seeds and recovery codes.
    pub passcodes: Arc<dyn PasscodeVerifier>,
    /// Look-up digests.
    pub digester: Arc<dyn KeyedDigester>,
    /// Organizations.
    pub organizations: Arc<dyn OrganizationRepository>,
    /// Accounts.
    pub accounts: Arc<dyn AccountRepository>,
}

impl CreateAccountUseCase {
    /// Makes an account that can log in at once.
    ///
    /// # Errors
    /// See [`CreateAccountError`].
    pub async fn run(&self, request: CreateAccountRequest) -> Result<CreatedAccount, CreateAccountError> {
        let email = EmailAddress::parse(&request.email)?;
        let name = OrganizationName::parse(&request.organization).map_err(|_| CreateAccountError::NoOrganization)?;
        let organization = self.organizations.find_organization(&name).await?;
        let organization = organization.ok_or(CreateAccountError::NoOrganization)?;
        let (password, generated_password) = match request.password {
            Some(password) => {
                check_new_password(&password, &email, organization.name.as_str())?;
                (password, None)
            }
            None => {
                let password = generate_password(&*self.entropy)?;
                (password.clone(), Some(password))
            }
        };
        // Before hashing, so that a taken address costs no hash; decided for good by the store.
        let address = self.digester.digest(DigestPurpose::Address, &[email.as_str().as_bytes()]);
        let now = self.ambient.now();
        if lookup::is_taken(&*self.accounts, address, now).await? {
            return Err(CreateAccountError::AddressTaken);
        }

        let account = AccountId::from_uuid(self.ambient.ids.ordered(now));
        let permit = self.hasher.permit(Requester::Trusted)?;
        let sealed_password = self.hasher.hash(permit, account, password).await?;
        let seed = self.passcodes.new_seed(account, &email)?;
        let recovery = self.passcodes.new_recovery_codes(account)?;
        let grant = AccountGrant {
            account,
            organization: organization.id,
            email,
            role: request.role,
            state: AccountState::Active,
        };
        let subject = Subject::Account(account);
        let command = CreateAccount {
            grant_digest: grant.digest(&*self.digester),
            grant: grant.clone(),
            address,
            password: sealed_password,
            seed: seed.sealed,
            recovery_codes: recovery.digests,
            created_at: now,
            audit: self.ambient.record(
                now,
                Some(organization.id),
                Actor::Operator,
                AuditAction::AccountCreated,
                subject,
            ),
        };
        match self.accounts.create_account(command).await? {
            CreateAccountOutcome::Created => Ok(CreatedAccount {
                grant,
                organization,
                generated_password,
                passcode: seed.secret,
                recovery_codes: recovery.codes,
            }),
            CreateAccountOutcome::AddressTaken => Err(CreateAccountError::AddressTaken),
            CreateAccountOutcome::NoOrganization => Err(CreateAccountError::NoOrganization),
        }
    }
}
