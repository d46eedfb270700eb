//! Accounts: who may log in, to which organization, in which role.

use crate::audit::{RecordedGrant, RecordedRow, RowState};
use crate::digest::{DigestPurpose, RowMac};
use crate::email::EmailAddress;
use crate::error::Refusal;
use crate::id::{AccountId, OrganizationId, SeedId};
use crate::lockout::{AttemptLock, WRONG_PASSCODES};
use crate::port::KeyedDigester;
use crate::role::{Action, Role};
use crate::time::Timestamp;

/// How many accounts and invitations an organization may have.
pub const MAX_ACCOUNTS: i64 = 10_000;
/// The refusal of one account or invitation too many.
pub const ACCOUNT_LIMIT_REACHED: Refusal =
    Refusal::LimitReached { what: "accounts and invitations", limit: MAX_ACCOUNTS };

/// Whether an account may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountState {
    /// May log in.
    Active,
    /// May not log in; its tokens are dead.
    Disabled,
    /// May not log in until its owner has enrolled again: password, passcode seed and recovery codes are gone.
    ReEnrolling,
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
            Self::ReEnrolling => "re-enrolling",
            Self::Invited => "invited",
        }
    }

    /// The state of this exact name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Active, Self::Disabled, Self::ReEnrolling, Self::Invited]
            .into_iter()
            .find(|state| state.as_str() == text)
    }
}

/// The rights of an account: its owner acts in the organization with the role.
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
    /// Whether its holder may administer the organization's accounts.
    pub fn is_active_admin(&self) -> bool {
        self.state == AccountState::Active && self.role.permits(Action::ManageAccounts)
    }
}

/// Everything that the digest of an account's row covers: rights, owner, and versions of password and seed.
///
/// The row carries a keyed digest over these facts. Where it does not fit, the row grants nothing, so writing SQL is
/// not enough to be let in. A whole row that is put back as it once was still fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedAccount {
    /// What it grants.
    pub grant: AccountGrant,
    /// Counts changes of these facts; a change names the version it was decided on.
    pub version: i64,
    /// Counts changes of the password.
    pub password_version: i64,
    /// The passcode seed, or [`SignedAccount::NO_SEED`].
    pub seed: SeedId,
}

impl SignedAccount {
    /// The first version of an account and of its password.
    pub const FIRST_VERSION: i64 = 1;
    /// Stands for the seed of an account that awaits its owner's enrolment. Signed, so that whoever writes to the
    /// database cannot put the old password and seed back in force.
    pub const NO_SEED: SeedId = SeedId::from_bytes([0; 16]);

    /// A new account.
    pub const fn new(grant: AccountGrant, seed: SeedId) -> Self {
        Self { grant, version: Self::FIRST_VERSION, password_version: Self::FIRST_VERSION, seed }
    }

    /// The account after a change of what it grants.
    #[must_use]
    pub fn with_grant(&self, grant: AccountGrant) -> Self {
        Self { grant, version: self.version + 1, ..self.clone() }
    }

    /// The account after a change of its password.
    #[must_use]
    pub fn with_new_password(&self) -> Self {
        Self { version: self.version + 1, password_version: self.password_version + 1, ..self.clone() }
    }

    /// The account after a change of its seed.
    #[must_use]
    pub fn with_seed(&self, seed: SeedId) -> Self {
        Self { version: self.version + 1, seed, ..self.clone() }
    }

    /// Whether it has no password, seed and recovery codes until its owner enrols again. Apart from the state, because a
    /// disabled account may await it too.
    pub fn awaits_enrolment(&self) -> bool {
        self.seed == Self::NO_SEED
    }

    /// The state that enabling it gives.
    pub fn enabled_state(&self) -> AccountState {
        if self.awaits_enrolment() { AccountState::ReEnrolling } else { AccountState::Active }
    }

    /// The account after it lost its secrets. The role stays, and a disabled account stays disabled.
    #[must_use]
    pub fn without_secrets(&self) -> Self {
        let after = Self { seed: Self::NO_SEED, ..self.with_new_password() };
        match self.grant.state {
            AccountState::Disabled => after,
            _ => after.in_state(AccountState::ReEnrolling),
        }
    }

    /// The account after its owner enrolled again and has this seed. The role stays, and a disabled account stays
    /// disabled.
    #[must_use]
    pub fn re_enrolled(&self, seed: SeedId) -> Self {
        let after = Self { seed, ..self.with_new_password() };
        match self.grant.state {
            AccountState::ReEnrolling => after.in_state(AccountState::Active),
            _ => after,
        }
    }

    fn in_state(self, state: AccountState) -> Self {
        Self { grant: AccountGrant { state, ..self.grant }, ..self }
    }

    /// The code that the row is to carry from now on.
    pub fn digest(&self, digester: &dyn KeyedDigester) -> RowMac {
        self.with_parts(|parts| digester.sign(DigestPurpose::AccountGrant, parts))
    }

    /// The row's state, as the audit records it.
    pub fn state(&self, digester: &dyn KeyedDigester) -> RowState {
        self.states(digester).current()
    }

    /// The row's state, as the audit may have recorded it.
    pub fn states(&self, digester: &dyn KeyedDigester) -> RecordedGrant {
        self.with_parts(|parts| RowState::of_grant(RecordedRow::Account, self.version, parts, digester))
    }

    /// Whether `code` is the row's, under the key that it names.
    pub fn fits(&self, digester: &dyn KeyedDigester, code: &RowMac) -> bool {
        self.with_parts(|parts| digester.is_signed(DigestPurpose::AccountGrant, parts, code))
    }

    fn with_parts<T>(&self, digest: impl FnOnce(&[&[u8]]) -> T) -> T {
        let parts: [&[u8]; 8] = [
            self.grant.account.as_bytes(),
            self.grant.organization.as_bytes(),
            self.grant.email.as_str().as_bytes(),
            self.grant.role.as_str().as_bytes(),
            self.grant.state.as_str().as_bytes(),
            &self.version.to_be_bytes(),
            &self.password_version.to_be_bytes(),
            self.seed.as_bytes(),
        ];
        digest(&parts)
    }
}

/// Whether a change takes an organization's last active admin: `before` becomes `after` (`None`: is deleted)
/// where `others` other accounts are active admins. Invitations are no accounts and do not count.
pub fn takes_last_admin(before: &AccountGrant, after: Option<&AccountGrant>, others: u64) -> bool {
    before.is_active_admin() && others == 0 && !after.is_some_and(AccountGrant::is_active_admin)
}

/// An account as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// What its row's code covers.
    pub signed: SignedAccount,
    /// The code that the row carries; where it does not fit, the row grants nothing.
    pub digest: RowMac,
    /// When it was made.
    pub created_at: Timestamp,
    /// What its logins left.
    pub logins: AccountLogins,
    /// Until when its owner can enrol again, if an enrolment code for that is open.
    pub enrolment_until: Option<Timestamp>,
}

impl Account {
    /// Whether the row fits its code, whose key is [loaded](KeyedDigester::load_keys).
    pub fn is_sound(&self, digester: &dyn KeyedDigester) -> bool {
        self.signed.fits(digester, &self.digest)
    }

    /// The account as lists show it.
    pub fn listed(&self) -> ListedAccount {
        ListedAccount {
            grant: self.signed.grant.clone(),
            created_at: self.created_at,
            logins: self.logins,
            invitation_expires_at: self.enrolment_until,
        }
    }
}

/// What the logins of an account left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountLogins {
    /// The latest login.
    pub last_login_at: Option<Timestamp>,
    /// The latest refusal that was counted.
    pub last_refused_at: Option<Timestamp>,
    /// Waits and closed classes.
    pub attempts: AttemptLock,
    /// How many wrong passcodes count, and whether they disable time-based passcodes.
    pub wrong_passcodes: u32,
}

impl AccountLogins {
    /// Whether time-based passcodes are disabled until a reset.
    pub const fn passcode_disabled(&self) -> bool {
        self.wrong_passcodes >= WRONG_PASSCODES
    }

    /// Whether a login of the owner may be refused although everything in it is right: from some network a wait lasts
    /// or a class is closed, or time-based passcodes are disabled.
    pub const fn is_locked(&self) -> bool {
        self.attempts.closed || self.attempts.waits_until.is_some() || self.passcode_disabled()
    }
}

/// An account or an invitation as operators and admins see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedAccount {
    /// What it grants; of an invitation, what it will grant.
    pub grant: AccountGrant,
    /// When it was made.
    pub created_at: Timestamp,
    /// What its logins left.
    pub logins: AccountLogins,
    /// Until when an enrolment code can be used, if one is open: of an invitation, or of an account that awaits its
    /// owner's enrolment.
    pub invitation_expires_at: Option<Timestamp>,
}
