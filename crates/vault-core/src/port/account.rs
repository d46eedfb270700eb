//! Port for accounts in the store.

use super::{AuditLog, Find, InvitationRepository, List, StoreError};
use crate::account::{Account, AccountRights, ListedAccount, SignedAccount};
use crate::command::Command;
use crate::digest::{Digest, LookupDigests, RowMac};
use crate::id::{AccountId, OrganizationId};
use crate::invitation::StoredInvitation;
use crate::notice::NoticeCode;
use crate::principal::Scope;
use crate::sealed::{SealedPassword, SealedSeed};
use async_trait::async_trait;

/// Lookup key of an account or an invitation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountKey {
    /// Lookup digests of its address.
    Address(LookupDigests),
    /// Its ID within an organization.
    Id(OrganizationId, AccountId),
}

/// Result of a search. Expired invitations are also found, until they are deleted or replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundAccount {
    /// An account.
    Account(Box<Account>),
    /// An invitation.
    Invitation(Box<StoredInvitation>),
    /// Number of organizations with an invitation, if there is no account.
    Invitations(usize),
}

/// Creates an account that can log in immediately. Its passcode counts as enrolled at the time of the command.
#[derive(Clone, Debug)]
pub struct CreateAccount {
    /// Fields that the row's MAC covers.
    pub signed: SignedAccount,
    /// MAC of the row.
    pub digest: RowMac,
    /// Lookup digests of its address.
    pub address: LookupDigests,
    /// The sealed password.
    pub password: SealedPassword,
    /// The sealed TOTP secret.
    pub seed: SealedSeed,
    /// Digests of its recovery codes.
    pub recovery_codes: Vec<Digest>,
}

/// Change of an account. Each except [`AccountChange::Unlock`] ends all of its sessions and deletes a TOTP secret that
/// is pending confirmation.
#[derive(Clone, Debug)]
pub enum AccountChange {
    /// New role or state.
    Grant,
    /// Deletes password, TOTP secret and recovery codes, resets the count of wrong passcodes, and clears lockouts and
    /// locked buckets. The user can enrol again with this invitation, which replaces any previous one.
    ReEnrol {
        /// The invitation.
        invitation: Box<StoredInvitation>,
    },
    /// Clears lockouts and locked buckets.
    Unlock,
    /// Deletes the account with all its rows.
    Delete,
}

impl AccountChange {
    /// Returns the notice for the user of the account.
    pub const fn notice(&self) -> Option<NoticeCode> {
        match self {
            Self::ReEnrol { .. } => Some(NoticeCode::ReEnrolled),
            Self::Grant | Self::Unlock | Self::Delete => None,
        }
    }

    /// Returns the notice for every other admin of the organization if `account` is changed.
    pub const fn admins_notice(&self, account: AccountId) -> Option<NoticeCode> {
        match self {
            Self::ReEnrol { .. } => Some(NoticeCode::ColleagueReEnrolled(account)),
            _ => None,
        }
    }

    /// Returns whether the change clears lockouts and locked buckets.
    pub const fn unlocks(&self) -> bool {
        matches!(self, Self::ReEnrol { .. } | Self::Unlock)
    }
}

/// Changes an account. A session can change only accounts of its organization, and cannot remove the last active admin.
#[derive(Clone, Debug)]
pub struct ChangeAccount {
    /// Version of the row that the change is based on.
    pub version: i64,
    /// New fields that the row's MAC covers, including the account's ID. Unchanged if the change affects none of them.
    pub after: SignedAccount,
    /// New MAC of the row.
    pub digest: RowMac,
    /// The change.
    pub change: AccountChange,
}

impl ChangeAccount {
    /// Returns the rights after the change, or `None` if the account is deleted.
    pub const fn grant_after(&self) -> Option<&AccountRights> {
        match self.change {
            AccountChange::Delete => None,
            _ => Some(&self.after.grant),
        }
    }
}

/// Port for accounts. Every method checks authorization in its own transaction and returns [`StoreError::Denied`] if
/// the principal may not act.
#[async_trait]
pub trait AccountRepository: Send + Sync {
    /// Creates an account, and replaces an expired invitation of the organization for the address in the same
    /// transaction.
    ///
    /// # Errors
    /// - [`Refusal::NoOrganization`](crate::Refusal::NoOrganization): the organization does not exist.
    /// - [`Refusal::AddressTaken`](crate::Refusal::AddressTaken): the address belongs to an account of any
    ///   organization, or to an open invitation of this one.
    /// - [`ACCOUNT_LIMIT_REACHED`](crate::account::ACCOUNT_LIMIT_REACHED): the organization has the maximum number of
    ///   accounts and invitations.
    async fn create_account(&self, command: Command<CreateAccount>) -> Result<(), StoreError>;

    /// Finds an account or an invitation.
    async fn find_account(&self, query: Find<AccountKey, Scope>) -> Result<Option<FoundAccount>, StoreError>;

    /// Reads a page, ordered by organization and within it newest first.
    async fn list_accounts(&self, query: List<(OrganizationId, AccountId)>) -> Result<Vec<ListedAccount>, StoreError>;

    /// Changes an account. In the same transaction, creates the notices of [`AccountChange::notice`] and
    /// [`AccountChange::admins_notice`] for its user and the other admins of its organization.
    ///
    /// # Errors
    /// - [`Refusal::NotFound`](crate::Refusal::NotFound): the account does not exist, or the principal may not see it.
    /// - [`Refusal::Contended`](crate::Refusal::Contended): the row has another version.
    /// - [`Refusal::LastAdmin`](crate::Refusal::LastAdmin), except for operators: no active admin would remain
    ///   according to [`takes_last_admin`](crate::account::takes_last_admin). The transaction counts the admins, so two
    ///   such changes cannot both succeed.
    async fn change_account(&self, command: Command<ChangeAccount>) -> Result<(), StoreError>;
}

/// Ports that invitations and the administration of accounts require of a store.
pub trait AccountStore: AccountRepository + InvitationRepository + AuditLog {}

impl<S> AccountStore for S where S: AccountRepository + InvitationRepository + AuditLog + ?Sized {}
