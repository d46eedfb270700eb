//! Show one's own account.

use super::Ambient;
use crate::email::EmailAddress;
use crate::id::AccountId;
use crate::notice::{Notice, notices};
use crate::organization::OrganizationName;
use crate::port::{OwnAccountRepository, StoreError};
use crate::principal::{Denial, SessionPrincipal};
use crate::role::Role;
use crate::time::Timestamp;
use std::sync::Arc;

/// One's own account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownOwnAccount {
    /// Its id.
    pub id: AccountId,
    /// Its address.
    pub email: EmailAddress,
    /// Its role.
    pub role: Role,
    /// Its organization's name.
    pub organization: OrganizationName,
    /// Since when its passcode seed is in use.
    pub passcode_enrolled_at: Timestamp,
    /// How many recovery codes it has left.
    pub recovery_codes_left: u32,
    /// What its owner should know.
    pub notices: Vec<Notice>,
}

/// Why one's own account was not shown, or its sessions not listed or ended.
#[derive(Debug, thiserror::Error)]
pub enum OwnAccountError {
    /// The session may no longer act.
    #[error("the session may no longer act")]
    Principal(Denial),
    /// The account has no such live session.
    #[error("no such session")]
    NotFound,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Shows accounts to their owners.
pub struct ShowOwnAccount {
    ambient: Ambient,
    accounts: Arc<dyn OwnAccountRepository>,
}

impl ShowOwnAccount {
    /// The operation on these ports.
    pub fn new(ambient: Ambient, accounts: Arc<dyn OwnAccountRepository>) -> Self {
        Self { ambient, accounts }
    }

    /// The principal's account.
    ///
    /// # Errors
    /// See [`OwnAccountError`].
    pub async fn run(&self, principal: &SessionPrincipal) -> Result<ShownOwnAccount, OwnAccountError> {
        let now = self.ambient.now();
        let found = self.accounts.own_account(principal.clone(), now).await;
        let found = found.map_err(|error| self.ambient.witness(error))?.map_err(OwnAccountError::Principal)?;
        Ok(ShownOwnAccount {
            id: principal.account,
            email: found.email,
            // The store refuses a principal whose account no longer has the role.
            role: principal.role,
            organization: found.organization,
            passcode_enrolled_at: found.passcode_enrolled_at,
            recovery_codes_left: found.recovery_codes_left,
            notices: notices(&found.notices, found.recovery_codes_left, now),
        })
    }
}
