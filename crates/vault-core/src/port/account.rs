//! Accounts in the store.

use super::StoreError;
use crate::account::{Account, AccountGrant};
use crate::audit::SealedAuditRecord;
use crate::digest::Digest;
use crate::id::{AccountId, OrganizationId};
use crate::passcode::TimeStep;
use crate::sealed::{SealedPassword, SealedSeed};
use crate::time::Timestamp;
use async_trait::async_trait;

/// Makes an account that can log in at once.
#[derive(Clone, Debug)]
pub struct CreateAccount {
    /// What it grants.
    pub grant: AccountGrant,
    /// The digest over the grant.
    pub grant_digest: Digest,
    /// The digest of its address: where the directory finds it.
    pub address: Digest,
    /// Its password.
    pub password: SealedPassword,
    /// Its passcode seed.
    pub seed: SealedSeed,
    /// Its recovery codes.
    pub recovery_codes: Vec<Digest>,
    /// When it is made.
    pub created_at: Timestamp,
    /// The record of it.
    pub audit: SealedAuditRecord,
}

/// What making an account came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateAccountOutcome {
    /// Made.
    Created,
    /// The address belongs to an account, of this organization or another.
    AddressTaken,
    /// No such organization.
    NoOrganization,
}

/// One change of an account. Every one of them but [`AccountChange::Unlock`] ends all of its sessions.
#[derive(Clone, Debug)]
pub enum AccountChange {
    /// New role or state: the row's grant is replaced.
    Grant {
        /// The new grant.
        grant: AccountGrant,
        /// The digest over it.
        digest: Digest,
    },
    /// New password.
    Password(SealedPassword),
    /// New seed and recovery codes; wrong passcodes are forgotten.
    Passcode {
        /// The seed.
        seed: SealedSeed,
        /// The recovery codes, instead of those before.
        recovery_codes: Vec<Digest>,
    },
    /// Waits and closed classes are lifted.
    Unlock,
    /// The account is deleted, with all that hangs on it.
    Delete,
}

/// Changes an account.
#[derive(Clone, Debug)]
pub struct ChangeAccount {
    /// The organization.
    pub organization: OrganizationId,
    /// The account.
    pub account: AccountId,
    /// The row's version that the change was decided on.
    pub version: i64,
    /// The change.
    pub change: AccountChange,
    /// The record of it.
    pub audit: SealedAuditRecord,
}

/// What changing an account came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeAccountOutcome {
    /// Changed.
    Changed,
    /// The row has changed since it was read: read it again.
    Stale,
    /// No such account.
    NotFound,
}

/// An account's seed and the latest step that was used with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPasscode {
    /// The seed.
    pub seed: SealedSeed,
    /// The latest used step; codes up to it are spent.
    pub last_step: TimeStep,
}

/// Accounts.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait AccountRepository: Send + Sync {
    /// Makes one.
    async fn create_account(&self, command: CreateAccount) -> Result<CreateAccountOutcome, StoreError>;

    /// The account whose address has this digest.
    async fn find_account(&self, address: Digest) -> Result<Option<Account>, StoreError>;

    /// The accounts of an organization, or all, by organization and address.
    async fn list_accounts(&self, organization: Option<OrganizationId>) -> Result<Vec<Account>, StoreError>;

    /// Changes one.
    async fn change_account(&self, command: ChangeAccount) -> Result<ChangeAccountOutcome, StoreError>;

    /// An account's seed, for printing its current code; `audit` records that it was read.
    async fn read_passcode(
        &self,
        organization: OrganizationId,
        account: AccountId,
        audit: SealedAuditRecord,
    ) -> Result<Option<StoredPasscode>, StoreError>;
}
