//! Accounts in the store.

use super::{
    AuditLog, Find, InvitationRepository, List, LoginAttemptRepository, OrganizationRepository, OwnAccountRepository,
    SessionRepository, StoreError,
};
use crate::account::{Account, AccountGrant, ListedAccount, SignedAccount};
use crate::command::Command;
use crate::digest::{Digest, LookUpDigests, RowMac};
use crate::id::{AccountId, OrganizationId};
use crate::invitation::StoredInvitation;
use crate::notice::NoticeCode;
use crate::passcode::TimeStep;
use crate::principal::Scope;
use crate::sealed::{SealedPassword, SealedSeed};
use async_trait::async_trait;

/// By what an account or an invitation is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountKey {
    /// The digests of its address.
    Address(LookUpDigests),
    /// Its id, within an organization.
    Id(OrganizationId, AccountId),
}

/// What was found. An invitation that is over is found too, until it is deleted or replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundAccount {
    /// An account.
    Account(Box<Account>),
    /// An invitation.
    Invitation(Box<StoredInvitation>),
    /// Invitations of several organizations, and no account.
    Invitations(usize),
}

/// Makes an account that can log in at once. Its passcode counts as enrolled at the command's time.
#[derive(Clone, Debug)]
pub struct CreateAccount {
    /// What its row's code covers.
    pub signed: SignedAccount,
    /// The code.
    pub digest: RowMac,
    /// The digest of its address: where the directory finds it.
    pub address: LookUpDigests,
    /// Its password.
    pub password: SealedPassword,
    /// Its passcode seed.
    pub seed: SealedSeed,
    /// Its recovery codes.
    pub recovery_codes: Vec<Digest>,
}

/// One change of an account. Every one of them but [`AccountChange::Unlock`] ends all of its sessions and drops
/// a seed that waits to be confirmed.
#[derive(Clone, Debug)]
pub enum AccountChange {
    /// New role or state.
    Grant,
    /// New password. Waits and closed classes are lifted.
    Password(SealedPassword),
    /// New seed and recovery codes, enrolled now; wrong passcodes are forgotten. Waits and closed classes are lifted.
    Passcode {
        /// The seed.
        seed: SealedSeed,
        /// The recovery codes, instead of those before.
        recovery_codes: Vec<Digest>,
    },
    /// Password, seed and recovery codes are destroyed; wrong passcodes are forgotten. Waits and closed classes are
    /// lifted. Its owner can enrol again by this invitation, in the place of any before.
    ReEnrol {
        /// The invitation.
        invitation: Box<StoredInvitation>,
    },
    /// Waits and closed classes are lifted.
    Unlock,
    /// The account is deleted, with all that hangs on it.
    Delete,
}

impl AccountChange {
    /// The notices for the account's owner.
    pub const fn notice(&self) -> Option<NoticeCode> {
        match self {
            Self::Password(_) => Some(NoticeCode::PasswordChangedByOperator),
            Self::Passcode { .. } => Some(NoticeCode::PasscodeResetByOperator),
            Self::ReEnrol { .. } => Some(NoticeCode::ReEnrolled),
            Self::Grant | Self::Unlock | Self::Delete => None,
        }
    }

    /// The notice for every other admin of the organization, where `account` is changed.
    pub const fn admins_notice(&self, account: AccountId) -> Option<NoticeCode> {
        match self {
            Self::ReEnrol { .. } => Some(NoticeCode::ColleagueReEnrolled(account)),
            _ => None,
        }
    }

    /// Whether it lifts waits and closed classes.
    pub const fn unlocks(&self) -> bool {
        matches!(self, Self::Password(_) | Self::Passcode { .. } | Self::ReEnrol { .. } | Self::Unlock)
    }
}

/// Changes an account. A session reaches its own organization only and takes no last active admin.
#[derive(Clone, Debug)]
pub struct ChangeAccount {
    /// The row's version that the change was decided on.
    pub version: i64,
    /// What the row's code covers afterwards; names the account. As before where the change touches none of it.
    pub after: SignedAccount,
    /// The code.
    pub digest: RowMac,
    /// The change.
    pub change: AccountChange,
}

impl ChangeAccount {
    /// What the account grants afterwards; `None`: it is deleted.
    pub const fn grant_after(&self) -> Option<&AccountGrant> {
        match self.change {
            AccountChange::Delete => None,
            _ => Some(&self.after.grant),
        }
    }
}

/// Reads an account's seed, for printing its current code.
#[derive(Clone, Copy, Debug)]
pub struct ReadPasscode {
    /// The organization.
    pub organization: OrganizationId,
    /// The account.
    pub account: AccountId,
}

/// An account's seed and the latest step that was used with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPasscode {
    /// The seed.
    pub seed: SealedSeed,
    /// The latest used step; codes up to it are invalid.
    pub last_step: TimeStep,
}

/// Accounts. Every method refuses a principal that may not act ([`StoreError::Denied`]), in the same transaction.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait AccountRepository: Send + Sync {
    /// Makes one. An invitation of the organization for the address that is over is replaced in the same decision.
    ///
    /// Refused with [`Refusal::NoOrganization`](crate::Refusal::NoOrganization),
    /// [`Refusal::AddressTaken`](crate::Refusal::AddressTaken): the address belongs to an account of any organization, or
    /// to an open invitation of this one; [`ACCOUNT_LIMIT_REACHED`](crate::account::ACCOUNT_LIMIT_REACHED).
    async fn create_account(&self, command: Command<CreateAccount>) -> Result<(), StoreError>;

    /// Finds one, or an invitation.
    async fn find_account(&self, query: Find<AccountKey, Scope>) -> Result<Option<FoundAccount>, StoreError>;

    /// Reads a page: by organization, in it the newest first.
    async fn list_accounts(&self, query: List<(OrganizationId, AccountId)>) -> Result<Vec<ListedAccount>, StoreError>;

    /// Changes one. Where [`AccountChange::notice`] and [`AccountChange::admins_notice`] say so, its owner and the other
    /// admins of its organization get a notice in the same decision.
    ///
    /// Refused with [`Refusal::NotFound`](crate::Refusal::NotFound): no such account that the principal may see;
    /// [`Refusal::Contended`](crate::Refusal::Contended): the row has another version; and, not for an operator,
    /// [`Refusal::LastAdmin`](crate::Refusal::LastAdmin): no active admin would be left, by the rule of
    /// [`takes_last_admin`](crate::account::takes_last_admin). Counted in the decision; two such changes at once do not
    /// both succeed.
    async fn change_account(&self, command: Command<ChangeAccount>) -> Result<(), StoreError>;

    /// Reads a seed. Nothing is recorded where there is no such account.
    async fn read_passcode(&self, command: Command<ReadPasscode>) -> Result<Option<StoredPasscode>, StoreError>;
}

/// What logins, invitations and the administration of accounts need of a store.
pub trait AccountStore:
    OrganizationRepository
    + AccountRepository
    + InvitationRepository
    + OwnAccountRepository
    + LoginAttemptRepository
    + SessionRepository
    + AuditLog
{
}

impl<S> AccountStore for S where
    S: OrganizationRepository
        + AccountRepository
        + InvitationRepository
        + OwnAccountRepository
        + LoginAttemptRepository
        + SessionRepository
        + AuditLog
        + ?Sized
{
}
