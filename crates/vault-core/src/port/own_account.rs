//! Port for the caller's own account in the store.

use super::StoreError;
use crate::account::SignedAccount;
use crate::command::Command;
use crate::digest::RowMac;
use crate::notice::StoredNotice;
use crate::passcode::{PendingSeed, TimeStep};
use crate::principal::SessionPrincipal;
use crate::time::Timestamp;
use async_trait::async_trait;

/// An account as its user sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnAccount {
    /// Fields that the row's MAC covers.
    pub signed: SignedAccount,
    /// Time since which its TOTP secret is in use.
    pub passcode_enrolled_at: Timestamp,
    /// Number of unused recovery codes.
    pub recovery_codes_left: u32,
    /// Notices in any order. Expired notices may be included.
    pub notices: Vec<StoredNotice>,
}

/// A TOTP secret that is pending confirmation, with the current state of the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingSeed {
    /// The TOTP secret.
    pub pending: PendingSeed,
    /// Fields that the row's MAC covers.
    pub signed: SignedAccount,
    /// MAC of the row.
    pub digest: RowMac,
}

/// Replaces the TOTP secret with the confirmed one, resets wrong passcodes, revokes all other sessions and sets the
/// time of enrolment. The principal is a session of the account in `after`.
#[derive(Clone, Debug)]
pub struct ConfirmPasscode {
    /// Version of the row that the change is based on, which must be unchanged.
    pub version: i64,
    /// New fields that the row's MAC covers. Their TOTP secret is the pending one, which must be unchanged.
    pub after: SignedAccount,
    /// MAC of the row.
    pub digest: RowMac,
    /// Time step whose code confirmed it. It is marked as used.
    pub step: TimeStep,
}

/// Port for the caller's own account. Every method checks authorization in its own transaction and returns
/// [`StoreError::Denied`] if the principal may no longer act.
#[async_trait]
pub trait OwnAccountRepository: Send + Sync {
    /// Returns the principal's account.
    async fn own_account(&self, principal: SessionPrincipal, now: Timestamp) -> Result<OwnAccount, StoreError>;

    /// Counts a code for the pending TOTP secret before it is compared, and returns the secret. Returns `None` if none
    /// is pending that [`may_be_confirmed`](crate::passcode::may_be_confirmed).
    async fn reserve_confirmation(
        &self,
        principal: SessionPrincipal,
        now: Timestamp,
    ) -> Result<Option<WaitingSeed>, StoreError>;

    /// Makes the pending TOTP secret that of the account. Returns `false` and changes nothing if this secret is no
    /// longer pending or the row has changed.
    async fn confirm_passcode(&self, command: Command<ConfirmPasscode>) -> Result<bool, StoreError>;
}
