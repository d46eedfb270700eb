//! Accounts: who may log in, to which organization, in which role.

use crate::digest::{Digest, DigestPurpose};
use crate::email::EmailAddress;
use crate::id::{AccountId, OrganizationId};
use crate::port::KeyedDigester;
use crate::role::{Action, Role};
use crate::time::Timestamp;

/// Whether an account may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountState {
    /// May log in.
    Active,
    /// May not log in; its tokens are dead.
    Disabled,
    /// Not an account yet: an [`Invitation`](crate::invitation::Invitation) that nobody has taken up. Only
    /// lists and invitations say so; no row that logs in does.
    Invited,
}

impl AccountState {
    /// The state's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Disabled => "disabled",
            Self::Invited => "invited",
        }
    }

    /// The state of this exact name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Active, Self::Disabled, Self::Invited].into_iter().find(|state| state.as_str() == text)
    }
}

/// What an account row grants: whoever proves to own the address acts in the organization with the role.
///
/// The row carries a keyed digest over these facts. Where it does not fit, the row grants nothing, so
/// writing SQL is not enough to be let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountGrant {
    /// The account.
    pub account: AccountId,
    /// Its organization.
    pub organization: OrganizationId,
    /// Its canonical address.
    pub email: EmailAddress,
    /// Its role.
    pub role: Role,
    /// Whether it may act.
    pub state: AccountState,
}

impl AccountGrant {
    /// The digest that the row must carry.
    pub fn digest(&self, digester: &dyn KeyedDigester) -> Digest {
        let parts: [&[u8]; 5] = [
            self.account.as_bytes(),
            self.organization.as_bytes(),
            self.email.as_str().as_bytes(),
            self.role.as_str().as_bytes(),
            self.state.as_str().as_bytes(),
        ];
        digester.digest(DigestPurpose::AccountGrant, &parts)
    }

    /// Whether its holder may administer the organization's accounts.
    pub fn is_active_admin(&self) -> bool {
        self.state == AccountState::Active && self.role.permits(Action::ManageAccounts)
    }
}

/// Whether a change takes an organization's last active admin: `before` becomes `after` (`None`: is deleted)
/// where `others` other accounts are active admins. Invitations are no accounts and do not count.
pub fn takes_last_admin(before: &AccountGrant, after: Option<&AccountGrant>, others: u64) -> bool {
    before.is_active_admin() && others == 0 && !after.is_some_and(AccountGrant::is_active_admin)
}

/// An account as operators and admins see it; in lists an invitation too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// What it grants.
    pub grant: AccountGrant,
    /// The digest that the row carries; where it does not fit, the row grants nothing.
    pub grant_digest: Digest,
    /// Counts changes of the row; a change names the version it was decided on.
    pub version: i64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last logged in.
    pub last_login_at: Option<Timestamp>,
}
