//! One's own account in the store.

use super::StoreError;
use crate::audit::SealedAuditRecord;
use crate::email::EmailAddress;
use crate::id::SeedId;
use crate::notice::StoredNotice;
use crate::organization::OrganizationName;
use crate::passcode::TimeStep;
use crate::principal::{Denial, SessionPrincipal};
use crate::sealed::SealedSeed;
use crate::time::Timestamp;
use async_trait::async_trait;

/// What the store knows of an account for its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnAccount {
    /// Its address.
    pub email: EmailAddress,
    /// Its organization's name.
    pub organization: OrganizationName,
    /// Since when its passcode seed is in use.
    pub passcode_enrolled_at: Timestamp,
    /// How many recovery codes it has left.
    pub recovery_codes_left: u32,
    /// Its notices, in any order; those past their time may be among them.
    pub notices: Vec<StoredNotice>,
}

/// Puts a confirmed seed in the place of the one before: wrong passcodes are forgotten, every other session ends,
/// the seed is enrolled now. The row's version rises.
#[derive(Clone, Debug)]
pub struct ConfirmPasscode {
    /// Whose; must still be allowed to act.
    pub principal: SessionPrincipal,
    /// The waiting seed as read; must be unchanged.
    pub seed: SeedId,
    /// The step whose code confirmed it; is spent.
    pub step: TimeStep,
    /// Now.
    pub now: Timestamp,
    /// The record of it.
    pub audit: SealedAuditRecord,
}

/// One's own account. Every method refuses a principal that may no longer act, in the same transaction.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait OwnAccountRepository: Send + Sync {
    /// What the principal's account is.
    async fn own_account(
        &self,
        principal: SessionPrincipal,
        now: Timestamp,
    ) -> Result<Result<OwnAccount, Denial>, StoreError>;

    /// Counts one code that is to confirm the waiting seed, before it is compared, and gives the seed. `None`:
    /// none waits that [`may_be_confirmed`](crate::passcode::may_be_confirmed).
    async fn reserve_confirmation(
        &self,
        principal: SessionPrincipal,
        now: Timestamp,
    ) -> Result<Result<Option<SealedSeed>, Denial>, StoreError>;

    /// Makes the waiting seed the account's. `false`: this seed waits no longer; nothing was changed.
    async fn confirm_passcode(&self, command: ConfirmPasscode) -> Result<Result<bool, Denial>, StoreError>;
}
