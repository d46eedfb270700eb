//! Finding and listing accounts and invitations.

use super::{Account, ListedAccount};
use crate::email::EmailAddress;
use crate::entity::{Entity, EntityKey, Kind, Opened};
use crate::id::{AccountId, OrganizationId};
use crate::invitation::{Invitation, invitation_for, invitations_for};
use crate::operation::{Access, Failure, Operation, Unit};
use crate::port::AccountPlace;
use crate::principal::{Denial, Scope};
use crate::time::Timestamp;
use std::cmp::Reverse;
use std::collections::HashMap;

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
    Account(Box<ListedAccount>),
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
    const ACCESS: Access<Self> = Access::Read(|operation| operation.scope.one());

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
                if let Some(account) = account_at(unit, email).await?.filter(|account| sees(account.grant.organization))
                {
                    return Ok(Some(FoundAccount::Account(Box::new(listed(unit, &account).await?))));
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

async fn account_at(unit: &Unit<'_>, email: &EmailAddress) -> Result<Option<Opened<Account>>, Failure> {
    let address = Account::at(email);
    let Some((of, id)) = unit.rows().find_anywhere(address.index, &address.value).await? else { return Ok(None) };
    let found = unit.find::<Account>(of, id).await?;
    Ok(found.filter(|found| found.lookups().contains(&address)))
}

/// Returns whether an address belongs to an active account of an organization.
pub(crate) async fn is_member(
    unit: &Unit<'_>,
    organization: OrganizationId,
    email: &EmailAddress,
) -> Result<bool, Failure> {
    let found = account_at(unit, email).await?;
    Ok(found.is_some_and(|found| found.is_active() && found.grant.organization == organization))
}

/// Returns an account with the results of its logins and the expiry of its open invitation.
pub(super) async fn listed(unit: &Unit<'_>, account: &Account) -> Result<ListedAccount, Failure> {
    let (organization, id) = account.place();
    let logins = unit.rows().logins(organization, &[id], unit.now()).await?.pop();
    let invitation_expires_at = invited_until(unit, account).await?;
    let (grant, created_at) = (account.grant.clone(), account.created_at);
    let logins = logins.map(|(_, logins)| logins).unwrap_or_default();
    Ok(ListedAccount { grant, created_at, logins, invitation_expires_at })
}

/// Returns the expiry of the open invitation with which an account enrols again.
async fn invited_until(unit: &Unit<'_>, account: &Account) -> Result<Option<Timestamp>, Failure> {
    if account.secrets.is_some() {
        return Ok(None);
    }
    let (organization, id) = account.place();
    let key = EntityKey { organization, kind: Kind::Invitation, id: *id.as_uuid() };
    let until = unit.rows().entity(key).await?.and_then(|row| row.due_at);
    Ok(until.filter(|until| unit.now() < *until))
}

/// Returns the account or the invitation with these IDs.
async fn found(unit: &Unit<'_>, (organization, account): AccountPlace) -> Result<Option<FoundAccount>, Failure> {
    if let Some(account) = unit.find::<Account>(organization, *account.as_uuid()).await? {
        return Ok(Some(FoundAccount::Account(Box::new(listed(unit, &account).await?))));
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
    const ACCESS: Access<Self> = Access::Read(|operation| operation.scope.one());

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<ListedAccount>, Failure> {
        unit.authorize().await?;
        if !unit.principal().may_see(self.scope) {
            return Err(Denial::InsufficientRole.into());
        }
        let is_open = |until: Option<Timestamp>| until.is_some_and(|until| unit.now() < until);
        let mut shown = Vec::new();
        // One that has expired need not be opened.
        for invitation in self.page::<Invitation>(unit, is_open, |one| !one.re_enrols()).await? {
            shown.push(invitation.listed());
        }
        let accounts = self.page::<Account>(unit, |_| true, |_| true).await?;
        let mut logins = HashMap::new();
        for of_one in accounts.chunk_by(|one, other| one.grant.organization == other.grant.organization) {
            let ids: Vec<AccountId> = of_one.iter().map(|account| account.grant.account).collect();
            if let Some(first) = of_one.first() {
                logins.extend(unit.rows().logins(first.grant.organization, &ids, unit.now()).await?);
            }
        }
        for account in &accounts {
            let invitation_expires_at = invited_until(unit, account).await?;
            let (grant, created_at) = (account.grant.clone(), account.created_at);
            let logins = logins.remove(&grant.account).unwrap_or_default();
            shown.push(ListedAccount { grant, created_at, logins, invitation_expires_at });
        }
        shown.sort_by_key(|listed| (listed.grant.organization, Reverse(listed.grant.account)));
        shown.truncate(self.limit);
        Ok(shown)
    }
}

impl ListAccounts {
    /// Reads as many entities of a kind that are due at a permitted time and meet a condition.
    async fn page<E: Entity>(
        &self,
        unit: &Unit<'_>,
        is_due: impl Fn(Option<Timestamp>) -> bool + Send,
        which: impl Fn(&E) -> bool + Send,
    ) -> Result<Vec<Opened<E>>, Failure> {
        let mut page = Vec::new();
        let mut after = self.after.map(|(organization, account)| (organization, *account.as_uuid()));
        while page.len() < self.limit {
            let wanted = self.limit - page.len();
            let rows = unit.rows().newest_entities(E::KIND, self.scope.one(), after, wanted).await?;
            let is_last = rows.len() < wanted;
            for row in rows {
                let EntityKey { organization, id, .. } = row.key;
                after = Some((organization, id));
                if is_due(row.due_at) {
                    page.extend(unit.open_or_report::<E>(&row)?.filter(|opened| which(opened)));
                }
            }
            if is_last {
                break;
            }
        }
        Ok(page)
    }
}
