//! Accounts: who may log in, to which organization and with which role.

mod change;
mod confirm_passcode;
mod create;
mod find;
mod read_own;
mod set_aside;
mod sign;

pub(crate) use change::changes;
pub use change::{AccountChange, ChangeAccount};
pub use confirm_passcode::{ConfirmPasscode, ReserveConfirmation, WaitingSeed};
pub(crate) use create::require_room;
pub use create::{CreateAccount, NewAccount};
pub use find::{AccountKey, FindAccount, FoundAccount, ListAccounts};
pub use read_own::{OwnAccount, ReadOwnAccount};
pub use set_aside::{ChangeSetAside, ListSetAside, MAX_SET_ASIDE, SetAside, SetAsides};
pub(crate) use sign::{insert_account, sign_account};

use crate::audit::{RecordedRights, RecordedRow, RowState};
use crate::digest::{DigestPurpose, RowMac};
use crate::email::EmailAddress;
use crate::error::Refusal;
use crate::id::{AccountId, OrganizationId, PasswordId, SeedId, SessionId};
use crate::lockout::{AttemptLock, WRONG_PASSCODES};
use crate::port::KeyedDigester;
use crate::role::{Action, Role};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Maximum number of accounts and invitations of an organization.
pub const MAX_ACCOUNTS: i64 = 10_000;
/// Refusal for an exceeded limit of accounts and invitations.
pub const ACCOUNT_LIMIT_REACHED: Refusal =
    Refusal::LimitReached { what: "accounts and invitations", limit: MAX_ACCOUNTS };

/// State of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString)]
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
    /// state, never the row of an account.
    Invited,
}

impl AccountState {
    /// Returns the name of the state.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the state with exactly this name.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

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

/// The sessions of an account that no change has revoked. The row of an account contains this under its MAC, so that
/// revoked sessions stay revoked whatever rows of sessions exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidSessions {
    /// Version of the account since which logins create valid sessions.
    pub since: i64,
    /// An older session that is also valid, because it made the change that revoked the others, or
    /// [`ValidSessions::NO_SESSION`].
    pub kept: SessionId,
}

impl ValidSessions {
    /// ID instead of an older session.
    pub const NO_SESSION: SessionId = SessionId::from_bytes([0; 16]);

    /// Returns whether a session of a login at this version of the account is valid.
    pub fn include(&self, session: SessionId, version: i64) -> bool {
        version >= self.since || (session == self.kept && session != Self::NO_SESSION)
    }
}

/// The fields that the MAC of an account's row covers: rights, address, the IDs of password and TOTP secret, and which
/// sessions are valid.
///
/// If the MAC does not verify, the row grants nothing, so write access to the database alone does not permit a login.
/// The MAC of a complete old row that an attacker restores still verifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedAccount {
    /// Rights of the account.
    pub grant: AccountRights,
    /// Number of changes of these fields. A change names the version that it is based on.
    pub version: i64,
    /// ID of the password, or [`SignedAccount::NO_PASSWORD`].
    pub password: PasswordId,
    /// ID of the TOTP secret, or [`SignedAccount::NO_SEED`].
    pub seed: SeedId,
    /// The sessions that are valid if their rows exist.
    pub sessions: ValidSessions,
}

impl SignedAccount {
    /// First version of an account.
    pub const FIRST_VERSION: i64 = 1;
    /// ID instead of a TOTP secret for an account that must enrol again. The MAC covers it, so an attacker with write
    /// access to the database cannot restore the old password and TOTP secret.
    pub const NO_SEED: SeedId = SeedId::from_bytes([0; 16]);
    /// ID instead of a password, like [`SignedAccount::NO_SEED`].
    pub const NO_PASSWORD: PasswordId = PasswordId::from_bytes([0; 16]);

    /// Creates the fields of a new account.
    pub const fn new(grant: AccountRights, password: PasswordId, seed: SeedId) -> Self {
        let (version, kept) = (Self::FIRST_VERSION, ValidSessions::NO_SESSION);
        Self { grant, version, password, seed, sessions: ValidSessions { since: version, kept } }
    }

    /// Returns the fields after a change of the rights.
    #[must_use]
    pub fn with_grant(&self, grant: AccountRights) -> Self {
        Self { grant, ..self.changed() }
    }

    /// Returns the fields after a change of the password.
    #[must_use]
    pub fn with_password(&self, password: PasswordId) -> Self {
        Self { password, ..self.changed() }
    }

    /// Returns the fields after a change of the TOTP secret.
    #[must_use]
    pub fn with_seed(&self, seed: SeedId) -> Self {
        Self { seed, ..self.changed() }
    }

    /// Returns the fields in their next version. Every change revokes all sessions.
    fn changed(&self) -> Self {
        let (version, kept) = (self.version + 1, ValidSessions::NO_SESSION);
        Self { version, sessions: ValidSessions { since: version, kept }, ..self.clone() }
    }

    /// Returns the fields after a change that `session` of the account made and that revoked only the others.
    #[must_use]
    pub fn keeping(self, session: SessionId) -> Self {
        Self { sessions: ValidSessions { kept: session, ..self.sessions }, ..self }
    }

    /// Returns whether the account has no password, TOTP secret and recovery codes until its user enrols again. This is
    /// independent of the state, because it can also apply to a disabled account.
    pub fn awaits_enrolment(&self) -> bool {
        self.seed == Self::NO_SEED
    }

    /// Returns the state that the account has after it is enabled.
    pub fn enabled_state(&self) -> AccountState {
        if self.awaits_enrolment() { AccountState::ReEnrolling } else { AccountState::Active }
    }

    /// Returns the fields after the secrets were deleted. The role is unchanged, and a disabled account stays disabled.
    #[must_use]
    pub fn without_secrets(&self) -> Self {
        let after = Self { seed: Self::NO_SEED, ..self.with_password(Self::NO_PASSWORD) };
        match self.grant.state {
            AccountState::Disabled => after,
            _ => after.in_state(AccountState::ReEnrolling),
        }
    }

    /// Returns the fields after the user enrolled again with this password and TOTP secret. The role is unchanged, and a disabled
    /// account stays disabled.
    #[must_use]
    pub fn re_enrolled(&self, password: PasswordId, seed: SeedId) -> Self {
        let after = Self { seed, ..self.with_password(password) };
        match self.grant.state {
            AccountState::ReEnrolling => after.in_state(AccountState::Active),
            _ => after,
        }
    }

    fn in_state(self, state: AccountState) -> Self {
        Self { grant: AccountRights { state, ..self.grant }, ..self }
    }

    /// Computes the MAC of the row.
    pub fn digest(&self, digester: &dyn KeyedDigester) -> RowMac {
        self.with_parts(|parts| digester.sign(DigestPurpose::AccountRights, parts))
    }

    /// Returns the state of the row, as the audit log records it.
    pub fn state(&self, digester: &dyn KeyedDigester) -> RowState {
        self.states(digester).current()
    }

    /// Returns the state of the row in every form in which the audit log may have recorded it.
    pub fn states(&self, digester: &dyn KeyedDigester) -> RecordedRights {
        self.with_parts(|parts| RowState::of_grant(RecordedRow::Account, self.version, parts, digester))
    }

    /// Returns whether `code` is the MAC of the row, under the key that it names.
    pub fn fits(&self, digester: &dyn KeyedDigester, code: &RowMac) -> bool {
        self.with_parts(|parts| digester.is_signed(DigestPurpose::AccountRights, parts, code))
    }

    fn with_parts<T>(&self, digest: impl FnOnce(&[&[u8]]) -> T) -> T {
        let parts: [&[u8]; 10] = [
            self.grant.account.as_bytes(),
            self.grant.organization.as_bytes(),
            self.grant.email.as_str().as_bytes(),
            self.grant.role.as_str().as_bytes(),
            self.grant.state.as_str().as_bytes(),
            &self.version.to_be_bytes(),
            self.password.as_bytes(),
            self.seed.as_bytes(),
            &self.sessions.since.to_be_bytes(),
            self.sessions.kept.as_bytes(),
        ];
        digest(&parts)
    }
}

/// Returns whether a change removes the last active admin of an organization. `before` becomes `after` (`None` if
/// deleted), and `others` is the number of other active admins. Invitations do not count.
pub fn takes_last_admin(before: &AccountRights, after: Option<&AccountRights>, others: u64) -> bool {
    before.is_active_admin() && others == 0 && !after.is_some_and(AccountRights::is_active_admin)
}

/// A stored account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Fields that the row's MAC covers.
    pub signed: SignedAccount,
    /// MAC of the row. If it does not verify, the row grants nothing.
    pub digest: RowMac,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Results of previous logins.
    pub logins: AccountLogins,
    /// Time until which an open enrolment code for re-enrolment is valid, if any.
    pub enrolment_until: Option<Timestamp>,
}

impl Account {
    /// Returns whether the row's MAC verifies. Its key must be [loaded](KeyedDigester::load_keys).
    pub fn mac_is_valid(&self, digester: &dyn KeyedDigester) -> bool {
        self.signed.fits(digester, &self.digest)
    }

    /// Returns the account as it appears in lists.
    pub fn listed(&self) -> ListedAccount {
        ListedAccount {
            grant: self.signed.grant.clone(),
            created_at: self.created_at,
            logins: self.logins,
            invitation_expires_at: self.enrolment_until,
        }
    }
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
