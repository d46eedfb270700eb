//! Finding and listing accounts and invitations.

use super::{Account, ListedAccount};
use crate::digest::LookupDigests;
use crate::id::{AccountId, OrganizationId};
use crate::invitation::StoredInvitation;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::port::AccountPlace;
use crate::principal::{Denial, Principal, Scope};
use futures_util::try_join;
use std::cmp::Reverse;

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

/// Returns the organization to which a query is confined, or `None` for all.
fn confine(principal: &Principal, scope: Scope) -> Result<Option<OrganizationId>, Denial> {
    match scope {
        Scope::One(organization) => Ok(Some(organization)),
        Scope::All if *principal == Principal::Operator => Ok(None),
        Scope::All => Err(Denial::InsufficientRole),
    }
}

const fn organization_of(scope: Scope) -> Option<OrganizationId> {
    match scope {
        Scope::One(organization) => Some(organization),
        Scope::All => None,
    }
}

/// Finds an account or an invitation. Those outside the scope, or that the principal may not see, are treated as missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindAccount {
    /// Scope of the search.
    pub scope: Scope,
    /// The key.
    pub key: AccountKey,
}

impl Operation for FindAccount {
    type Outcome = Option<FoundAccount>;
    const ACCESS: Access = Access::Read;

    fn organization(&self) -> Option<OrganizationId> {
        organization_of(self.scope)
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<Option<FoundAccount>, Failure> {
        unit.authorize().await?;
        let confined = confine(unit.principal(), self.scope)?;
        let sees = |organization: OrganizationId| {
            unit.principal().reaches(organization) && confined.is_none_or(|only| only == organization)
        };
        match &self.key {
            AccountKey::Id(organization, account) if sees(*organization) => {
                found(unit, (*organization, *account)).await
            }
            AccountKey::Id(..) => Ok(None),
            AccountKey::Address(address) => {
                if let Some(place) = unit.rows().account_of(address).await?
                    && sees(place.0)
                {
                    return found(unit, place).await;
                }
                let invited = unit.rows().invitations_of(address).await?;
                let invited: Vec<_> = invited.into_iter().filter(|(organization, _)| sees(*organization)).collect();
                match invited[..] {
                    [] => Ok(None),
                    [place] => found(unit, place).await,
                    _ => Ok(Some(FoundAccount::Invitations(invited.len()))),
                }
            }
        }
    }
}

/// Returns the account or the invitation with these IDs.
async fn found(unit: &Unit<'_>, place: AccountPlace) -> Result<Option<FoundAccount>, Failure> {
    let rows = unit.rows();
    let (account, invitation) = try_join!(rows.found_account(place, unit.now()), rows.invitation(place))?;
    let account = account.map(|account| FoundAccount::Account(Box::new(account)));
    Ok(account.or_else(|| invitation.map(|stored| FoundAccount::Invitation(Box::new(stored)))))
}

/// Reads a page of accounts and open invitations, ordered by organization and within it newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListAccounts {
    /// Scope of the list.
    pub scope: Scope,
    /// Account after which the page starts.
    pub after: Option<AccountPlace>,
    /// Maximum number of rows.
    pub limit: usize,
}

impl Operation for ListAccounts {
    type Outcome = Vec<ListedAccount>;
    const ACCESS: Access = Access::Read;

    fn organization(&self) -> Option<OrganizationId> {
        organization_of(self.scope)
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<ListedAccount>, Failure> {
        unit.authorize().await?;
        let confined = confine(unit.principal(), self.scope)?;
        if confined.is_some_and(|organization| !unit.principal().reaches(organization)) {
            return Err(Denial::InsufficientRole.into());
        }
        let (rows, now) = (unit.rows(), unit.now());
        let (accounts, invitations) = try_join!(
            rows.listed_accounts(confined, self.after, self.limit, now),
            rows.listed_invitations(confined, self.after, self.limit, now),
        )?;
        let invitations = invitations.iter().map(StoredInvitation::listed);
        let mut listed: Vec<_> = accounts.iter().map(Account::listed).chain(invitations).collect();
        listed.sort_by_key(|listed| (listed.grant.organization, Reverse(listed.grant.account)));
        listed.truncate(self.limit);
        Ok(listed)
    }
}
