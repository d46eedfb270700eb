//! Accounts in the store.

use super::StoreError;
use crate::account::{Account, AccountGrant};
use crate::audit::SealedAuditRecord;
use crate::digest::Digest;
use crate::id::{AccountId, OrganizationId};
use crate::invitation::StoredInvitation;
use crate::notice::NoticeCode;
use crate::passcode::TimeStep;
use crate::principal::{Denial, Principal, SessionPrincipal};
use crate::sealed::{SealedPassword, SealedSeed};
use crate::time::Timestamp;
use async_trait::async_trait;

/// By what an account or an invitation is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountKey {
    /// The digest of its address; of any organization that the authority reaches.
    Address(Digest),
    /// Its id, within an organization.
    Id(OrganizationId, AccountId),
}

/// Looks for an account or an invitation.
#[derive(Clone, Debug)]
pub struct FindAccount {
    /// By whose order. What it does not reach is not there.
    pub authority: Principal,
    /// By what.
    pub key: AccountKey,
    /// Now.
    pub now: Timestamp,
}

/// What was found. An invitation that is over is found too: it is there until it is swept or replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundAccount {
    /// An account.
    Account(Account),
    /// An invitation.
    Invitation(StoredInvitation),
}

/// Which accounts a list holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountScope {
    /// All, for operators.
    Everywhere,
    /// Those of one organization, for operators.
    Organization(OrganizationId),
    /// Those of the organization of this session.
    Session(SessionPrincipal),
}

/// Lists accounts and open invitations.
#[derive(Clone, Debug)]
pub struct ListAccounts {
    /// Which.
    pub scope: AccountScope,
    /// Now.
    pub now: Timestamp,
}

/// Makes an account that can log in at once. Its passcode counts as enrolled when it is made.
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
    /// The address belongs to an account or to an open invitation, of this organization or another. An
    /// invitation that is over is replaced in the same decision.
    AddressTaken,
    /// No such organization.
    NoOrganization,
}

/// One change of an account. Every one of them but [`AccountChange::Unlock`] ends all of its sessions and drops
/// a seed that waits to be confirmed.
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
    /// New seed and recovery codes, enrolled now; wrong passcodes are forgotten.
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

impl AccountChange {
    /// What the account's owner is told of it.
    pub const fn notice(&self) -> Option<NoticeCode> {
        match self {
            Self::Password(_) => Some(NoticeCode::PasswordChangedByOperator),
            Self::Passcode { .. } => Some(NoticeCode::PasscodeResetByOperator),
            Self::Grant { .. } | Self::Unlock | Self::Delete => None,
        }
    }

    /// The grant that the row carries afterwards; `None`: there is no row.
    pub const fn grant_after<'a>(&'a self, before: &'a AccountGrant) -> Option<&'a AccountGrant> {
        match self {
            Self::Grant { grant, .. } => Some(grant),
            Self::Password(_) | Self::Passcode { .. } | Self::Unlock => Some(before),
            Self::Delete => None,
        }
    }
}

/// Changes an account.
#[derive(Clone, Debug)]
pub struct ChangeAccount {
    /// By whose order; judged in the decision. A session reaches its own organization only and takes no last
    /// active admin.
    pub authority: Principal,
    /// The organization.
    pub organization: OrganizationId,
    /// The account.
    pub account: AccountId,
    /// The row's version that the change was decided on.
    pub version: i64,
    /// The change.
    pub change: AccountChange,
    /// Now.
    pub now: Timestamp,
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
    /// No such account within the authority's reach.
    NotFound,
    /// By a session only: no active admin would be left, by the rule of
    /// [`takes_last_admin`](crate::account::takes_last_admin). Counted in the decision; two such changes at
    /// once do not both succeed.
    LastAdmin,
    /// The session may no longer act. Decided before anything else.
    Refused(Denial),
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

    /// Finds one, or an invitation.
    async fn find_account(&self, query: FindAccount) -> Result<Result<Option<FoundAccount>, Denial>, StoreError>;

    /// Accounts and open invitations ([`StoredInvitation::listed`]), by organization and address.
    async fn list_accounts(&self, query: ListAccounts) -> Result<Result<Vec<Account>, Denial>, StoreError>;

    /// Changes one. Where [`AccountChange::notice`] says so, its owner gets a notice in the same decision.
    async fn change_account(&self, command: ChangeAccount) -> Result<ChangeAccountOutcome, StoreError>;

    /// An account's seed, for printing its current code; `audit` records that it was read.
    async fn read_passcode(
        &self,
        organization: OrganizationId,
        account: AccountId,
        audit: SealedAuditRecord,
    ) -> Result<Option<StoredPasscode>, StoreError>;
}
