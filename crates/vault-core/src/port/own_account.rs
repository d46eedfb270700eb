//! One's own account in the store.

use super::StoreError;
use crate::account::SignedAccount;
use crate::command::Command;
use crate::digest::RowMac;
use crate::notice::StoredNotice;
use crate::organization::OrganizationName;
use crate::passcode::TimeStep;
use crate::principal::SessionPrincipal;
use crate::sealed::SealedSeed;
use crate::time::Timestamp;
use async_trait::async_trait;

/// What the store knows of an account for its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnAccount {
    /// Fields that the row's MAC covers.
    pub signed: SignedAccount,
    /// Its organization's name.
    pub organization: OrganizationName,
    /// Since when its passcode seed is in use.
    pub passcode_enrolled_at: Timestamp,
    /// Number of unused recovery codes.
    pub recovery_codes_left: u32,
    /// Its notices, in any order; those past their time may be among them.
    pub notices: Vec<StoredNotice>,
}

/// A seed that waits to be confirmed, and the account as it is before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingSeed {
    /// The seed.
    pub seed: SealedSeed,
    /// What the account's row is signed with.
    pub signed: SignedAccount,
    /// MAC of the row.
    pub digest: RowMac,
}

/// Replaces the seed by the confirmed one: resets wrong passcodes, revokes every other session and sets the time of
/// enrolment. The principal is a session, of the account that `after` names.
#[derive(Clone, Debug)]
pub struct ConfirmPasscode {
    /// The row's version that it was decided on; must be unchanged.
    pub version: i64,
    /// What the row is signed with from now on. Its seed is the waiting one, which must be unchanged.
    pub after: SignedAccount,
    /// MAC of the row.
    pub digest: RowMac,
    /// The step whose code confirmed it; is marked used.
    pub step: TimeStep,
}

/// One's own account. Every method refuses a principal that may no longer act ([`StoreError::Denied`]), in the same
/// transaction.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait OwnAccountRepository: Send + Sync {
    /// What the principal's account is.
    async fn own_account(&self, principal: SessionPrincipal, now: Timestamp) -> Result<OwnAccount, StoreError>;

    /// Counts a code that is to confirm the waiting seed, before it is compared, and gives the seed. `None`: none waits that
    /// [`may_be_confirmed`](crate::passcode::may_be_confirmed).
    async fn reserve_confirmation(
        &self,
        principal: SessionPrincipal,
        now: Timestamp,
    ) -> Result<Option<WaitingSeed>, StoreError>;

    /// Makes the waiting seed the account's. `false`: this seed waits no longer, or the row has changed; nothing was
    /// changed.
    async fn confirm_passcode(&self, command: Command<ConfirmPasscode>) -> Result<bool, StoreError>;
}
