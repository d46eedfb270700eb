//! Accounts: who may log in, to which organization and with which role.

mod change;
mod confirm_passcode;
mod create;
mod find;
mod read_own;
mod secrets;
mod set_aside;

pub(crate) use change::changes;
pub use change::{AccountChange, ChangeAccount};
pub use confirm_passcode::{ConfirmPasscode, ReserveConfirmation};
pub use create::CreateAccount;
pub(crate) use create::{created, insert_account, require_room};
pub(crate) use find::is_member;
pub use find::{AccountKey, FindAccount, FoundAccount, ListAccounts};
pub use read_own::{OwnAccount, ReadOwnAccount};
pub use secrets::AccountSecrets;
pub(crate) use secrets::put;
pub use set_aside::{ChangeSetAside, ListSetAside, MAX_SET_ASIDE, SetAside, SetAsides};

use crate::audit::{Affected, Subject};
use crate::email::EmailAddress;
use crate::entity::{Entity, Index, Kind, Lookup};
use crate::error::Refusal;
use crate::id::{AccountId, OrganizationId, SecretsId, SessionId};
use crate::lockout::{AttemptLock, WRONG_PASSCODES};
use crate::port::AccountPlace;
use crate::role::{Action, Role};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};
use uuid::Uuid;

/// Maximum number of accounts and invitations of an organization.
pub const MAX_ACCOUNTS: i64 = 10_000;
/// Refusal for an exceeded limit of accounts and invitations.
pub const ACCOUNT_LIMIT_REACHED: Refusal =
    Refusal::LimitReached { what: "accounts and invitations", limit: MAX_ACCOUNTS };

/// State of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, EnumString, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum AccountState {
    /// Can log in.
    Active,
    /// Cannot log in. Its access tokens are no longer accepted.
    Disabled,
    /// Cannot log in until its user has enrolled again. Password, TOTP secret and recovery codes are deleted.
    ReEnrolling,
    /// An [`Invitation`](crate::invitation::Invitation) that was not accepted yet. Only lists and invitations have this
    /// state, never an account.
    Invited,
}

named!(AccountState);

/// The rights of an account: its user may act in the organization with the role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountRights {
    /// The account.
    pub account: AccountId,
    /// Its organization.
    pub organization: OrganizationId,
    /// Canonical address.
    pub email: EmailAddress,
    /// Role in the organization.
    pub role: Role,
    /// State: active or disabled.
    pub state: AccountState,
}

impl AccountRights {
    /// Returns whether its user may administer the accounts of the organization.
    pub fn is_active_admin(&self) -> bool {
        self.state == AccountState::Active && self.role.permits(Action::ManageAccounts)
    }
}

/// The sessions of an account that no change has revoked. The document of an account contains this, so that revoked sessions
/// stay revoked whatever rows of sessions exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValidSessions {
    /// Number of changes of the account since which logins create valid sessions.
    pub since: i64,
    /// An older session that is also valid, because it made the change that revoked the others.
    pub kept: Option<SessionId>,
}

impl ValidSessions {
    /// Those of a new account.
    pub const FIRST: Self = Self { since: 1, kept: None };

    /// Returns whether a session of a login after this number of changes is valid.
    pub fn include(&self, session: SessionId, version: i64) -> bool {
        version >= self.since || self.kept == Some(session)
    }
}

/// An account: its rights, and which secrets and sessions are valid. Each change of it revokes all sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Rights of the account.
    pub grant: AccountRights,
    /// ID of its [`AccountSecrets`], so that others that SQL puts back are not accepted. `None` until its user enrols again.
    pub secrets: Option<SecretsId>,
    /// The sessions that are valid if their rows exist.
    pub sessions: ValidSessions,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time since which its TOTP secret is in use.
    pub passcode_enrolled_at: Timestamp,
}

impl Account {
    /// Creates an account.
    pub const fn new(grant: AccountRights, secrets: SecretsId, created_at: Timestamp) -> Self {
        let (sessions, passcode_enrolled_at) = (ValidSessions::FIRST, created_at);
        Self { grant, secrets: Some(secrets), sessions, created_at, passcode_enrolled_at }
    }

    /// Returns the value that leads to the account with an address.
    pub(crate) fn at(email: &EmailAddress) -> Lookup {
        Lookup::new(Index::AccountAddress, email.as_str())
    }

    /// Returns its organization and ID.
    pub const fn place(&self) -> AccountPlace {
        (self.grant.organization, self.grant.account)
    }

    /// Returns whether it can log in.
    pub fn is_active(&self) -> bool {
        self.grant.state == AccountState::Active
    }

    /// Returns the account after a change of the rights.
    #[must_use]
    pub fn with_grant(&self, grant: AccountRights) -> Self {
        Self { grant, ..self.changed() }
    }

    /// Returns the account with other secrets.
    #[must_use]
    pub fn with_secrets(&self, secrets: SecretsId) -> Self {
        Self { secrets: Some(secrets), ..self.changed() }
    }

    /// Returns the account with another TOTP secret, in use since `now`.
    #[must_use]
    pub fn with_passcode(&self, secrets: SecretsId, now: Timestamp) -> Self {
        Self { passcode_enrolled_at: now, ..self.with_secrets(secrets) }
    }

    fn changed(&self) -> Self {
        Self { sessions: ValidSessions { since: self.sessions.since + 1, kept: None }, ..self.clone() }
    }

    /// Returns the account after a change that `session` of the account made and that revoked only the others.
    #[must_use]
    pub fn keeping(self, session: SessionId) -> Self {
        Self { sessions: ValidSessions { kept: Some(session), ..self.sessions }, ..self }
    }

    /// Returns the state that the account has after it is enabled.
    pub const fn enabled_state(&self) -> AccountState {
        if self.secrets.is_some() { AccountState::Active } else { AccountState::ReEnrolling }
    }

    /// Returns the account after the secrets were deleted. The role is unchanged, and a disabled account stays disabled.
    #[must_use]
    pub fn without_secrets(&self, now: Timestamp) -> Self {
        let after = Self { secrets: None, passcode_enrolled_at: now, ..self.changed() };
        match self.grant.state {
            AccountState::Disabled => after,
            _ => after.in_state(AccountState::ReEnrolling),
        }
    }

    /// Returns the account after the user enrolled again with these secrets. The role is unchanged, and a disabled account
    /// stays disabled.
    #[must_use]
    pub fn re_enrolled(&self, secrets: SecretsId, now: Timestamp) -> Self {
        let after = self.with_passcode(secrets, now);
        match self.grant.state {
            AccountState::ReEnrolling => after.in_state(AccountState::Active),
            _ => after,
        }
    }

    fn in_state(self, state: AccountState) -> Self {
        Self { grant: AccountRights { state, ..self.grant }, ..self }
    }
}

impl Entity for Account {
    const KIND: Kind = Kind::Account;

    fn lookups(&self, id: Uuid) -> Vec<Lookup> {
        let manages = self.grant.role.permits(Action::ManageAccounts);
        let admin = manages.then(|| Lookup::new(Index::Admin, id.to_string()));
        admin.into_iter().chain([Self::at(&self.grant.email)]).collect()
    }

    fn subject(&self, id: Uuid) -> Affected {
        Subject::Account(AccountId::from_uuid(id)).into()
    }
}

/// Returns whether a change removes the last active admin of an organization. `before` becomes `after` (`None` if
/// deleted), and `others` is the number of other active admins. Invitations do not count.
pub fn takes_last_admin(before: &AccountRights, after: Option<&AccountRights>, others: u64) -> bool {
    before.is_active_admin() && others == 0 && !after.is_some_and(AccountRights::is_active_admin)
}

/// Results of an account's previous logins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountLogins {
    /// Time of the last login.
    pub last_login_at: Option<Timestamp>,
    /// Time of the last counted refusal.
    pub last_refused_at: Option<Timestamp>,
    /// Lockouts and locked throttle buckets.
    pub attempts: AttemptLock,
    /// Number of wrong passcodes that count, which may disable time-based passcodes.
    pub wrong_passcodes: u32,
    /// Time of the last counted wrong passcode.
    pub wrong_passcode_at: Option<Timestamp>,
}

impl AccountLogins {
    /// Returns whether time-based passcodes are disabled until a reset.
    pub const fn passcode_disabled(&self) -> bool {
        self.wrong_passcodes >= WRONG_PASSCODES
    }

    /// Returns whether a login with correct factors may be refused: there is a lockout or a locked bucket for some
    /// network, or time-based passcodes are disabled.
    pub const fn is_locked(&self) -> bool {
        self.attempts.closed || self.attempts.waits_until.is_some() || self.passcode_disabled()
    }

    /// Returns the time since which the account is [locked](Self::is_locked), if it is.
    pub fn locked_since(&self) -> Option<Timestamp> {
        let disabled = self.wrong_passcode_at.filter(|_| self.passcode_disabled());
        self.attempts.since.into_iter().chain(disabled).min()
    }
}

/// An account or an invitation, as operators and admins see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedAccount {
    /// Rights of the account, or the rights that an invitation offers.
    pub grant: AccountRights,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Results of previous logins.
    pub logins: AccountLogins,
    /// Expiry of an open enrolment code, if any, of an invitation or of an account that must enrol again.
    pub invitation_expires_at: Option<Timestamp>,
}
