//! Reads of the caller's own account.

use super::Accounts;
use crate::account::{ChangeSetAside, ListSetAside, SetAside};
use crate::email::EmailAddress;
use crate::error::Error;
use crate::id::AccountId;
use crate::notice::{Notice, notices};
use crate::organization::OrganizationName;
use crate::principal::{Principal, SessionPrincipal};
use crate::role::Role;
use crate::time::Timestamp;

/// The caller's own account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownOwnAccount {
    /// ID of the account.
    pub id: AccountId,
    /// Address of the account.
    pub email: EmailAddress,
    /// Role of the account.
    pub role: Role,
    /// Name of its organization.
    pub organization: OrganizationName,
    /// Time since which its TOTP secret is in use.
    pub passcode_enrolled_at: Timestamp,
    /// Number of unused recovery codes.
    pub recovery_codes_left: u32,
    /// Notices for its user.
    pub notices: Vec<Notice>,
}

impl Accounts {
    /// Returns the principal's account.
    ///
    /// # Errors
    /// [`Error::Denied`], or the store failed.
    pub async fn own(&self, principal: &SessionPrincipal) -> Result<ShownOwnAccount, Error> {
        let found = self.own_account(principal).await?;
        Ok(ShownOwnAccount {
            id: principal.account,
            email: found.account.grant.email,
            // The store refuses a principal if its account no longer has the role.
            role: principal.role,
            organization: self.organization(principal.organization).await?.name,
            passcode_enrolled_at: found.account.passcode_enrolled_at,
            recovery_codes_left: found.recovery_codes_left,
            notices: notices(&found.notices, found.recovery_codes_left, self.environment.now()),
        })
    }

    /// Returns what the principal's account has set aside on its overview.
    ///
    /// # Errors
    /// [`Error::Denied`], or the store failed.
    pub async fn set_aside(&self, principal: &SessionPrincipal) -> Result<Vec<SetAside>, Error> {
        let session = Principal::Session(principal.clone());
        self.operations.run(&self.environment, &session, ListSetAside(principal.clone())).await
    }

    /// Sets a concern aside on the overview of the principal's account until a time, or shows it again.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Refusal::LimitReached`](crate::Refusal::LimitReached), [`Error::Denied`], or the store failed.
    pub async fn change_set_aside(
        &self,
        principal: &SessionPrincipal,
        concern: String,
        until: Option<Timestamp>,
    ) -> Result<(), Error> {
        let change = ChangeSetAside { session: principal.clone(), concern, until };
        self.operations.run(&self.environment, &Principal::Session(principal.clone()), change).await
    }
}
