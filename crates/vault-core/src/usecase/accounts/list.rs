//! List accounts and open invitations.

use super::Accounts;
use crate::account::ListedAccount;
use crate::cursor;
use crate::error::{Error, Refusal};
use crate::port::{AccountPlace, ListAccounts};
use crate::principal::{Principal, Scope};
use crate::role::Action;

/// A page to read.
#[derive(Clone, Debug)]
pub struct AccountsRequest {
    /// At most so many.
    pub limit: usize,
    /// Where to begin, as the previous page said.
    pub cursor: Option<String>,
}

impl Default for AccountsRequest {
    /// The first page, of 1,000.
    fn default() -> Self {
        Self { limit: 1_000, cursor: None }
    }
}

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
    pub async fn list(
        &self,
        principal: &Principal,
        scope: Scope,
        request: AccountsRequest,
    ) -> Result<AccountPage, Error> {
        principal.administers(Action::ManageAccounts)?;
        let after = request
            .cursor
            .map(|text| cursor::decode_account(&*self.digester, scope, &text))
            .transpose()
            .map_err(|_| Refusal::Cursor)?;
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
            let place = AccountPlace { organization: last.grant.organization, account: last.grant.account };
            cursor::encode_account(&*self.digester, scope, place)
        });
        Ok(AccountPage { accounts, next })
    }
}
