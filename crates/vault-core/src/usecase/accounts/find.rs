//! Searches for an account or an invitation.

use super::Accounts;
use crate::account::{AccountKey, FindAccount, FoundAccount, ListedAccount};
use crate::email::EmailAddress;
use crate::error::{Error, Refusal};
use crate::field::FieldError;
use crate::id::{AccountId, OrganizationId};
use crate::principal::{Principal, Scope};
use crate::role::Action;

/// Reference to an account or an invitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountRef<'a> {
    /// By address, in any spelling.
    Email {
        /// Address.
        email: &'a str,
        /// Organization of the account. Without it, an operator finds the account of any organization, and invitations
        /// of several organizations result in [`Refusal::SeveralInvitations`].
        organization: Option<OrganizationId>,
    },
    /// By ID, within an organization.
    Id(OrganizationId, AccountId),
}

impl<'a> AccountRef<'a> {
    /// References the account with this address, in any organization that the principal may see.
    pub const fn email(email: &'a str) -> Self {
        Self::Email { email, organization: None }
    }
}

impl Accounts {
    /// Returns an account or an invitation, for principals that administer accounts.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] or [`Refusal::SeveralInvitations`].
    pub async fn account(&self, principal: &Principal, account: AccountRef<'_>) -> Result<ListedAccount, Error> {
        principal.administers(Action::ManageAccounts)?;
        match self.find(principal, account).await? {
            FoundAccount::Account(account) => Ok(*account),
            FoundAccount::Invitation(invited) => Ok(invited.listed()),
            FoundAccount::Invitations(number) => Err(Refusal::SeveralInvitations(number).into()),
        }
    }

    pub(super) async fn find(&self, principal: &Principal, account: AccountRef<'_>) -> Result<FoundAccount, Error> {
        let (scope, key) = match account {
            AccountRef::Email { email, organization } => {
                let email = parse_email(email)?;
                let scope = organization.map_or_else(|| principal.scope(), Scope::One);
                (scope, AccountKey::Address(email))
            }
            AccountRef::Id(organization, account) => (Scope::One(organization), AccountKey::Id(organization, account)),
        };
        let found = self.operations.run(&self.environment, principal, FindAccount { scope, key }).await?;
        Ok(found.ok_or(Refusal::NotFound)?)
    }
}

/// Returns the canonical spelling of an address.
///
/// # Errors
/// An error at `/email` if it has none.
pub(super) fn parse_email(text: &str) -> Result<EmailAddress, FieldError> {
    EmailAddress::parse(text).map_err(|error| error.at("/email"))
}
