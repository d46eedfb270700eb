//! Lists of accounts and open invitations.

use super::Accounts;
use crate::account::{ListAccounts, ListedAccount};
use crate::cursor::{self, ListName, Page, PageRequest};
use crate::error::{Error, Refusal};
use crate::id::{AccountId, OrganizationId};
use crate::principal::{Principal, Scope};
use crate::role::Action;

impl Accounts {
    /// Reads one page of the accounts in `scope`.
    ///
    /// # Errors
    /// [`Refusal::Cursor`] if the cursor does not belong to this list.
    pub async fn list(
        &self,
        principal: &Principal,
        scope: Scope,
        page: PageRequest,
    ) -> Result<Page<ListedAccount>, Error> {
        principal.administers(Action::ManageAccounts)?;
        let after = match page.cursor.as_deref() {
            Some(text) => Some(self.account_place(scope, text).await?),
            None => None,
        };
        let list = ListAccounts { scope, after, limit: page.rows() };
        let listed = self.operations.run(&self.environment, principal, list).await?;
        Ok(Page::of(listed, &page, |last| {
            let place = [last.grant.organization.as_bytes().as_slice(), last.grant.account.as_bytes()].concat();
            cursor::encode_position(&*self.digester, ListName::Accounts, scope, &place)
        }))
    }

    /// Returns the account after which the page of a cursor starts.
    async fn account_place(&self, scope: Scope, text: &str) -> Result<(OrganizationId, AccountId), Error> {
        let position = cursor::decode_position(&*self.digester, ListName::Accounts, scope, text).await?;
        let (organization, account) = position.split_first_chunk::<16>().ok_or(Refusal::Cursor)?;
        let account = account.try_into().map_err(|_| Refusal::Cursor)?;
        Ok((OrganizationId::from_bytes(*organization), AccountId::from_bytes(account)))
    }
}
