//! List accounts and open invitations.

use super::Accounts;
use crate::account::ListedAccount;
use crate::cursor::{self, ListName, PageRequest};
use crate::error::{Error, Refusal};
use crate::id::{AccountId, OrganizationId};
use crate::port::{AccountPlace, ListAccounts};
use crate::principal::{Principal, Scope};
use crate::role::Action;

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountPage {
    /// Accounts and open invitations, by organization, in it the newest first.
    pub accounts: Vec<ListedAccount>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

impl Accounts {
    /// Reads one page of the accounts in `scope`.
    ///
    /// # Errors
    /// [`Refusal::Cursor`]: the cursor is not one of this list.
    pub async fn list(&self, principal: &Principal, scope: Scope, request: PageRequest) -> Result<AccountPage, Error> {
        principal.administers(Action::ManageAccounts)?;
        let after = request.cursor.map(|text| self.account_place(scope, &text)).transpose()?;
        let query = ListAccounts {
            principal: principal.clone(),
            scope,
            after,
            limit: request.limit.saturating_add(1), // one more tells whether there is a next page
            now: self.ambient.now(),
        };
        let mut accounts = self.store.list_accounts(query).await?;
        let more = accounts.len() > request.limit;
        accounts.truncate(request.limit);
        let next = accounts.last().filter(|_| more).map(|last| {
            let place = [last.grant.organization.as_bytes().as_slice(), last.grant.account.as_bytes()].concat();
            cursor::encode_position(&*self.digester, ListName::Accounts, scope, &place)
        });
        Ok(AccountPage { accounts, next })
    }

    /// The account after which the page of a cursor begins.
    fn account_place(&self, scope: Scope, text: &str) -> Result<AccountPlace, Error> {
        let position = cursor::decode_position(&*self.digester, ListName::Accounts, scope, text);
        let position = position.map_err(|_| Refusal::Cursor)?;
        let (organization, account) = position.split_first_chunk::<16>().ok_or(Refusal::Cursor)?;
        Ok(AccountPlace {
            organization: OrganizationId::from_bytes(*organization),
            account: AccountId::from_bytes(account.try_into().map_err(|_| Refusal::Cursor)?),
        })
    }
}
