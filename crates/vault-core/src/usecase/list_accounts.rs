//! List accounts and open invitations.

use super::Ambient;
use crate::account::Account;
use crate::port::{AccountRepository, AccountScope, ListAccounts, StoreError};
use crate::principal::Denial;
use crate::role::Action;
use std::sync::Arc;

/// Why no accounts were listed.
#[derive(Debug, thiserror::Error)]
pub enum ListAccountsError {
    /// The role does not permit it.
    #[error("the role does not permit administering accounts")]
    InsufficientRole,
    /// The session may no longer act.
    #[error("the session may no longer act")]
    Principal(Denial),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Lists accounts.
pub struct ListAccountsUseCase {
    ambient: Ambient,
    accounts: Arc<dyn AccountRepository>,
}

impl ListAccountsUseCase {
    /// The operation on these ports.
    pub fn new(ambient: Ambient, accounts: Arc<dyn AccountRepository>) -> Self {
        Self { ambient, accounts }
    }

    /// The accounts of `scope`, by organization and address.
    ///
    /// # Errors
    /// See [`ListAccountsError`].
    pub async fn run(&self, scope: AccountScope) -> Result<Vec<Account>, ListAccountsError> {
        if let AccountScope::Session(principal) = &scope
            && !principal.role.permits(Action::ManageAccounts)
        {
            return Err(ListAccountsError::InsufficientRole);
        }
        let query = ListAccounts { scope, now: self.ambient.now() };
        let listed = self.accounts.list_accounts(query).await.map_err(|error| self.ambient.witness(error))?;
        listed.map_err(ListAccountsError::Principal)
    }
}
