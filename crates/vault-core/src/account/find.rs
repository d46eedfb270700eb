//! Finding and listing accounts and invitations.

use super::{Account, ListedAccount};
use crate::email::EmailAddress;
use crate::entity::{EntityKey, Kind};
use crate::id::{AccountId, OrganizationId};
use crate::invitation::{Invitation, invitation_for, invitations_for};
use crate::operation::{Access, Failure, Operation, Unit};
use crate::port::AccountPlace;
use crate::principal::{Denial, Scope};
use std::cmp::Reverse;

/// Lookup key of an account or an invitation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountKey {
    /// Its address.
    Address(EmailAddress),
    /// Its ID within an organization.
    Id(OrganizationId, AccountId),
}

/// Result of a search. Expired invitations are also found, until they are deleted or replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundAccount {
    /// An account.
    Account(Box<Account>),
    /// An invitation.
    Invitation(Box<Invitation>),
    /// Number of organizations with an invitation, if there is no account.
    Invitations(usize),
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
        self.scope.one()
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<Option<FoundAccount>, Failure> {
        unit.authorize().await?;
        let confined = self.scope.one();
        if confined.is_none() && !unit.principal().may_see(self.scope) {
            return Err(Denial::InsufficientRole.into());
        }
        let sees = |organization: OrganizationId| {
            unit.principal().reaches(organization) && confined.is_none_or(|only| only == organization)
        };
        match &self.key {
            AccountKey::Id(organization, account) if sees(*organization) => {
                found(unit, (*organization, *account)).await
            }
            AccountKey::Id(..) => Ok(None),
            AccountKey::Address(email) => {
                if let Some(place) = unit.rows().account_of(email).await?
                    && sees(place.0)
                {
                    return found(unit, place).await;
                }
                if let Some(organization) = confined {
                    let invited = match sees(organization) {
                        true => invitation_for(unit, email, organization).await?,
                        false => None,
                    };
                    return Ok(invited.map(|invited| FoundAccount::Invitation(Box::new(invited.into_value()))));
                }
                let invited = invitations_for(unit, email).await?;
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
async fn found(
    unit: &Unit<'_>,
    place @ (organization, account): AccountPlace,
) -> Result<Option<FoundAccount>, Failure> {
    if let Some(account) = unit.rows().found_account(place, unit.now()).await? {
        return Ok(Some(FoundAccount::Account(Box::new(account))));
    }
    let invited = unit.find::<Invitation>(organization, *account.as_uuid()).await?;
    Ok(invited.map(|invited| FoundAccount::Invitation(Box::new(invited.into_value()))))
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
        self.scope.one()
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<ListedAccount>, Failure> {
        unit.authorize().await?;
        if !unit.principal().may_see(self.scope) {
            return Err(Denial::InsufficientRole.into());
        }
        let confined = self.scope.one();
        let accounts = unit.rows().listed_accounts(confined, self.after, self.limit, unit.now()).await?;
        let mut listed: Vec<_> = accounts.iter().map(Account::listed).collect();
        listed.extend(self.invitations(unit, confined).await?);
        listed.sort_by_key(|listed| (listed.grant.organization, Reverse(listed.grant.account)));
        listed.truncate(self.limit);
        Ok(listed)
    }
}

impl ListAccounts {
    /// Reads as many open invitations that create an account.
    async fn invitations(&self, unit: &Unit<'_>, of: Option<OrganizationId>) -> Result<Vec<ListedAccount>, Failure> {
        let mut listed = Vec::new();
        let mut after = self.after.map(|(organization, account)| (organization, *account.as_uuid()));
        while listed.len() < self.limit {
            let wanted = self.limit - listed.len();
            let rows = unit.rows().newest_entities(Kind::Invitation, of, after, wanted).await?;
            let is_last = rows.len() < wanted;
            for row in rows {
                let EntityKey { organization, id, .. } = row.key;
                after = Some((organization, id));
                // One that has expired need not be opened.
                if row.due_at.is_some_and(|until| unit.now() < until)
                    && let Some(invitation) = unit.open_or_report::<Invitation>(&row)?
                    && !invitation.re_enrols()
                {
                    listed.push(invitation.listed());
                }
            }
            if is_last {
                break;
            }
        }
        Ok(listed)
    }
}
